//! [`ForwardedOperations`]: operations that one thread of the server carries out for all
//! ([`Call::is_for_lead`]).
//!
//! The pools of the other threads pass such operations to the pool of the same app on the lead's
//! thread, and pass its completions to their workers. Invariants: to the operations of the lead a
//! requester of another thread is like one of its own; a worker whose operations the lead has not begun is not
//! read (`Worker::is_behind`); if the lead's pool is gone an operation fails at once.

use super::requester::{Operations, Requester};
use crate::pool::lending::messages::Message;
use crate::pool::lending::shards::{LEAD, Shard};
use crate::worker_id::WorkerId;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, Completion, Failure, Operation, Part};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// On another thread than the lead's: the operations of an app's workers.
#[derive(Debug)]
pub struct ForwardedOperations {
    shard: Shard,
    /// The operations that the lead carries out now.
    open: RefCell<HashMap<WorkerId, HashSet<Tag>>>,
    others: Rc<dyn Operations>,
}

impl ForwardedOperations {
    /// The operations of a shard that is not the lead's; `others` carries out those that are not
    /// forwarded.
    pub fn before(others: Rc<dyn Operations>, shard: Shard) -> Rc<Self> {
        debug_assert_ne!(shard.index(), LEAD, "the lead would forward to itself");
        Rc::new(Self { shard, open: RefCell::default(), others })
    }

    /// Whether the lead carries it out.
    fn is_forwarded(&self, worker: WorkerId, operation: &Operation<'_>) -> bool {
        match &operation.call {
            Call::FetchBody(_) | Call::Forget => self.is_open(worker, operation.id),
            call => call.is_for_lead(),
        }
    }

    fn is_open(&self, worker: WorkerId, id: Tag) -> bool {
        self.open.borrow().get(&worker).is_some_and(|open| open.contains(&id))
    }
}

impl Operations for ForwardedOperations {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        let (worker, id) = (requester.worker, operation.id);
        if !self.is_forwarded(worker, operation) {
            return self.others.begin(requester, operation);
        }
        let mut open = self.open.borrow_mut();
        match operation.call {
            Call::Forget => open.entry(worker).or_default().remove(&id),
            _ => open.entry(worker).or_default().insert(id),
        };
        drop(open);
        let (by, request, mut payload) = (self.shard.index(), requester.request, Vec::new());
        operation.encode(&mut payload);
        let bytes = payload.len();
        let trace = requester.context;
        let message = Message::Operation { by, worker, request, trace, payload };
        if self.shard.try_send(LEAD, message).is_ok() {
            requester.is_forwarded(bytes);
        } else {
            self.open.borrow_mut().remove(&worker);
            let (failure, message) = (Failure::Busy, "the server is stopping");
            let part = Part::Failed { failure, message };
            // A worker that has exited does not wait for it.
            let _ = requester.send(&Completion { id, part });
        }
    }

    fn completed(&self, worker: WorkerId, completion: &Completion<'_>) {
        let is_last = !matches!(completion.part, Part::Head(_) | Part::Body(_));
        if is_last && let Some(open) = self.open.borrow_mut().get_mut(&worker) {
            open.remove(&completion.id);
        }
    }

    fn forget(&self, worker: WorkerId) {
        if self.open.borrow_mut().remove(&worker).is_some() {
            self.shard.send(LEAD, Message::Forget { worker });
        }
        self.others.forget(worker);
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        let has_open = self.open.borrow().get(&worker).is_some_and(|open| !open.is_empty());
        has_open || self.others.has_any(worker)
    }
}
