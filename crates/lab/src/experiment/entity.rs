//! A store of values by key over HTTP: PUT and GET at a fixed rate, answered by a store that waits
//! for its disk in threads of its own and by one that has the whole server wait.
//!
//! Values have 256 bytes, keys are drawn from 10,000, the durability is `interval`. First 15,000
//! requests a second over 4, 64 and 512 connections, on the clock, with buffers so small that files
//! are written within every slice; then, with the usual ones, as fast as answers come, against Redis
//! with `appendfsync everysec`.

use std::net::SocketAddr;

use crate::ask::Ask;
use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::experiment::{NOT_BUILT, crowds};
use crate::generator::{self, Task};
use crate::lab::{Lab, free_address};
use crate::outboard::{self, Outboard, Setup};
use crate::redis;
use crate::report::Report;
use crate::site::Site;
use crate::slice::{Rounds, interleave};
use crate::stack::Stack;
use crate::verdict::Verdict;

const RATE: f64 = 15_000.0;
const SYNCHRONOUS: &str = "outboard, synchronous";
const RECORD: &str = "/v0/entity?id=key{key}";
const KEYS: u64 = 10_000;
/// So many random writes leave none of the keys out.
const FILLING: u64 = 200_000;
/// The connections of the bars.
const CONNECTIONS: usize = 64;
const CROWDS: [usize; 3] = [CONNECTIONS, 4, 512];

/// At 15,000 values a second, five files in four seconds.
const SMALL_BUFFER: &str = "buffer = \"4 MiB\"\n";

const VALUE: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
                     0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let synchronously = format!("{SMALL_BUFFER}mode = \"synchronous\"\n");
    let asynchronous = launch(lab, &site, outboard::NAME, SMALL_BUFFER)?;
    let synchronous = launch(lab, &site, SYNCHRONOUS, &synchronously)?;
    let stacks: Vec<&Stack> = [&asynchronous, &synchronous].into_iter().flatten().collect();
    let put = Ask::put(RECORD, VALUE).filled();
    let get = Ask::get(RECORD).filled().expecting(VALUE.len());
    lab.progress("filling the stores");
    for stack in &stacks {
        generator::run_count(&Task::new(stack.address, &put, CONNECTIONS), FILLING)?;
    }
    let crowds = crowds(lab, report, &CROWDS);
    for (word, ask) in [("PUT", &put), ("GET", &get)] {
        for &connections in crowds {
            let seconds = lab.effort.slice_seconds;
            let rounds = interleave(lab, &stacks, |stack| {
                generator::load_at(stack, ask, connections, seconds, RATE)
            })?;
            report.add_rounds(&format!("{word} 15,000/s c={connections}"), &rounds);
            if connections == CONNECTIONS {
                judge(report, word, &rounds);
            }
        }
    }
    drop((asynchronous, synchronous));
    match launch(lab, &site, outboard::NAME, "")? {
        Some(stack) => beside_redis(lab, report, &stack, &put, &get),
        None => Ok(()),
    }
}

/// A gateway whose store has a listener of its own, which is what is measured.
fn launch(lab: &mut Lab, site: &Site, name: &'static str, how: &str) -> Result<Option<Stack>> {
    let address: SocketAddr = free_address()?;
    let folder = lab.folder(name)?.join(format!("entities-{}", address.port()));
    let entities = format!("[entities]\nfolder = {folder:?}\nlisten = \"{address}\"\n{how}");
    let setup = Setup::classic(lab, &site.root).named(name).with(&entities);
    let launched = Outboard::launch(lab, &setup)?;
    Ok(launched.map(|outboard| Stack { address, ..outboard.stack }))
}

fn judge(report: &mut Report, word: &str, rounds: &Rounds) {
    let bar = format!("{word} 15,000/s c=64: p99 ≤ 2 ms");
    let rejected = format!("{word} 15,000/s c=64: 0 rejected");
    match rounds.of(outboard::NAME) {
        None => report.verdicts.push(Verdict::not_measured(&bar, NOT_BUILT)),
        Some(series) => {
            let p99_ms = series.values(|slice| slice.load.latency.p99_us / 1e3);
            report.verdicts.push(Verdict::at_most(&bar, 2.0, &p99_ms, "ms"));
            let measured = format!("{} answers, {}", series.answers(), series.failures());
            report.verdicts.push(Verdict::exact(&rejected, series.is_flawless(), measured));
        }
    }
}

fn beside_redis(
    lab: &mut Lab,
    report: &mut Report,
    outboard: &Stack,
    put: &Ask,
    get: &Ask,
) -> Result<()> {
    let redis = match redis::start(lab) {
        Ok(redis) => redis,
        Err(error) => {
            report.notes.push(format!("entity without Redis: {error}"));
            return Ok(());
        }
    };
    generator::run_count(&Task::new(outboard.address, put, CONNECTIONS), FILLING)?;
    redis::load(&redis, "set", CONNECTIONS, FILLING, KEYS, VALUE.len())?;
    let seconds = lab.effort.slice_seconds;
    for (word, ask, command, part) in [("PUT", put, "set", 0.6), ("GET", get, "get", 0.8)] {
        let rounds = interleave(lab, &[outboard, &redis], |stack| match stack.name {
            redis::NAME => {
                let count = (seconds * 50_000.0) as u64;
                redis::load(stack, command, CONNECTIONS, count, KEYS, VALUE.len())
            }
            _ => generator::load(stack, ask, CONNECTIONS, seconds),
        })?;
        report.add_rounds(&format!("{word} against Redis c=64"), &rounds);
        let bar = format!("{word}: requests per second of CPU ≥ {part} × Redis");
        report.verdicts.push(cpu_verdict(&rounds, &bar, redis::NAME, 1.0 / part));
    }
    Ok(())
}
