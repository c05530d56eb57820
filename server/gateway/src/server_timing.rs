//! The field `Server-Timing`, by which a browser shows what a response waited for, in development.
//!
//! Called for responses of scripts and of other servers. In production it would report to visitors how long
//! things take.

use outboard_http_server::HeaderBlock;

/// Adds a field; one of the application remains.
pub(crate) fn add(headers: &mut HeaderBlock, value: &str) {
    // Digits and names are a valid value.
    let _ = headers.add(b"Server-Timing", value.as_bytes());
}

/// `1.25`.
pub(crate) fn milliseconds(us: u64) -> String {
    format!("{}.{:02}", us / 1_000, us % 1_000 / 10)
}
