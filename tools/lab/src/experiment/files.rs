//! Static files of 1 KiB and 1 MB against nginx, as plain HTTP/1.1 and over TLS and HTTP/2.
//!
//! Instructions are counted as well where valgrind can: no process of these stacks is left out.

use crate::callgrind::Callgrind;
use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::generator::Over;
use crate::instructions::{CountedLoad, per_request};
use crate::lab::Lab;
use crate::outboard::{self, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{KIBIBYTE, MEGABYTE, Site};
use crate::slice::interleave;
use crate::stack::{Stack, check_same_responses};
use crate::tls_listener::TlsListener;
use crate::{generator, nginx};
use std::path::Path;

const CONNECTIONS: usize = 100;

/// The requests that are counted; valgrind takes fifty times as long as the processor.
const COUNTED: u64 = 5_000;

/// The table of the small file by plain HTTP/1.1.
const PLAIN: &str = "1 KiB file c=100";

/// The connections that read the large file, whose transfer is most of its price.
const LARGE_CONNECTIONS: usize = 10;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let (ours, theirs) = (TlsListener::new(lab)?, TlsListener::new(lab)?);
    let outboard = start(lab, &site.root, &ours)?;
    let nginx = nginx::with_files(lab, &site.root, &theirs)?;
    let stacks: Vec<&Stack> = outboard.iter().chain([&nginx]).collect();
    let seconds = lab.effort.slice_seconds;
    for (path, title, connections, limit) in
        [(KIBIBYTE, PLAIN, CONNECTIONS, 0.55), (MEGABYTE, "1 MB file c=10", LARGE_CONNECTIONS, 0.9)]
    {
        let request = RequestSpec::get(path).expecting(check_same_responses(&stacks, path)?);
        let load = |stack: &Stack| generator::load(stack, &request, connections, seconds);
        let rounds = interleave(lab, &stacks, load)?;
        report.add_rounds(title, &rounds);
        let target = format!("{title}: CPU per request ≤ {limit} × nginx");
        report.verdicts.push(cpu_verdict(&rounds, &target, nginx.name, limit));
    }
    let request = RequestSpec::get(KIBIBYTE).expecting(check_same_responses(&stacks, KIBIBYTE)?);
    let rounds = interleave(lab, &stacks, |stack| {
        let tls = if stack.name == nginx.name { &theirs } else { &ours };
        let over = Over::Http2 { connections: CONNECTIONS, streams: 1 };
        generator::load_by_tls(stack, tls, &request, over, None, seconds)
    })?;
    report.add_rounds("1 KiB file, TLS and HTTP/2, c=100", &rounds);
    drop((outboard, nginx));
    if let Err(error) = count(lab, report, &site.root, &request) {
        report.notes.push(format!("files: instructions per request: {error}"));
    }
    Ok(())
}

/// Outboard for a directory; `None` without a binary.
fn start(lab: &mut Lab, root: &Path, tls: &TlsListener) -> Result<Option<Stack>> {
    let setup = Setup { tls: Some(tls.clone()), ..Setup::classic(lab, root) };
    Ok(Outboard::launch(lab, &setup)?.map(|outboard| outboard.stack))
}

fn count(lab: &mut Lab, report: &mut Report, root: &Path, request: &RequestSpec) -> Result<()> {
    let callgrind = Callgrind::new(lab.directory("callgrind")?)?;
    callgrind.check()?;
    let requests = COUNTED / lab.effort.shortening;
    let load = CountedLoad { connections: CONNECTIONS, requests };
    let tls = TlsListener::new(lab)?;
    lab.progress("instructions");
    let theirs =
        per_request(lab, &callgrind, request, load, |lab| nginx::with_files(lab, root, &tls))?;
    report.add_instructions(PLAIN, "nginx-files", theirs);
    if outboard::binary().is_some() {
        let ours = per_request(lab, &callgrind, request, load, |lab| {
            Ok(start(lab, root, &tls)?.expect("there is a binary"))
        })?;
        report.add_instructions(PLAIN, outboard::NAME, ours);
    }
    Ok(())
}
