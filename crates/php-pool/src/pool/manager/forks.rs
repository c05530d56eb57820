//! Ordering workers from the zygote.
//!
//! Called by the manager's sizing and queue, and for what takes a worker's place.

use super::super::allowance::Allowance;
use super::super::worker::Worker;
use super::super::worker_output::{self, OutputReader};
use super::super::{Phase, Pool, WorkerId};
use outboard_log::Level;
use outboard_reactor::Interest::ReadEdge;
use outboard_reactor::{Source, now_ms, spawn};
use outboard_ring::channel::Capacities;
use outboard_supervisor::worker::WorkerProcess;
use std::io;
use std::rc::Rc;

impl Pool {
    /// Orders a worker into a free slot; returns its number.
    pub(in crate::pool) fn fork(&self) -> Option<u64> {
        match self.try_fork() {
            Ok(number) => Some(number),
            Err(error) => {
                self.say(Level::Error, &format!("cannot make a worker: {error}"));
                self.manager.borrow_mut().backoff.failed_to_start(now_ms());
                None
            }
        }
    }

    /// Puts fresh forks in the place of those that have answered their request.
    pub(in crate::pool) fn replace_used_forks(&self) {
        let used = self.used_forks.take();
        if used == 0 || self.phase.get() != Phase::Serving {
            return;
        }
        let most = self.manager.borrow().sizing.bounds.max();
        let now = self.members.borrow().staying();
        for _ in 0..used.min(most.saturating_sub(now)) {
            self.fork();
        }
    }

    fn try_fork(&self) -> io::Result<u64> {
        let number = {
            let mut manager = self.manager.borrow_mut();
            manager.next_worker += 1;
            manager.next_worker
        };
        let zygote = self.zygote.borrow();
        let zygote = zygote.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let (capacities, now_ms) = (Capacities::DEFAULT, now_ms());
        let mut process = match &self.manager.borrow().output {
            Some(output) => {
                WorkerProcess::fork_with_output(output, zygote, number, capacities, now_ms)?
            }
            None => WorkerProcess::fork(zygote, number, capacities, now_ms)?,
        };
        let rung = process.take_worker_doorbell().map(|bell| Source::new(bell.into_fd(), ReadEdge));
        let rung = rung.transpose()?;
        let output = process.take_output();
        let printed = output.as_ref().and_then(|output| output.try_clone().ok());
        let (concurrency, resident) = (self.settings.concurrency(), self.settings.is_resident());
        let allowance = match output {
            Some(_) => Rc::new(Allowance::new(self.settings.log_rate)),
            None => self.allowance.clone(),
        };
        self.members.borrow_mut().add(|slot| {
            let id = WorkerId { pool: self.id, slot, number };
            Worker::new(id, process, printed, concurrency, resident, allowance.clone(), rung)
                .counted_below(&self.memory.borrow())
        });
        self.counters.borrow_mut().forks += 1;
        if let (Some(output), Some(pool)) = (output, self.me.upgrade()) {
            let printer = OutputReader { pool, number: Some(number), allowance };
            spawn(worker_output::relay(printer, output));
        }
        Ok(number)
    }
}
