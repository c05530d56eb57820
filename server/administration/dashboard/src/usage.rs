//! [`Usage`]: processor time and memory of the machine, the gateway and the workers at a time; [`Meter`]: what each app has used
//! since the time before.
//!
//! Part of the totals and of the history. Invariant: a worker counts once, by its process id, whatever has become of its pool;
//! of one that was not there before all of its time counts.

use std::collections::{BTreeMap, HashMap};

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    /// Processor time of all programs of the machine since its boot.
    pub machine_us: u64,
    /// Processor time of the gateway since its start.
    pub gateway_us: u64,
    /// What programs can still have.
    pub available_bytes: u64,
    /// Of the gateway.
    pub gateway_bytes: u64,
    /// The workers.
    pub workers: Vec<WorkerUsage>,
}

/// A worker.
#[derive(Debug, Clone, Default)]
pub struct WorkerUsage {
    /// Its app.
    pub app: String,
    /// Its process id.
    pub pid: i32,
    /// Its processor time since its start.
    pub us: u64,
    /// What it does not share.
    pub own_bytes: u64,
}

/// Of the workers of an app, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PhpUse {
    pub(crate) us: u64,
    pub(crate) own_bytes: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    last_us: HashMap<i32, u64>,
    is_started: bool,
}

impl Meter {
    /// What the workers have used since the last call, by app.
    pub(crate) fn add(&mut self, workers: &[WorkerUsage]) -> BTreeMap<String, PhpUse> {
        let mut apps: BTreeMap<String, PhpUse> = BTreeMap::new();
        let mut seen = HashMap::with_capacity(workers.len());
        for worker in workers {
            let before = self.last_us.get(&worker.pid).filter(|before| **before <= worker.us);
            // What was before the first look is of no interval.
            let us =
                worker.us - if self.is_started { before.copied().unwrap_or(0) } else { worker.us };
            let sum = apps.entry(worker.app.clone()).or_default();
            sum.us += us;
            sum.own_bytes += worker.own_bytes;
            seen.insert(worker.pid, worker.us);
        }
        (self.last_us, self.is_started) = (seen, true);
        apps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(app: &str, pid: i32, us: u64) -> WorkerUsage {
        WorkerUsage { app: app.to_owned(), pid, us, own_bytes: 10 }
    }

    #[test]
    fn what_workers_have_used_since_is_summed_by_app() {
        let mut meter = Meter::default();
        let first = meter.add(&[worker("a", 1, 500), worker("b", 2, 100)]);
        assert_eq!(first["a"], PhpUse { us: 0, own_bytes: 10 });
        // 2 has ended, 3 is new, 1 has gone on.
        let next = meter.add(&[worker("a", 1, 530), worker("a", 3, 7)]);
        assert_eq!(next["a"], PhpUse { us: 37, own_bytes: 20 });
        assert!(!next.contains_key("b"));
        // The id of a process that has ended is another one's.
        let reused = meter.add(&[worker("a", 1, 530), worker("a", 3, 2)]);
        assert_eq!(reused["a"].us, 2);
    }
}
