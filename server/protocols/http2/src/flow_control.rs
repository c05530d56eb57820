//! Flow control (RFC 9113 5.2, 6.9): the windows of a connection or a stream, of either side.
//!
//! Used by `connection` and `stream`. Invariants: a window never exceeds 2^31-1; what is received is
//! announced to the peer again exactly once after it was released, half a window at a time, so that
//! updates are few.

/// The largest window (RFC 9113 6.9.1).
pub(crate) const MAX_WINDOW: u32 = (1 << 31) - 1;
/// The window of a connection, and of streams without SETTINGS (RFC 9113 6.9.2).
pub(crate) const DEFAULT_WINDOW: u32 = 65_535;

/// A window exceeds 2^31-1, or the peer has sent more than the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowControlError;

/// What the peer allows to be sent. A change of SETTINGS may make it negative (RFC 9113 6.9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendWindow(i32);

impl SendWindow {
    /// A window of at most [`MAX_WINDOW`].
    pub(crate) fn new(bytes: u32) -> Self {
        Self(bytes.min(MAX_WINDOW) as i32)
    }

    /// The bytes that may be sent.
    pub(crate) fn bytes(self) -> usize {
        self.0.max(0) as usize
    }

    /// Counts sent bytes, at most [`Self::bytes`].
    pub(crate) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.bytes());
        self.0 -= bytes as i32;
    }

    /// Adds the increment of a WINDOW_UPDATE.
    pub(crate) fn add(&mut self, increment: u32) -> Result<(), FlowControlError> {
        self.change(increment.into())
    }

    /// Applies the difference between two values of SETTINGS_INITIAL_WINDOW_SIZE.
    pub(crate) fn change(&mut self, difference: i64) -> Result<(), FlowControlError> {
        let changed = i64::from(self.0) + difference;
        self.0 = i32::try_from(changed).map_err(|_| FlowControlError)?;
        Ok(())
    }
}

/// What the peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    /// What the peer may send before the next update.
    available: u32,
    /// Received and not released yet.
    unreleased: u32,
    /// Released and not announced yet.
    unannounced: u32,
    /// An update is due when so much is unannounced.
    threshold: u32,
}

impl ReceiveWindow {
    /// A window of at most [`MAX_WINDOW`].
    pub(crate) fn new(bytes: u32) -> Self {
        let bytes = bytes.min(MAX_WINDOW);
        Self { available: bytes, unreleased: 0, unannounced: 0, threshold: (bytes / 2).max(1) }
    }

    /// Counts received bytes, padding included.
    pub(crate) fn receive(&mut self, bytes: u32) -> Result<(), FlowControlError> {
        self.available = self.available.checked_sub(bytes).ok_or(FlowControlError)?;
        self.unreleased += bytes;
        Ok(())
    }

    /// Releases received bytes, at most [`Self::unreleased`]; returns the increment of an update that
    /// is due.
    pub(crate) fn release(&mut self, bytes: u32) -> Option<u32> {
        let bytes = bytes.min(self.unreleased);
        self.unreleased -= bytes;
        self.unannounced += bytes;
        if self.unannounced < self.threshold {
            return None;
        }
        let increment = std::mem::take(&mut self.unannounced);
        self.available += increment;
        Some(increment)
    }

    /// The bytes that were received and not released.
    pub(crate) fn unreleased(&self) -> u32 {
        self.unreleased
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_does_not_exceed_its_maximum() {
        let mut window = SendWindow::new(DEFAULT_WINDOW);
        assert_eq!(window.add(MAX_WINDOW - DEFAULT_WINDOW), Ok(()));
        assert_eq!(window.add(1), Err(FlowControlError));
        assert_eq!(window.bytes(), MAX_WINDOW as usize);
    }

    #[test]
    fn new_settings_can_make_a_window_negative() {
        let mut window = SendWindow::new(100);
        window.take(100);
        assert_eq!(window.change(-60), Ok(()));
        assert_eq!(window.bytes(), 0);
        assert_eq!(window.add(61), Ok(()));
        assert_eq!(window.bytes(), 1);
    }

    #[test]
    fn an_update_is_due_when_half_of_the_window_is_released() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive(101), Err(FlowControlError));
        assert_eq!(window.receive(100), Ok(()));
        assert_eq!(window.release(49), None);
        assert_eq!(window.release(1), Some(50));
        assert_eq!(window.release(1000), Some(50));
        assert_eq!(window.release(1), None);
    }

    proptest! {
        #[test]
        fn no_byte_of_a_window_is_lost(
            size in 1u32..5000,
            steps in prop::collection::vec((0u32..3000, 0u32..3000), 0..100),
        ) {
            let mut window = ReceiveWindow::new(size);
            // The peer's view.
            let (mut allowed, mut unreleased) = (u64::from(size), 0u64);
            for (received, released) in steps {
                if window.receive(received).is_ok() {
                    allowed -= u64::from(received);
                    unreleased += u64::from(received);
                } else {
                    prop_assert!(u64::from(received) > allowed);
                }
                let released = u64::from(released).min(unreleased);
                unreleased -= released;
                allowed += window.release(released as u32).map_or(0, u64::from);
                prop_assert_eq!(u64::from(window.unreleased()), unreleased);
                prop_assert!(allowed + unreleased <= u64::from(size));
                // All but half of what is released is announced.
                prop_assert!(allowed + unreleased + u64::from(size / 2).max(1) > u64::from(size));
            }
        }
    }
}
