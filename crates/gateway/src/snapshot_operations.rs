//! Retirements of snapshots that PHP requests: `Outboard\snapshot_retire()`.
//!
//! Precedes an app's other operations; the pool passes the operations of workers to it. Invariant: when the
//! completion is sent, no request that begins on any thread is served by a retired snapshot.

use outboard_php_pool::freshness::{Cause, Snapshots};
use outboard_php_pool::pool::WorkerId;
use outboard_php_pool::pool::operations::{Operations, Requester};
use outboard_ring::operation::{Call, Completion, Operation, Part};
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct SnapshotOperations {
    snapshots: Arc<Snapshots>,
    others: Rc<dyn Operations>,
}

impl SnapshotOperations {
    /// Retirements of an app with these snapshots, and its other operations.
    pub(crate) fn before(others: Rc<dyn Operations>, snapshots: Arc<Snapshots>) -> Rc<Self> {
        Rc::new(Self { snapshots, others })
    }
}

impl Operations for SnapshotOperations {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        let &Operation { id, call: Call::RetireSnapshot(key), .. } = operation else {
            return self.others.begin(requester, operation);
        };
        let key = String::from_utf8_lossy(key);
        let retired = match &*key {
            "" => self.snapshots.retire(None, &Cause::Script),
            key => self.snapshots.retire(Some(key), &Cause::Key(key.to_owned())),
        };
        let retired = u32::try_from(retired).unwrap_or(u32::MAX);
        // A worker that has ended does not wait for it.
        let _ = requester.send(&Completion { id, part: Part::Retired(retired) });
    }

    fn forget(&self, worker: WorkerId) {
        self.others.forget(worker);
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        self.others.has_any(worker)
    }
}
