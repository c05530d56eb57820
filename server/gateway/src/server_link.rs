//! [`ServerLink`]: a connection to another server of an upgrade, as the gateway knows it.
//!
//! Held by the gateway of the lead; [`crate::upgrade_link`] implements it.

use std::fmt;

/// See the module.
pub(crate) trait ServerLink: fmt::Debug {
    /// Whether an older server still has requests that need this one.
    fn is_needed(&self) -> bool;

    /// Whether nothing is on its way.
    fn is_quiet(&self) -> bool;

    /// Ends it.
    fn close(&self);

    /// Passes a purge on.
    fn send(&self, frame: Vec<u8>);
}
