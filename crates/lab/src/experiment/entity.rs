//! A store of values by key over HTTP: PUT and GET at a fixed rate, answered by a store that waits
//! for its disk in threads of its own and by one that has the whole server wait.
//!
//! Values have 256 bytes, keys are drawn from 10,000, the durability is `interval`. First 15,000
//! requests a second over 4, 64 and 512 connections, on the clock, with buffers so small that files
//! are written within every slice; beside them a store whose memory holds less than a tenth of its
//! records, mixes of reads and writes like those of YCSB, and three times what the store can do. Then,
//! with the usual buffers, as fast as answers come, against Redis with `appendfsync everysec`.

use std::net::SocketAddr;
use std::time::Duration;

use crate::ask::Ask;
use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::experiment::{NOT_BUILT, crowds};
use crate::generator::{self, Task};
use crate::lab::{Lab, free_address};
use crate::load;
use crate::outboard::{self, Outboard, Setup};
use crate::redis;
use crate::report::Report;
use crate::site::Site;
use crate::slice::{Rounds, Slice, interleave};
use crate::stack::Stack;
use crate::verdict::Verdict;

const RATE: f64 = 15_000.0;
const SYNCHRONOUS: &str = "outboard, synchronous";
const LITTLE_MEMORY: &str = "outboard, a tenth in memory";
const RECORD: &str = "/v0/entity?id=key{key}";
const KEYS: u64 = 10_000;
/// So many random writes leave none of the keys out.
const FILLING: u64 = 200_000;
/// The connections of the bars.
const CONNECTIONS: usize = 64;
const CROWDS: [usize; 3] = [CONNECTIONS, 4, 512];

/// At 15,000 values a second, five files in four seconds.
const SMALL_BUFFER: &str = "buffer = \"4 MiB\"\n";

/// Records are 3 MiB with their names.
const TENTH: &str = "memory = \"256 KiB\"\nbuffer = \"256 KiB\"\n";

/// Of twenty requests so many read, as in the mixes of YCSB with these letters.
const MIXES: [(&str, usize); 3] = [("A", 10), ("B", 19), ("C", 20)];
const OF: usize = 20;

/// For [`overload`]: enough for the loop to be behind.
const MANY: usize = 512;
const TIMES: f64 = 3.0;

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
    if let Some(stack) = &asynchronous {
        mixes(lab, report, stack, &put, &get)?;
        overload(lab, report, stack, &put)?;
    }
    drop((asynchronous, synchronous));
    if let Some(stack) = launch(lab, &site, LITTLE_MEMORY, TENTH)? {
        larger_than_memory(lab, report, &stack, &put, &get)?;
    }
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
            let bar = format!("{word} 15,000/s c=64: p99.9 ≤ 10 ms");
            report.verdicts.push(Verdict::at_most(&bar, 10.0, &series.values(p999_ms), "ms"));
            let measured = format!("{} answers, {}", series.answers(), series.failures());
            report.verdicts.push(Verdict::exact(&rejected, series.is_flawless(), measured));
        }
    }
}

fn p999_ms(slice: &Slice) -> f64 {
    let place = load::QUANTILES.iter().position(|quantile| *quantile == 0.999);
    let us = place.and_then(|place| slice.load.spectrum_us.get(place));
    us.map_or(f64::NAN, |us| us / 1e3)
}

/// Reads and writes of the same keys, on the clock.
fn mixes(lab: &mut Lab, report: &mut Report, stack: &Stack, put: &Ask, get: &Ask) -> Result<()> {
    for (letter, reads) in MIXES {
        let asks = (0..OF).map(|number| if number < reads { get } else { put });
        let asks: Vec<Ask> = asks.cloned().collect();
        let (seconds, task) = (
            Duration::from_secs_f64(lab.effort.slice_seconds),
            Task { asks, ..Task::on(stack, get, CONNECTIONS) },
        );
        let rounds = interleave(lab, &[stack], |_| Ok(generator::run_for(&task, seconds)?.load))?;
        let share = 100 * reads / OF;
        report.add_rounds(&format!("YCSB {letter}: {share} % reads, c=64"), &rounds);
    }
    Ok(())
}

/// What is answered well while more comes than can be done, by what can be done.
fn overload(lab: &mut Lab, report: &mut Report, stack: &Stack, put: &Ask) -> Result<()> {
    let seconds = lab.effort.slice_seconds;
    let peak = interleave(lab, &[stack], |stack| generator::load(stack, put, MANY, seconds))?;
    report.add_rounds("PUT as fast as answered c=512", &peak);
    let Some(peak) = peak.of(stack.name).map(|series| series.median(|slice| slice.load.rate()))
    else {
        return Ok(());
    };
    let above = interleave(lab, &[stack], |stack| {
        generator::load_at(stack, put, MANY, seconds, TIMES * peak)
    })?;
    report.add_rounds("PUT at three times that c=512", &above);
    if let Some(series) = above.of(stack.name) {
        let good = |slice: &Slice| {
            let good = slice.load.answers.saturating_sub(slice.load.failures.status);
            good as f64 / slice.load.seconds / peak
        };
        let bar = "PUT, three times overloaded: good answers ≥ 0.9 × peak";
        report.verdicts.push(Verdict::at_least(bar, 0.9, &series.values(good), "× peak"));
    }
    Ok(())
}

/// Most reads go to files, and every write is soon in one.
fn larger_than_memory(
    lab: &mut Lab,
    report: &mut Report,
    stack: &Stack,
    put: &Ask,
    get: &Ask,
) -> Result<()> {
    generator::run_count(&Task::new(stack.address, put, CONNECTIONS), FILLING)?;
    let seconds = lab.effort.slice_seconds;
    for (word, ask) in [("PUT", put), ("GET", get)] {
        let rounds = interleave(lab, &[stack], |stack| {
            generator::load_at(stack, ask, CONNECTIONS, seconds, RATE / 3.0)
        })?;
        report.add_rounds(&format!("{word} 5,000/s c=64, a tenth in memory"), &rounds);
    }
    Ok(())
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
