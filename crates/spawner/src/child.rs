//! A process that the spawner has started for the gateway.

use crate::order::{Answer, Order};
use crate::spawner::Spawner;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

/// Known by the spawner's number for it. It is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    spawner: Arc<Spawner>,
    number: u64,
    pid: u32,
}

impl Child {
    pub(crate) fn new(spawner: Arc<Spawner>, number: u64, pid: u32) -> Self {
        Self { spawner, number, pid }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// Ends it with `SIGKILL`.
    ///
    /// # Errors
    /// That the spawner has gone, and the child with it.
    pub fn kill(&self) -> io::Result<()> {
        self.spawner.ask(&Order::Kill(self.number), &[]).map(drop)
    }

    /// How it ended, once it has.
    pub fn try_wait(&self) -> Option<ExitStatus> {
        match self.spawner.ask(&Order::Look(self.number), &[]) {
            Ok((Answer::Ended(status), _)) => status.map(ExitStatus::from_raw),
            _ => None,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without the spawner there is no child.
        let _ = self.spawner.ask(&Order::Forget(self.number), &[]);
    }
}
