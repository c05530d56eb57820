//! [`Calls`]: passes the calls of the worker on, as the gateway does.

use super::*;
use outboard_php_pool::pool::operations::Operations;
use outboard_ring::operation::Operation;

/// See the module.
#[derive(Debug)]
pub(super) struct Calls(pub(super) Rc<FetchOperations>);

impl Operations for Calls {
    fn begin(&self, requester: Requester, &Operation { id, ref call, .. }: &Operation<'_>) {
        match call {
            Call::Fetch(call) => self.0.fetch(requester, id, call),
            Call::Entities(call) => self.0.entities(requester, id, call),
            Call::FetchBody(bytes) => self.0.body(requester.worker(), id, bytes),
            Call::Forget => self.0.close(requester.worker(), id),
            other => panic!("not of the tests: {other:?}"),
        }
    }

    fn forget(&self, worker: WorkerId) {
        self.0.forget(worker);
    }

    fn has_any(&self, worker: WorkerId) -> bool {
        self.0.has_any(worker)
    }
}
