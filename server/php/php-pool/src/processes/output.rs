//! [`ProcessOutput`]: the log of what an instance of a process prints.
//!
//! Read from the pipe of each run. Invariant: the allowance is that of the instance (by its type, which shares it), so that
//! one that is started again and again writes no more than one that runs.

use super::instance::Instance;
use crate::allowance::Allowance;
use crate::output_lines::OutputLog;
use outboard_log::Level;
use std::rc::Rc;

/// See the module.
pub(super) struct ProcessOutput(pub(super) Rc<Instance>, pub(super) Rc<Allowance>);

impl OutputLog for ProcessOutput {
    fn allowance(&self) -> &Allowance {
        &self.1
    }

    fn add(&self, text: &str) {
        if let Some(dropped) = self.1.take_dropped() {
            self.0.add(Level::Warn, &self.1.describe_dropped(dropped));
        }
        self.0.add(Level::Warn, text);
    }

    fn flush(&self) {
        self.0.flush();
    }
}
