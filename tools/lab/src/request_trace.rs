//! What PHP processes recorded about their requests, compared with what the client saw: the exact
//! accounting of killed workers.
//!
//! [`crate::site::TRACED`] appends `+ID` at the start of a request and `-ID` at the end of its
//! script to a file named by its process id. The server itself reports nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crate::error::{Result, ResultExt};
use crate::generator::Account;
use crate::load::Failure;
use outboard_profile::process_table::Pid;

/// One line of a process's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent {
    /// The script of this request has started.
    Began(u64),
    /// It has ended; its response may still have been in flight.
    Ended(u64),
}

/// The events of every process, in order.
#[derive(Debug, Default)]
pub struct RequestTrace(HashMap<Pid, Vec<TraceEvent>>);

impl RequestTrace {
    /// Reads all files of the directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let context = || format!("read the trace in {}", directory.display());
        let mut trace = HashMap::new();
        for entry in std::fs::read_dir(directory).context(context)? {
            let entry = entry.context(context)?;
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let text = std::fs::read_to_string(entry.path()).context(context)?;
            trace.insert(pid, text.lines().filter_map(parse).collect());
        }
        Ok(Self(trace))
    }
}

fn parse(line: &str) -> Option<TraceEvent> {
    let number = line.get(1..)?.parse().ok()?;
    match line.as_bytes()[0] {
        b'+' => Some(TraceEvent::Began(number)),
        b'-' => Some(TraceEvent::Ended(number)),
        _ => None,
    }
}

/// The accounting of killed workers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CrashAccounting {
    /// Workers killed.
    pub killed: usize,
    /// Requests whose script was running in a killed worker.
    pub running: usize,
    /// 502s of requests that a killed worker held before the script started or after it ended.
    pub at_the_edge: usize,
    /// Requests whose script was running in a killed worker and that got no 502.
    pub without_502: usize,
    /// 502s that no killed worker explains; each can explain one.
    pub unexplained_502: usize,
    /// Responses of other statuses, and requests without a response.
    pub other_failures: u64,
    /// Requests whose script was started more than once.
    pub run_twice: usize,
}

impl CrashAccounting {
    /// Whether exactly the requests in flight in killed workers got a 502 and all others a 200.
    pub fn is_exact(&self) -> bool {
        let wrong = self.without_502 + self.unexplained_502 + self.run_twice;
        wrong == 0 && self.other_failures == 0
    }
}

/// Compares the client's result with the trace.
pub fn account_crashes(trace: &RequestTrace, killed: &[Pid], account: &Account) -> CrashAccounting {
    let mut bad: BTreeSet<u64> = BTreeSet::new();
    let failures = &account.load.failures;
    let mut other_failures = failures.total() - failures.count(Failure::Status);
    for &(number, status) in &account.rejected {
        if status == 502 {
            bad.insert(number);
        } else {
            other_failures += 1;
        }
    }
    let mut accounting =
        CrashAccounting { killed: killed.len(), other_failures, ..CrashAccounting::default() };
    let mut unused = 0;
    for pid in killed {
        match trace.0.get(pid).and_then(|trace| trace.last()) {
            Some(TraceEvent::Began(number)) => {
                accounting.running += 1;
                accounting.without_502 += usize::from(!bad.remove(number));
            }
            Some(TraceEvent::Ended(number)) if bad.remove(number) => accounting.at_the_edge += 1,
            _ => unused += 1,
        }
    }
    // The rest can only have been held by a worker that died before the script started.
    let begun = times_begun(trace);
    let unbegun = bad.iter().filter(|number| !begun.contains_key(number)).count();
    accounting.at_the_edge += unbegun.min(unused);
    accounting.unexplained_502 = bad.len() - unbegun.min(unused);
    accounting.run_twice = begun.values().filter(|&&times| times > 1).count();
    accounting
}

fn times_begun(trace: &RequestTrace) -> BTreeMap<u64, usize> {
    let mut times = BTreeMap::new();
    for event in trace.0.values().flatten() {
        if let TraceEvent::Began(number) = event {
            *times.entry(*number).or_default() += 1;
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(processes: &[(Pid, &str)]) -> RequestTrace {
        let parsed = |text: &str| text.split(' ').filter_map(parse).collect();
        RequestTrace(processes.iter().map(|&(pid, text)| (pid, parsed(text))).collect())
    }

    fn account(rejected: &[(u64, u16)]) -> Account {
        let mut account = Account::default();
        account.rejected.extend_from_slice(rejected);
        account.load.failures = [(Failure::Status, rejected.len() as u64)].into();
        account
    }

    #[test]
    fn a_killed_worker_and_its_502_match() {
        let accounting =
            account_crashes(&trace(&[(7, "+1 -1 +2"), (8, "+3 -3")]), &[7], &account(&[(2, 502)]));
        assert!(accounting.is_exact(), "{accounting:?}");
        assert_eq!((accounting.killed, accounting.running, accounting.at_the_edge), (1, 1, 0));
    }

    #[test]
    fn a_502_of_a_surviving_worker_is_unexplained() {
        let accounting = account_crashes(
            &trace(&[(7, "+1 -1 +2"), (8, "+3 -3")]),
            &[7],
            &account(&[(2, 502), (3, 502)]),
        );
        assert_eq!(accounting.unexplained_502, 1);
    }

    #[test]
    fn a_running_request_without_a_502_is_noticed() {
        let accounting = account_crashes(&trace(&[(7, "+2")]), &[7], &account(&[]));
        assert_eq!(accounting.without_502, 1);
    }

    #[test]
    fn one_killed_worker_explains_one_502_that_never_began() {
        let idle = trace(&[(7, "+1 -1")]);
        assert!(account_crashes(&idle, &[7], &account(&[(5, 502)])).is_exact());
        assert_eq!(
            account_crashes(&idle, &[7], &account(&[(5, 502), (6, 502)])).unexplained_502,
            1
        );
    }

    #[test]
    fn other_statuses_lost_responses_and_repeats_are_never_exact() {
        assert!(!account_crashes(&trace(&[]), &[], &account(&[(1, 503)])).is_exact());
        assert!(
            !account_crashes(&trace(&[(7, "+1 -1"), (8, "+1 -1")]), &[], &account(&[])).is_exact()
        );
        let mut lost = account(&[]);
        lost.load.failures.add(Failure::Closed);
        assert!(!account_crashes(&trace(&[]), &[], &lost).is_exact());
    }
}
