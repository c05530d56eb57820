//! The six mixes of YCSB (Cooper and others, 2010), compared with Redis at the same rate: CPU per
//! request and p99.
//!
//! Keys by Zipf's law. A: half reads, half writes. B: 95 % reads. C: only reads. D: 95 % reads of
//! recent inserts, 5 % inserts. E: 95 % scans of up to a hundred names, 5 % inserts. F: half reads,
//! half a read and a write of the same key. Redis has no order of keys; for E it has the names in a
//! sorted set, as in YCSB's client for it, and one script returns names and values together.

use std::cell::Cell;

use outboard_load::Feed;

use super::store::{CONNECTIONS, KEYS, STORE, VALUE, fill};
use crate::error::Result;
use crate::generator::{Mix, Protocol};
use crate::lab::Lab;
use crate::load::Load;
use crate::redis;
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::Turns;
use crate::stack::Stack;

/// Requests per second of all mixes but E.
const RATE: f64 = 10_000.0;
/// Requests per second of mix E, whose responses have 50 values.
const SCANS: f64 = 1_000.0;
/// Names in a scan.
const SCAN_MAX: usize = 100;
/// The names of mix D at the start of each slice.
const YOUNG: u64 = 2_000;

/// A name and its value, and the name in the set.
const INSERT: &str =
    "redis.call('SET',KEYS[1],ARGV[1]) return redis.call('ZADD','names',0,KEYS[1])";
const SCAN: &str = "local names=redis.call('ZRANGEBYLEX',KEYS[1],'['..ARGV[1],'('..ARGV[2]) \
                    if #names==0 then return names end return redis.call('MGET',unpack(names))";

/// A mix by its letter.
struct Workload {
    letter: char,
    what: &'static str,
    rate: f64,
}

const WORKLOADS: [Workload; 6] = [
    Workload { letter: 'A', what: "50 % reads, 50 % writes", rate: RATE },
    Workload { letter: 'B', what: "95 % reads, 5 % writes", rate: RATE },
    Workload { letter: 'C', what: "100 % reads", rate: RATE },
    Workload { letter: 'D', what: "95 % reads of the latest, 5 % inserts", rate: RATE },
    Workload { letter: 'E', what: "95 % scans, 5 % inserts", rate: SCANS },
    Workload { letter: 'F', what: "50 % reads, 50 % read and write", rate: RATE },
];

pub(super) fn run(lab: &Lab, report: &mut Report, outboard: &Stack, redis: &Stack) -> Result<()> {
    fill(outboard)?;
    mix(redis, vec![(1, vec![insert(Protocol::Redis, "{seq}")])]).run_count(redis, KEYS)?;
    let seconds = lab.effort.short_slice_seconds();
    let slices = if lab.effort.is_quick() { 2 } else { lab.effort.slices };
    let bouts = Cell::new(0);
    for workload in &WORKLOADS {
        let rounds = Turns { slices, shared: None }.take(lab, &[outboard, redis], |stack| {
            bouts.set(bouts.get() + 1);
            workload.load(stack, seconds, bouts.get())
        })?;
        let Workload { letter, what, rate } = workload;
        let title = format!("YCSB {letter}: {what}, {rate}/s c=64");
        match lab.effort.is_quick() {
            // Fewer pairs decide nothing.
            true => report.add_rows(&title, &rounds),
            false => report.add_rounds(&title, &rounds),
        }
    }
    Ok(())
}

impl Workload {
    /// One slice; `bout` is a unique number.
    fn load(&self, stack: &Stack, seconds: f64, bout: u32) -> Result<Load> {
        let protocol = protocol(stack);
        let of = |key: &str| (read(protocol, key), write(protocol, key));
        let (known, known_write) = of("{key}");
        let scripts = match self.letter {
            'A' => vec![(1, vec![known]), (1, vec![known_write])],
            'B' => vec![(19, vec![known]), (1, vec![known_write])],
            'C' => vec![(1, vec![known])],
            'D' => return self.latest(stack, seconds, bout),
            'E' => vec![(19, vec![scan(protocol)]), (1, vec![insert(protocol, "{rand}")])],
            _ => {
                let (first, then) = of("{id}");
                vec![(1, vec![known]), (1, vec![first, then])]
            }
        };
        let feeds = match self.letter {
            'E' => vec![ranges()],
            'F' => vec![ids()],
            _ => Vec::new(),
        };
        Mix { feeds, ..mix(stack, scripts) }.load_at(stack, seconds, self.rate)
    }

    /// With unique names, so that an insert is one in every slice.
    fn latest(&self, stack: &Stack, seconds: f64, bout: u32) -> Result<Load> {
        let protocol = protocol(stack);
        let of = |key: &str| format!("-{bout}-{key}");
        let fill = vec![(1, vec![write(protocol, &of("{seq}"))])];
        mix(stack, fill).run_count(stack, YOUNG)?;
        let scripts = vec![
            (19, vec![read(protocol, &of("{latest}"))]),
            (1, vec![write(protocol, &of("{new}"))]),
        ];
        Mix { keys: YOUNG, ..mix(stack, scripts) }.load_at(stack, seconds, self.rate)
    }
}

fn protocol(stack: &Stack) -> Protocol {
    if stack.name == redis::NAME { Protocol::Redis } else { Protocol::Http }
}

fn mix(stack: &Stack, scripts: Vec<(u32, Vec<RequestSpec>)>) -> Mix {
    Mix {
        protocol: protocol(stack),
        scripts,
        feeds: Vec::new(),
        keys: KEYS,
        is_skewed: true,
        connections: CONNECTIONS,
    }
}

fn read(protocol: Protocol, key: &str) -> RequestSpec {
    let request = match protocol {
        Protocol::Http => RequestSpec::get(&format!("/v0/entity?id=key{key}")).to_host(STORE),
        Protocol::Redis => RequestSpec::command("GET", &format!("/key{key}"), None),
    };
    request.filled().expecting(VALUE.len())
}

fn write(protocol: Protocol, key: &str) -> RequestSpec {
    let request = match protocol {
        Protocol::Http => {
            RequestSpec::put(&format!("/v0/entity?id=key{key}"), VALUE).to_host(STORE)
        }
        Protocol::Redis => RequestSpec::command("SET", &format!("/key{key}"), Some(VALUE)),
    };
    request.filled()
}

/// A write of a key that scans find as well.
fn insert(protocol: Protocol, key: &str) -> RequestSpec {
    match protocol {
        Protocol::Http => write(protocol, key),
        Protocol::Redis => {
            let arguments = format!("/{}/1/key{key}", script(INSERT));
            RequestSpec::command("EVAL", &arguments, Some(VALUE)).filled()
        }
    }
}

fn scan(protocol: Protocol) -> RequestSpec {
    let request = match protocol {
        Protocol::Http => RequestSpec::get("/v0/entities?start={start}&end={end}").to_host(STORE),
        Protocol::Redis => RequestSpec::command(
            "EVAL",
            &format!("/{}/1/names/{{start}}/{{end}}", script(SCAN)),
            None,
        ),
    };
    request.filled()
}

/// A script as a path segment.
fn script(text: &str) -> String {
    text.replace('%', "%25").replace('/', "%2F")
}

/// Every name with a later one in their order, at all distances up to the limit.
fn ranges() -> Feed {
    let mut names: Vec<String> = (0..KEYS).map(|key| format!("key{key}")).collect();
    names.sort_unstable();
    let end =
        |at: usize| names.get(at + 1 + at % SCAN_MAX).map_or("kez", String::as_str).to_owned();
    let rows = (0..names.len()).map(|at| vec![names[at].clone(), end(at)]).collect();
    Feed { columns: vec!["start".into(), "end".into()], rows, random: true }
}

fn ids() -> Feed {
    let rows = (0..KEYS).map(|key| vec![key.to_string()]).collect();
    Feed { columns: vec!["id".into()], rows, random: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_one_to_a_hundred_names() {
        let Feed { rows, .. } = ranges();
        let names: Vec<&String> = rows.iter().map(|row| &row[0]).collect();
        let count = |row: &Vec<String>| {
            names.iter().filter(|name| **name >= &row[0] && **name < &row[1]).count()
        };
        assert_eq!([0, 49, 99].map(|at| count(&rows[at])), [1, 50, 100]);
        assert!(rows.iter().all(|row| row[0] < row[1]));
    }
}
