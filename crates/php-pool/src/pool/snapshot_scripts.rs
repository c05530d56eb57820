//! What a pool knows of snapshots: which scripts of classic mode take one, and what the boot of its own script
//! has read.
//!
//! Asked by the gateway for each request. Invariant: the number of scripts is limited.

use super::{Phase, Pool};
use crate::exchange::Exchange;
use outboard_ring::control::RequestRead;
use outboard_ring::request::{Field, peek};
use std::rc::Rc;

/// More scripts that take snapshots are handled as before.
const MAX_SCRIPTS: usize = 64;

impl Pool {
    /// A script of classic mode has called `Outboard\snapshot()`.
    pub(super) fn record_snapshot(&self, exchange: &Exchange) {
        let Some(name) = peek(&exchange.frame, Field::ScriptName) else { return };
        let mut scripts = self.snapshot_scripts.borrow_mut();
        if scripts.len() < MAX_SCRIPTS && !scripts.contains(name) {
            scripts.insert(name.into());
        }
    }

    /// Whether any script has called `Outboard\snapshot()`.
    pub fn knows_snapshots(&self) -> bool {
        !self.snapshot_scripts.borrow().is_empty()
    }

    /// Whether the script with this `SCRIPT_NAME` has.
    pub fn takes_snapshot(&self, script: &[u8]) -> bool {
        self.snapshot_scripts.borrow().contains(script)
    }

    /// What the last boot of the worker script has read of a request; `None` before the first one is complete.
    pub fn request_reads(&self) -> Option<Rc<[RequestRead]>> {
        self.manager.borrow().request_reads.clone()
    }

    /// Whether workers are forks of the booted script.
    pub fn takes_snapshots(&self) -> bool {
        self.settings.forks_script() && !self.settings.runs_program()
    }

    /// Whether its script is one of classic mode, whose requests need no snapshot.
    pub(crate) fn is_of_classic_mode(&self) -> bool {
        self.settings.boots_classic_script()
    }

    /// Whether requests are handled without waiting for a start.
    pub fn is_serving(&self) -> bool {
        self.phase.get() == Phase::Serving
    }

    /// Whether workers are rewound after each request.
    pub fn is_rewinding(&self) -> bool {
        self.manager.borrow().rewind.is_some()
    }
}
