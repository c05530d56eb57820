//! Purges of other gateways, as one connection receives them.
//!
//! They arrive in order, or are read from the list of the latest ones; [`super::known_purges`] applies
//! them.

use super::link::Link;
use super::message::Message;
use super::{LocalTiers, SharedTier};
use outboard_resp::Value;

/// Purges that are read in addition to the missed ones, since more can arrive meanwhile.
const CATCH_UP_MARGIN: u64 = 64;
/// Why a connection ends whose epoch is over.
const LOST: &str = "it has lost what was stored there";

impl SharedTier {
    /// The generation of the server, if its epoch is the one that was joined.
    pub(super) fn generation_of(&self, link: &Link, state: &Value) -> Option<u64> {
        let joined = self.epoch.borrow();
        match state.as_array() {
            Some([epoch, generation]) if epoch.as_bytes() == Some(joined.as_bytes()) => {
                generation.as_integer()?.try_into().ok()
            }
            _ => {
                link.disconnect(LOST);
                None
            }
        }
    }

    /// Applies the purges that were missed.
    pub(super) async fn catch_up(&self, local: &dyn LocalTiers, link: &Link) -> Option<()> {
        let state = self.commands.state(link);
        let generation = self.generation_of(link, &state.wait().await.ok()?)?;
        let missing = generation.saturating_sub(self.known_generation(link)?);
        if missing == 0 {
            return Some(());
        }
        let latest = self.commands.latest(link, missing + CATCH_UP_MARGIN).wait().await.ok()?;
        let latest = messages(latest.as_array()?).collect();
        self.known.apply_all(local, &self.epoch.borrow(), latest)?;
        (self.known_generation(link)? >= generation).then_some(())
    }

    /// Applies a purge that was pushed; false if one before it is missing.
    pub(super) fn apply(&self, local: &dyn LocalTiers, link: &Link, message: Message) -> bool {
        let is_applied = self.known.apply(local, &self.epoch.borrow(), message);
        is_applied.unwrap_or_else(|| {
            link.disconnect(LOST);
            true
        })
    }

    /// The number of the latest purge that was applied here, in the epoch that was joined.
    pub(super) fn known_generation(&self, link: &Link) -> Option<u64> {
        let known = self.known.generation_in(&self.epoch.borrow());
        if known.is_none() {
            // Another shard has noticed it.
            link.disconnect(LOST);
        }
        known
    }
}

pub(super) fn messages(texts: &[Value]) -> impl Iterator<Item = Message> {
    texts.iter().filter_map(|text| Message::decoded(text.as_bytes()?))
}
