//! Purges of other gateways.
//!
//! They arrive in order, or are read from the list of the latest ones. Invariant: the log has every
//! purge up to its latest one, or counts all older entries as purged.

use super::link::Link;
use super::message::Message;
use super::{LocalTiers, SharedTier, count};
use crate::purge::Selector;
use crate::purge_log::PurgeLog;
use outboard_resp::Value;

/// Purges that are read in addition to the missed ones, since more can arrive meanwhile.
const CATCH_UP_MARGIN: u64 = 64;

impl SharedTier {
    /// The generation of the server, if its epoch is the known one.
    pub(super) fn generation_of(&self, link: &Link, state: &Value) -> Option<u64> {
        let known = self.epoch.borrow();
        match state.as_array() {
            Some([epoch, generation]) if epoch.as_bytes() == Some(known.as_bytes()) => {
                generation.as_integer()?.try_into().ok()
            }
            _ => {
                link.disconnect("it has lost what was stored there");
                None
            }
        }
    }

    /// Applies the purges that were missed.
    pub(super) async fn catch_up(&self, local: &dyn LocalTiers, link: &Link) -> Option<()> {
        let state = self.commands.state(link);
        let generation = self.generation_of(link, &state.wait().await.ok()?)?;
        let missing = generation.saturating_sub(self.generation());
        if missing == 0 {
            return Some(());
        }
        let latest = self.commands.latest(link, missing + CATCH_UP_MARGIN).wait().await.ok()?;
        self.apply_all(local, latest.as_array()?);
        (self.generation() >= generation).then_some(())
    }

    pub(super) fn apply_all(&self, local: &dyn LocalTiers, latest: &[Value]) {
        for message in messages(latest) {
            if message.generation > self.generation() + 1 {
                self.purge_all(local, PurgeLog::since(message.generation - 1));
            }
            self.apply(local, message);
        }
    }

    /// Applies a purge if it is the next one; false if one before it is missing.
    pub(super) fn apply(&self, local: &dyn LocalTiers, message: Message) -> bool {
        let next = self.generation() + 1;
        if message.generation != next {
            return message.generation < next;
        }
        if message.node != self.node {
            count(&self.counts.purges_received);
            local.purge_locally(message.selector.clone(), message.is_soft);
        }
        self.purges.borrow_mut().note(message.generation, message.selector);
        true
    }

    /// Purges everything here, because some purges are not known.
    pub(super) fn purge_all(&self, local: &dyn LocalTiers, known: PurgeLog) {
        local.purge_locally(Selector::All, false);
        self.purges.replace(known);
    }
}

pub(super) fn messages(texts: &[Value]) -> impl Iterator<Item = Message> {
    texts.iter().filter_map(|text| Message::decoded(text.as_bytes()?))
}
