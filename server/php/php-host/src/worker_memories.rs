//! [`WorkerMemories`]: what a zygote reads the memory of its workers by, for backtraces.
//!
//! Owned by a zygote. A worker is not dumpable, so that neither PHP nor a program of the same user opens
//! `/proc/PID/mem`, and the zygote cannot either. The worker opens its own when it was just forked, before
//! code of the app runs in it, and sends it. Invariants: it is open for reading only; the worker never waits
//! for the zygote; what the zygote has open belongs to a worker that it has not reaped.

use crate::process;
use outboard_ring::control;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// See the module.
#[derive(Debug)]
pub(crate) struct WorkerMemories {
    receiving: OwnedFd,
    sending: OwnedFd,
    memories: BTreeMap<u64, OwnedFd>,
}

impl WorkerMemories {
    pub(crate) fn new() -> io::Result<Self> {
        let (receiving, sending) = control::pair()?;
        rustix::io::ioctl_fionbio(&receiving, true)?;
        Ok(Self { receiving, sending, memories: BTreeMap::new() })
    }

    /// In a worker. Without room the zygote has no memory of it, and signals it instead.
    pub(crate) fn send(&mut self, worker: u64) -> io::Result<()> {
        self.memories.clear();
        let memory = process::open_of_self("/proc/self/mem")?;
        let _ = control::try_send(&self.sending, &worker, &[memory.as_fd()]);
        Ok(())
    }

    /// In the zygote: takes what workers have sent.
    pub(crate) fn receive(&mut self) {
        while let Ok(Some((worker, descriptors))) = control::receive(&self.receiving) {
            self.memories.extend(descriptors.into_iter().map(|memory| (worker, memory)));
        }
    }

    pub(crate) fn of(&mut self, worker: u64) -> Option<BorrowedFd<'_>> {
        self.receive();
        self.memories.get(&worker).map(OwnedFd::as_fd)
    }

    /// The worker has ended.
    pub(crate) fn forget(&mut self, worker: u64) {
        self.receive();
        self.memories.remove(&worker);
    }

    /// For a worker, which closes them.
    pub(crate) fn descriptors(&self) -> [RawFd; 2] {
        [self.receiving.as_raw_fd(), self.sending.as_raw_fd()]
    }
}
