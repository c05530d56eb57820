//! [`AppOperations`]: what the workers of an app may request of the gateway, and who carries it out.
//!
//! One per app, generation and thread; its pools pass the operations of their workers to it. Invariant: each kind
//! of call is handled in one place, and a call that is added to [`Call`] does not compile without one.

use crate::access::{RateLimits, rate_operations};
use crate::page_cache::purge_operations;
use crate::streams::StreamCalls;
use outboard_operations::FetchOperations;
use outboard_page_cache::PageCache;
use outboard_php_pool::freshness::{Cause, Snapshots};
use outboard_php_pool::pool::WorkerId;
use outboard_php_pool::pool::operations::{Operations, Requester};
use outboard_php_pool::tasks::{self, Tasks};
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, Completion, Operation, Part};
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct AppOperations {
    pub(crate) fetches: Rc<FetchOperations>,
    pub(crate) rate_limits: Rc<RateLimits>,
    pub(crate) page_cache: Option<Rc<PageCache>>,
    pub(crate) tasks: Option<Rc<Tasks>>,
    pub(crate) streams: Option<StreamCalls>,
    pub(crate) snapshots: Arc<Snapshots>,
}

impl Operations for AppOperations {
    fn begin(&self, requester: Requester, operation: &Operation<'_>) {
        let id = operation.id;
        match &operation.call {
            Call::Fetch(call) => self.fetches.fetch(requester, id, call),
            Call::Entities(call) => self.fetches.entities(requester, id, call),
            Call::Forget => self.fetches.close(requester.worker(), id),
            // The id is that of a task, or of a fetch.
            Call::FetchBody(bytes) => {
                let (worker, tasks) = (requester.worker(), self.tasks.as_ref());
                if !tasks.is_some_and(|tasks| tasks.receive_data(worker, id, bytes)) {
                    self.fetches.body(worker, id, bytes);
                }
            }
            Call::Rate(call) => rate_operations::begin(&self.rate_limits, requester, id, call),
            Call::Purge(call) => {
                purge_operations::begin(self.page_cache.as_ref(), requester, id, call);
            }
            Call::RetireSnapshot(key) => self.retire(&requester, id, key),
            Call::Task(call) => match &self.tasks {
                Some(tasks) => tasks.receive_call(requester, id, call),
                None => tasks::refuse(&requester, id),
            },
            Call::Stream(call) => {
                if let Some(streams) = &self.streams {
                    streams.begin(&requester, id, call);
                }
            }
            // The pool adds it to the request's trace.
            Call::Span(_) => {}
        }
    }

    fn forget(&self, worker: WorkerId) {
        self.fetches.forget(worker);
        self.tasks.iter().for_each(|tasks| tasks.forget(worker));
        self.streams.iter().for_each(|streams| streams.forget(worker));
    }

    /// A worker of an app with raw connections always has some.
    fn has_any(&self, worker: WorkerId) -> bool {
        self.streams.is_some()
            || self.fetches.has_any(worker)
            || self.tasks.as_ref().is_some_and(|tasks| tasks.has_any(worker))
    }
}

impl AppOperations {
    /// `Outboard\snapshot_retire()`. When the completion is sent, no request that begins on any thread is served by
    /// a retired snapshot.
    fn retire(&self, requester: &Requester, id: Tag, key: &[u8]) {
        let key = String::from_utf8_lossy(key);
        let retired = match &*key {
            "" => self.snapshots.retire(None, &Cause::Script),
            key => self.snapshots.retire(Some(key), &Cause::Key(key.to_owned())),
        };
        // A worker that has ended does not wait for it.
        let _ = requester.send(&Completion { id, part: Part::Number(retired as u64) });
    }
}
