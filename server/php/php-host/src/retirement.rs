//! Retiring the snapshots of the app for a script.
//!
//! Used by the request's exchange, and by a worker script outside of requests. Invariant: when a call
//! returns, no request that begins is served by a retired snapshot.

use crate::link::Link;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, Completion, Part};
use outboard_ring::spsc::Corrupt;

/// Returns how many snapshots were retired; `None` if the ring is corrupt.
pub(crate) fn through(link: &mut Link, request: Tag, key: &[u8]) -> Option<u64> {
    retire(link, request, key).unwrap_or_else(|corrupt| {
        link.set_broken(corrupt);
        None
    })
}

fn retire(link: &mut Link, request: Tag, key: &[u8]) -> Result<Option<u64>, Corrupt> {
    let completion = link.call(request, Call::RetireSnapshot(key), &[])?;
    Ok(match Completion::decode(&completion)?.part {
        Part::Retired(count) => Some(u64::from(count)),
        _ => None,
    })
}
