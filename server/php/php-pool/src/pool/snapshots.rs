//! [`SnapshotNotes`]: which scripts of classic mode take a snapshot, and whom a pool tells what the start of its own
//! script has read.
//!
//! Asked by the gateway for each request. Invariants: the number of scripts is limited; a pool is one of one snapshot.

use crate::exchange::Exchange;
use crate::freshness::{BootRead, Freshness};
use outboard_admin_api::status as api;
use outboard_ring::request::{Field, peek};
use rustix::fd::OwnedFd;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// More scripts that take snapshots are handled as before.
const MAX_SCRIPTS: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SnapshotNotes {
    /// Scripts of classic mode that have called `Outboard\snapshot()`, by `SCRIPT_NAME`.
    scripts: RefCell<BTreeSet<Box<[u8]>>>,
    /// The state of its snapshot, if that is renewed.
    freshness: RefCell<Option<Arc<Freshness>>>,
}

impl SnapshotNotes {
    /// A script of classic mode has called `Outboard\snapshot()`.
    pub(super) fn record(&self, exchange: &Exchange) {
        let Some(name) = peek(&exchange.frame, Field::ScriptName) else { return };
        let mut scripts = self.scripts.borrow_mut();
        if scripts.len() < MAX_SCRIPTS && !scripts.contains(name) {
            scripts.insert(name.into());
        }
    }

    /// Whether any script has.
    pub(super) fn has_any(&self) -> bool {
        !self.scripts.borrow().is_empty()
    }

    /// Whether the script with this `SCRIPT_NAME` has.
    pub(super) fn has(&self, script: &[u8]) -> bool {
        self.scripts.borrow().contains(script)
    }

    pub(super) fn set_freshness(&self, freshness: Arc<Freshness>) {
        let earlier = self.freshness.replace(Some(freshness));
        debug_assert!(earlier.is_none(), "the pool belongs to a snapshot already");
    }

    /// Whether it is renewed, so that what the start has read is of use.
    pub(super) fn is_renewed(&self) -> bool {
        self.freshness.borrow().is_some()
    }

    /// The start of the script of this pool has read files with these keys, and those of the list.
    pub(super) fn booted(
        &self,
        pool: u64,
        keys: Vec<String>,
        list: Option<OwnedFd>,
        is_complete: bool,
        max_age_s: u64,
    ) {
        let freshness = self.freshness.borrow().clone();
        let Some(freshness) = freshness else { return };
        let keys = keys.into_iter().collect();
        let is_blind = !is_complete || list.is_none();
        let max_age_ms = Some(max_age_s.saturating_mul(1_000)).filter(|age| *age > 0);
        let read = BootRead { keys, list, is_blind, max_age_ms, ..BootRead::default() };
        freshness.booted(pool, read);
    }

    pub(super) fn status(&self) -> Option<api::Snapshot> {
        self.freshness.borrow().as_ref().map(|freshness| freshness.status())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_buffer::RequestBody;
    use outboard_ring::request::{FIELD_COUNT, Fixed, RequestParts, encode};

    fn request_of(script: &str) -> Exchange {
        let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
        fields[Field::ScriptName as usize] = script.as_bytes();
        let none = std::iter::empty;
        let parts =
            RequestParts { fixed: Fixed::default(), fields, headers: none(), params: none() };
        let mut frame = Vec::new();
        encode(parts, &mut frame);
        Exchange::new(frame, RequestBody::empty(), 1, 0, 1)
    }

    #[test]
    fn scripts_that_take_snapshots_are_known_up_to_a_number() {
        outboard_reactor::run(async {
            let notes = SnapshotNotes::default();
            assert!(!notes.has_any() && !notes.is_renewed());
            for number in 0..=MAX_SCRIPTS {
                notes.record(&request_of(&format!("/{number}.php")));
            }
            assert!(notes.has_any() && notes.has(b"/0.php") && !notes.has(b"/x.php"));
            assert!(!notes.has(format!("/{MAX_SCRIPTS}.php").as_bytes()));
        })
        .unwrap();
    }
}
