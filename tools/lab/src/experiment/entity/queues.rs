//! The share of the server's CPU time in queues while 15,000 values per second are written.
//!
//! A sample counts if its innermost function of the project belongs to a queue: library functions
//! called by a queue count, and work on a batch after it has left the queue does not. Every futex
//! counts as well, since an optimised build does not show perf its caller and there is hardly
//! another use of them here.

use std::time::Duration;

use outboard_profile::folded::Folded;
use outboard_profile::{Sampling, native};

use super::rates::RATE;
use super::store::{CONNECTIONS, put};
use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::profile::{self, Kind, Profile};
use crate::report::Report;
use crate::stack::Stack;
use crate::statistics::Estimate;
use crate::verdict::Verdict;

/// The modules of waiting threads, of batches and of responses.
const QUEUES: [&str; 4] = ["queue", "thread_pool", "batch_worker", "oneshot"];
const STORE: &str = "outboard_entity_store::";
const TARGET: &str = "PUT 15,000/s c=64: queue operations ≤ 1 % of CPU";
const LIMIT: f64 = 0.01;
/// Fewer samples say nothing about one in a hundred.
const SAMPLES_MIN: u64 = 100;
/// The length of a profile in slices.
const SLICES: f64 = 6.0;

pub(super) fn run(lab: &mut Lab, report: &mut Report, stack: &Stack) -> Result<()> {
    let duration = Duration::from_secs_f64(SLICES * lab.effort.slice_seconds);
    let sampling = Sampling { duration, hz: 999 };
    let pids = stack.group.pids();
    let folded = profile::during(
        || generator::load_at(stack, &put(), CONNECTIONS, 0.5, RATE),
        || Ok(native(&pids, sampling, &lab.scratch)?),
    )?;
    match folded {
        Ok(folded) => {
            report.verdicts.push(judge(&folded));
            let section = report.sections.last().map_or_else(String::new, |one| one.name.clone());
            report.profiles.push(Profile {
                section,
                experiment: "PUT 15,000/s c=64".into(),
                stack: stack.name.into(),
                kind: Kind::Native,
                folded,
            });
        }
        Err(error) => report.verdicts.push(Verdict::not_measured(TARGET, &error.to_string())),
    }
    Ok(())
}

fn judge(folded: &Folded) -> Verdict {
    let all = folded.samples();
    if all < SAMPLES_MIN {
        return Verdict::not_measured(TARGET, &format!("perf took {all} samples"));
    }
    let count = |is_meant: fn(&str) -> bool| -> u64 {
        folded.0.iter().filter(|(stack, _)| is_meant(stack)).map(|(_, count)| count).sum()
    };
    let (found, futexes) = (count(is_of_queue), count(is_of_futex));
    let share = share(found, all);
    let Estimate { low, middle, high, .. } = share;
    let [low, middle, high] = [low, middle, high].map(|part| format!("{:.2}", part * 100.0));
    let measured = format!(
        "{middle} [{low}, {high}] %: {found} of {all} samples, {futexes} of them waiting for or \
         waking a thread"
    );
    Verdict::share_at_most(TARGET, LIMIT, share, measured)
}

/// The number of samples is random: the square root of such a count is within one of its mean in 95
/// of 100 cases (Anscombe 1948).
fn share(found: u64, all: u64) -> Estimate {
    let (found, all) = (found as f64, all as f64);
    Estimate {
        low: (found.sqrt() - 1.0).max(0.0).powi(2) / all,
        middle: found / all,
        high: ((found + 1.0).sqrt() + 1.0).powi(2) / all,
        confidence: 0.95,
    }
}

fn is_of_futex(stack: &str) -> bool {
    stack.split(';').any(|frame| frame.contains("futex"))
}

/// Frames are ordered from the outermost on.
fn is_of_queue(stack: &str) -> bool {
    if is_of_futex(stack) {
        return true;
    }
    let ours = |frame: &&str| frame.trim_start_matches(['<', '&']).starts_with("outboard_");
    let Some(innermost) = stack.split(';').rev().find(ours) else { return false };
    let module = innermost.trim_start_matches(['<', '&']).strip_prefix(STORE);
    module.and_then(|rest| rest.split("::").next()).is_some_and(|name| QUEUES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_inside_a_queue_counts() {
        let of = |frames: &str| is_of_queue(&format!("outboard;main;{frames}"));
        assert!(of("outboard_entity_store::batch_worker::BatchWorker::run;memcpy"));
        assert!(of("[unknown];syscall;do_syscall_64;__x64_sys_futex;futex_wake;wake_up_q"));
        assert!(of("outboard_gateway::x;<outboard_entity_store::queue::Queue<T>>::push"));
        assert!(!of(
            "outboard_entity_store::batch_worker::run;outboard_entity_store::committer::commit"
        ));
        assert!(!of("outboard_entity_store::queues::x"));
        assert!(!of("memcpy"));
    }

    #[test]
    fn a_share_near_the_limit_is_undecided() {
        let folded = |queue: u64| {
            let text =
                format!("a;outboard_entity_store::queue::push {queue}\na;other {}", 1000 - queue);
            judge(&Folded::read(&text)).outcome
        };
        use crate::verdict::Outcome;
        let outcomes = [folded(2), folded(10), folded(30)];
        assert_eq!(outcomes, [Outcome::Pass, Outcome::Undecided, Outcome::Fail]);
        assert_eq!(judge(&Folded::default()).outcome, Outcome::NotMeasured);
    }
}
