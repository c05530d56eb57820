//! Forks of workers, by the zygote.
//!
//! Called by the manager to size the pool, for loopback requests, and to replace workers.

use super::super::activity::WorkerBell;
use super::super::allowance::Allowance;
use super::super::worker::Worker;
use super::super::worker_output::{self, OutputReader};
use super::super::{Phase, Pool, WorkerId};
use outboard_log::Level;
use outboard_reactor::{Source, now_ms, spawn};
use outboard_ring::channel::Capacities;
use outboard_supervisor::worker::WorkerProcess;
use std::io;
use std::rc::Rc;

impl Pool {
    /// Orders a worker for a free slot; returns its number.
    pub(in crate::pool) fn fork(&self) -> Option<u64> {
        match self.try_fork() {
            Ok(number) => Some(number),
            Err(error) => {
                self.log(Level::Error, &format!("cannot create a worker: {error}"));
                self.manager.borrow_mut().backoff.failed_to_start(now_ms());
                None
            }
        }
    }

    /// Replaces forks that have processed their one request.
    pub(in crate::pool) fn replace_used_forks(&self) {
        let used = self.used_forks.take();
        if used == 0 || self.phase.get() != Phase::Serving {
            return;
        }
        let max = self.manager.borrow().sizing.bounds.max();
        let active = self.members.borrow().active();
        for _ in 0..used.min(max.saturating_sub(active)) {
            self.fork();
        }
    }

    fn try_fork(&self) -> io::Result<u64> {
        let number = {
            let mut manager = self.manager.borrow_mut();
            manager.last_worker = self.shard.next_worker(manager.last_worker);
            manager.last_worker
        };
        let zygote = self.zygote.borrow();
        let zygote = zygote.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let (capacities, now_ms) = (Capacities::DEFAULT, now_ms());
        let mut process = match &self.manager.borrow().shared_output {
            Some(output) => {
                WorkerProcess::fork_with_output(output, zygote, number, capacities, now_ms)?
            }
            None => WorkerProcess::fork(zygote, number, capacities, now_ms)?,
        };
        let output = process.take_output();
        let unread = output.as_ref().and_then(|output| output.try_clone().ok());
        let allowance = match output {
            Some(_) => Rc::new(Allowance::new(self.settings.log_rate)),
            None => self.allowance.clone(),
        };
        let mut members = self.members.borrow_mut();
        let slot = members.free_slot();
        let bell = Rc::new(WorkerBell { pool: self.weak_self.clone(), slot });
        let doorbell = process.take_worker_doorbell();
        let doorbell = doorbell.map(|fd| Source::with_bell(fd.into_fd(), bell)).transpose()?;
        let id = WorkerId { pool: self.id, slot, number };
        let worker = Worker::new(self, id, process, unread, allowance.clone(), doorbell);
        members.workers[slot] = Some(worker);
        drop(members);
        self.counters.borrow_mut().forks += 1;
        if let (Some(output), Some(pool)) = (output, self.weak_self.upgrade()) {
            let reader = OutputReader { pool, number: Some(number), allowance };
            spawn(worker_output::relay(reader, output));
        }
        Ok(number)
    }
}
