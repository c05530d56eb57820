//! Instructions per request: an exact number on any machine, also a loaded or virtual one.
//!
//! Called by `outboard lab instructions`, and by experiments whose stacks can be counted completely. Each
//! stack runs twice under [`Callgrind`], with different numbers of requests; start and end cost the same in
//! both, so the difference is that of the requests.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;

use crate::callgrind::Callgrind;
use crate::error::{Error, Result};
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::request_spec::RequestSpec;
use crate::stack::Stack;
use crate::variant::Variant;

/// The requests of the first run: enough to fill caches and to size pools.
const WARM_UP: u64 = 2_000;

/// The variants, and the requests.
#[derive(Debug, Clone)]
pub struct Counting {
    /// The variants with their texts.
    pub variants: Vec<(String, Variant)>,
    /// The directory that stacks and binaries serve.
    pub root: PathBuf,
    /// The requested path.
    pub path: String,
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// The requests that are counted.
    pub requests: u64,
}

/// One result.
#[derive(Debug, Clone, Serialize)]
pub struct Count {
    /// The variant.
    pub variant: String,
    /// Instructions in user space per request.
    pub instructions_per_request: f64,
}

/// Counts all variants, one after the other.
pub fn run(lab: &mut Lab, counting: &Counting) -> Result<Vec<Count>> {
    let callgrind = Callgrind::new(lab.directory("callgrind")?)?;
    callgrind.check()?;
    let mut counts = Vec::new();
    for (text, variant) in &counting.variants {
        if matches!(variant, Variant::Url { .. }) {
            let what = "is running already: it has to be started to be counted".into();
            return Err(Error::Unexpected { who: text.clone(), what });
        }
        lab.progress(text);
        let (host, path) = variant.target(&counting.path);
        let request = RequestSpec::get(path).to_host(host);
        let load = CountedLoad { connections: counting.connections, requests: counting.requests };
        let start = |lab: &mut Lab| variant.start(lab, "counted", &counting.root);
        let instructions_per_request = per_request(lab, &callgrind, &request, load, start)?;
        counts.push(Count { variant: text.clone(), instructions_per_request });
    }
    Ok(counts)
}

/// The load of a count.
#[derive(Debug, Clone, Copy)]
pub struct CountedLoad {
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// The requests that are counted.
    pub requests: u64,
}

/// The instructions of a request to a stack, which is started twice.
pub fn per_request(
    lab: &mut Lab,
    callgrind: &Callgrind,
    request: &RequestSpec,
    load: CountedLoad,
    mut start: impl FnMut(&mut Lab) -> Result<Stack>,
) -> Result<f64> {
    let mut total = |requests| {
        lab.callgrind = Some(callgrind.clone());
        let stack = start(lab);
        lab.callgrind = None;
        total(callgrind, stack?, request, load.connections, requests)
    };
    let few = total(WARM_UP)?;
    let many = total(WARM_UP + load.requests)?;
    Ok(many.saturating_sub(few) as f64 / load.requests as f64)
}

/// The instructions of a run with this number of requests.
fn total(
    callgrind: &Callgrind,
    stack: Stack,
    request: &RequestSpec,
    connections: usize,
    requests: u64,
) -> Result<u64> {
    callgrind.permit_writing()?;
    let account = generator::run_count(&Task::new(stack.address, request, connections), requests)?;
    drop(stack);
    match account.statuses.get(&200) {
        Some(&succeeded) if succeeded == requests => callgrind.take_total(),
        _ => {
            let what =
                format!("not only status 200 for {}: {:?}", request.path(), account.statuses);
            Err(Error::Unexpected { who: "the stack".into(), what })
        }
    }
}

/// A line for each variant, the others relative to the first.
pub fn table(counts: &[Count]) -> String {
    let mut table = String::new();
    let first = counts.first().map_or(1.0, |count| count.instructions_per_request);
    for count in counts {
        let (number, ratio) =
            (count.instructions_per_request, count.instructions_per_request / first);
        let _ = writeln!(table, "{number:>9.0}  {ratio:>5.2} ×  {}", count.variant);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_relative_to_the_first() {
        let count = |variant: &str, instructions_per_request| Count {
            variant: variant.into(),
            instructions_per_request,
        };
        let table = table(&[count("a", 5000.0), count("b", 7500.4)]);
        assert_eq!(table, "     5000   1.00 ×  a\n     7500   1.50 ×  b\n");
    }
}
