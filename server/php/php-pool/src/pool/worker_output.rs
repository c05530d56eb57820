//! [`OutputReader`]: the log of what PHP's processes print.
//!
//! Its lines are read from each pipe, started by the manager. If a worker dies while it starts, the manager
//! reads the rest of its pipe first: its exit may be reported before its last output, which says why.
//! Invariant: a process writes no more lines than its [`Allowance`] permits (by its type, which has one).

use super::core::PoolCore;
use crate::allowance::Allowance;
use crate::output_lines::OutputLog;
use outboard_log::{Event as LogEvent, Level};
use outboard_ring::frame::Tag;
use std::rc::Rc;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct OutputReader {
    pub(super) core: Rc<PoolCore>,
    /// The worker; `None` for the zygote.
    pub(super) number: Option<u64>,
    pub(super) allowance: Rc<Allowance>,
}

impl OutputReader {
    pub(super) fn of_zygote(core: Rc<PoolCore>) -> Self {
        let allowance = core.log.allowance().clone();
        Self { core, number: None, allowance }
    }
}

impl OutputLog for OutputReader {
    fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    fn printed(&self, bytes: &[u8]) {
        let Some(number) = self.number else {
            return self.core.php.borrow_mut().record_output(bytes);
        };
        self.core.with_worker(number, |worker| worker.record_startup_output(bytes));
    }

    fn add(&self, text: &str) {
        let (mut worker, mut request) = (None, None);
        if let Some(number) = self.number {
            self.core.with_worker(number, |found| {
                worker = found.process.pid;
                request = found.request_id(Tag::default());
            });
        }
        let event = LogEvent { worker, request, ..self.core.log.app_event(text) };
        self.core.log.add(Level::Warn, event);
    }

    fn dropping(&self) {
        self.core.lifecycle.end_rest();
    }

    fn ends_with_output(&self) -> bool {
        self.number.is_some()
    }

    fn flush(&self) {
        self.core.log.flush();
    }
}
