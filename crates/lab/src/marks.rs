//! What the PHP processes themselves wrote down about their requests, against what the client
//! saw: the exact account of a worker's death.
//!
//! [`crate::site::MARKED`] writes `+ID` when a request begins and `-ID` when its script has
//! ended, into a file named by its process. The judgement needs no word from the server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::error::{Doing, Result};
use crate::generator::Account;
use crate::process_table::Pid;

/// One line of a process's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The script of this request has begun.
    Began(u64),
    /// It has ended; its answer may still have been on the way.
    Ended(u64),
}

/// The marks of every process, in order.
#[derive(Debug, Default)]
pub struct Marks(HashMap<Pid, Vec<Mark>>);

impl Marks {
    /// Reads all files of the folder.
    pub fn read(folder: &Path) -> Result<Self> {
        let doing = || format!("read the marks in {}", folder.display());
        let mut marks = HashMap::new();
        for entry in std::fs::read_dir(folder).doing(doing)? {
            let entry = entry.doing(doing)?;
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let text = std::fs::read_to_string(entry.path()).doing(doing)?;
            marks.insert(pid, text.lines().filter_map(parse).collect());
        }
        Ok(Self(marks))
    }
}

fn parse(line: &str) -> Option<Mark> {
    let number = line.get(1..)?.parse().ok()?;
    match line.as_bytes()[0] {
        b'+' => Some(Mark::Began(number)),
        b'-' => Some(Mark::Ended(number)),
        _ => None,
    }
}

/// The account of a number of killed workers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Workers killed.
    pub killed: usize,
    /// Requests whose script was running in a killed worker.
    pub running: usize,
    /// 502s of requests that a killed worker held before the script began or after it ended.
    pub at_the_edge: usize,
    /// Requests whose script was running in a killed worker and that got no 502.
    pub without_502: usize,
    /// 502s that no killed worker explains: each can explain one.
    pub unexplained_502: usize,
    /// Answers of other statuses, and requests without an answer.
    pub other_failures: u64,
    /// Requests whose script was begun more than once.
    pub run_twice: usize,
}

impl Judgement {
    /// True when exactly the requests in flight in the killed workers got a 502 and everything
    /// else a 200.
    pub fn is_exact(&self) -> bool {
        let wrong = self.without_502 + self.unexplained_502 + self.run_twice;
        wrong == 0 && self.other_failures == 0
    }
}

/// Holds the client's account against the marks.
pub fn judge(marks: &Marks, killed: &[Pid], account: &Account) -> Judgement {
    let mut bad: BTreeSet<u64> = BTreeSet::new();
    let failures = &account.load.failures;
    let mut other_failures = failures.total() - failures.status;
    for &(number, status) in &account.rejected {
        if status == 502 {
            bad.insert(number);
        } else {
            other_failures += 1;
        }
    }
    let mut judgement = Judgement { killed: killed.len(), other_failures, ..Judgement::default() };
    let mut unused = 0;
    for pid in killed {
        match marks.0.get(pid).and_then(|marks| marks.last()) {
            Some(Mark::Began(number)) => {
                judgement.running += 1;
                judgement.without_502 += usize::from(!bad.remove(number));
            }
            Some(Mark::Ended(number)) if bad.remove(number) => judgement.at_the_edge += 1,
            _ => unused += 1,
        }
    }
    // What is left can only have been taken by a worker that died before the script began.
    let begun = times_begun(marks);
    let unbegun = bad.iter().filter(|number| !begun.contains_key(number)).count();
    judgement.at_the_edge += unbegun.min(unused);
    judgement.unexplained_502 = bad.len() - unbegun.min(unused);
    judgement.run_twice = begun.values().filter(|&&times| times > 1).count();
    judgement
}

fn times_begun(marks: &Marks) -> BTreeMap<u64, usize> {
    let mut times = BTreeMap::new();
    for mark in marks.0.values().flatten() {
        if let Mark::Began(number) = mark {
            *times.entry(*number).or_default() += 1;
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(processes: &[(Pid, &str)]) -> Marks {
        let parsed = |text: &str| text.split(' ').filter_map(parse).collect();
        Marks(processes.iter().map(|&(pid, text)| (pid, parsed(text))).collect())
    }

    fn account(rejected: &[(u64, u16)]) -> Account {
        let mut account = Account::default();
        account.rejected.extend_from_slice(rejected);
        account.load.failures.status = rejected.len() as u64;
        account
    }

    #[test]
    fn the_running_request_of_a_killed_worker_and_its_502_match() {
        let judgement =
            judge(&marks(&[(7, "+1 -1 +2"), (8, "+3 -3")]), &[7], &account(&[(2, 502)]));
        assert!(judgement.is_exact(), "{judgement:?}");
        assert_eq!((judgement.killed, judgement.running, judgement.at_the_edge), (1, 1, 0));
    }

    #[test]
    fn a_502_of_a_surviving_worker_is_unexplained() {
        let judgement =
            judge(&marks(&[(7, "+1 -1 +2"), (8, "+3 -3")]), &[7], &account(&[(2, 502), (3, 502)]));
        assert_eq!(judgement.unexplained_502, 1);
    }

    #[test]
    fn a_running_request_that_was_answered_otherwise_is_noticed() {
        let judgement = judge(&marks(&[(7, "+2")]), &[7], &account(&[]));
        assert_eq!(judgement.without_502, 1);
    }

    #[test]
    fn one_killed_worker_explains_one_502_that_never_began() {
        let idle = marks(&[(7, "+1 -1")]);
        assert!(judge(&idle, &[7], &account(&[(5, 502)])).is_exact());
        assert_eq!(judge(&idle, &[7], &account(&[(5, 502), (6, 502)])).unexplained_502, 1);
    }

    #[test]
    fn other_statuses_lost_answers_and_repeats_are_never_exact() {
        assert!(!judge(&marks(&[]), &[], &account(&[(1, 503)])).is_exact());
        assert!(!judge(&marks(&[(7, "+1 -1"), (8, "+1 -1")]), &[], &account(&[])).is_exact());
        let mut lost = account(&[]);
        lost.load.failures.broken = 1;
        assert!(!judge(&marks(&[]), &[], &lost).is_exact());
    }
}
