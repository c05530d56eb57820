//! [`Forks`]: forks of workers, by the zygote.
//!
//! Owned by the pool; called by the manager to size the pool, for loopback requests, and to replace workers.
//! Invariant: numbers of workers are not used again.

use super::core::PoolCore;
use super::worker::{NewWorker, Worker};
use super::worker_output::OutputReader;
use crate::output_lines;
use crate::worker_id::WorkerId;
use outboard_buffer::Account;
use outboard_log::Level;
use outboard_reactor::{Source, now_ms, spawn};
use outboard_ring::channel::Capacities;
use outboard_supervisor::worker::WorkerProcess;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Forks {
    /// The number of the last one; 0 before the first.
    last_worker: Cell<u64>,
    /// Forks that have processed their request since this was last taken.
    used: Cell<usize>,
}

impl Forks {
    /// A fork has processed its only request.
    pub(super) fn record_used(&self) {
        self.used.update(|used| used + 1);
    }

    /// The forks that have, since this was last called.
    pub(super) fn take_used(&self) -> usize {
        self.used.take()
    }

    /// Orders a worker for a free slot, whose operations are counted below `memory`; returns its number.
    pub(super) fn fork(&self, core: &Rc<PoolCore>, memory: &Rc<Account>) -> Option<u64> {
        match self.try_fork(core, memory) {
            Ok(number) => Some(number),
            Err(error) => {
                core.log.log(Level::Error, &format!("cannot create a worker: {error}"));
                core.php.borrow_mut().record_failed_start(now_ms());
                None
            }
        }
    }

    fn try_fork(&self, core: &Rc<PoolCore>, memory: &Rc<Account>) -> io::Result<u64> {
        let number = core.shard.next_worker(self.last_worker.get());
        debug_assert!(number > self.last_worker.get() && core.shard.is_owner_of(number));
        self.last_worker.set(number);
        let zygote = core.zygote.borrow();
        let zygote = zygote.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let (capacities, now_ms) = (Capacities::DEFAULT, now_ms());
        let mut process =
            WorkerProcess::fork(zygote, number, capacities, core.settings.has_direct, now_ms)?;
        let output = process.take_output();
        let unread = output.as_ref().and_then(|output| output.try_clone().ok());
        let allowance = core.log.new_allowance();
        let mut members = core.members.borrow_mut();
        let slot = members.roster.free_slot();
        let doorbell = process.take_worker_doorbell();
        let bell = core.bell(slot);
        let doorbell = doorbell.map(|fd| Source::with_bell(fd.into_fd(), bell)).transpose()?;
        let new = NewWorker {
            id: WorkerId { pool: core.id, slot, number },
            is_own: true,
            process,
            output: unread,
            allowance: allowance.clone(),
            doorbell_source: doorbell,
        };
        let worker = Worker::new(new, &core.settings, core.active.clone(), memory);
        members.roster.insert(slot, worker);
        drop(members);
        core.counters.borrow_mut().forks += 1;
        if let Some(output) = output {
            let reader = OutputReader { core: core.clone(), number: Some(number), allowance };
            spawn(output_lines::relay(reader, output));
        }
        Ok(number)
    }
}
