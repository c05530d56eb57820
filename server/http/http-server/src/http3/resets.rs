//! [`Resets`]: how often a client gives up what it has requested (CVE-2023-44487), or provokes that this side
//! resets it (CVE-2025-8671, of HTTP/2).
//!
//! Owned by the link. Invariant: a client with more resets than responses loses its connection.

use outboard_http3::ErrorCode;
use std::cell::Cell;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Resets(Cell<u32>);

impl Resets {
    /// At once.
    const MAX: u32 = 200;
    /// As long as the connection lasts.
    pub(super) const PER_SECOND: u32 = 50;

    /// Counts one.
    ///
    /// # Errors
    /// There were too many: the code to close the connection with.
    pub(super) fn count(&self) -> Result<(), ErrorCode> {
        self.0.set(self.0.get() + 1);
        if self.0.get() > Self::MAX { Err(ErrorCode::EXCESSIVE_LOAD) } else { Ok(()) }
    }

    /// A second, or a response that has arrived, makes up for so many.
    pub(super) fn relieve(&self, count: u32) {
        self.0.set(self.0.get().saturating_sub(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_make_up_for_resets_and_a_flood_is_an_error() {
        let resets = Resets::default();
        for _ in 0..10_000 {
            resets.count().unwrap();
            resets.relieve(1);
        }
        for _ in 0..Resets::MAX {
            resets.count().unwrap();
        }
        assert_eq!(resets.count(), Err(ErrorCode::EXCESSIVE_LOAD));
    }
}
