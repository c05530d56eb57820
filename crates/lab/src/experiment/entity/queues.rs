//! Which share of the server's CPU time goes into queues while 15,000 values a second are written.
//!
//! A sample counts when the innermost function of the project in it belongs to a queue: so what the
//! kernel and the library do for a queue, waking a thread for one, is the queue's, and what a batch
//! does when it has come out of one is not.

use std::time::Duration;

use super::rates::RATE;
use super::{CONNECTIONS, put};
use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::profile::folded::Folded;
use crate::profile::{self, Kind, Profile, Sampling};
use crate::report::Report;
use crate::stack::Stack;
use crate::verdict::Verdict;

/// What waits for a thread, the way of a batch to it and back, and the answers.
const QUEUES: [&str; 3] = ["queue", "lane", "reply"];
const STORE: &str = "outboard_entity_store::";
const BAR: &str = "PUT 15,000/s c=64: queue operations ≤ 1 % of CPU";
const LIMIT: f64 = 0.01;
/// Fewer say nothing about one in a hundred.
const SAMPLES_MIN: u64 = 300;

pub(super) fn run(lab: &mut Lab, report: &mut Report, stack: &Stack) -> Result<()> {
    let seconds = if lab.effort.is_quick() { 3 } else { 20 };
    let sampling = Sampling { duration: Duration::from_secs(seconds), hz: 999 };
    let pids = stack.group.pids();
    let folded = profile::during(
        || generator::load_at(stack, &put(), CONNECTIONS, 0.5, RATE),
        || profile::native(&pids, sampling, &lab.scratch),
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
        Err(error) => report.verdicts.push(Verdict::not_measured(BAR, &error.to_string())),
    }
    Ok(())
}

fn judge(folded: &Folded) -> Verdict {
    let all = folded.samples();
    if all < SAMPLES_MIN {
        return Verdict::not_measured(BAR, &format!("perf took {all} samples"));
    }
    let found: u64 =
        folded.0.iter().filter(|(stack, _)| is_of_queue(stack)).map(|(_, count)| count).sum();
    let share = found as f64 / all as f64;
    let measured = format!("{:.2} %: {found} of {all} samples", share * 100.0);
    Verdict::exact(BAR, share <= LIMIT, measured)
}

/// Frames are told from the outermost on.
fn is_of_queue(stack: &str) -> bool {
    let ours = |frame: &&str| frame.trim_start_matches(['<', '&']).starts_with("outboard_");
    let Some(innermost) = stack.split(';').rev().find(ours) else { return false };
    let module = innermost.trim_start_matches(['<', '&']).strip_prefix(STORE);
    module.and_then(|rest| rest.split("::").next()).is_some_and(|name| QUEUES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_for_a_queue_is_the_queues_and_what_comes_out_of_it_is_not() {
        let of = |frames: &str| is_of_queue(&format!("outboard;main;{frames}"));
        assert!(of("outboard_entity_store::lane::Lane::hand_over;write;[kernel]"));
        assert!(of("outboard_gateway::x;<outboard_entity_store::queue::Queue<T>>::push"));
        assert!(!of("outboard_entity_store::lane::run;outboard_entity_store::committer::commit"));
        assert!(!of("outboard_entity_store::queues::x"));
        assert!(!of("memcpy"));
    }

    #[test]
    fn one_sample_in_a_hundred_is_borne_and_two_are_not() {
        let folded = |queue: u64| {
            let text =
                format!("a;outboard_entity_store::queue::push {queue}\na;other {}", 1000 - queue);
            judge(&Folded::read(&text)).outcome
        };
        use crate::verdict::Outcome;
        assert_eq!([folded(10), folded(20)], [Outcome::Pass, Outcome::Fail]);
        assert_eq!(judge(&Folded::default()).outcome, Outcome::NotMeasured);
    }
}
