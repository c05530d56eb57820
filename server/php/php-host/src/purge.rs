//! Purging pages of the app for a script.
//!
//! Used by the request's exchange, and by a worker script outside of requests. Invariant: the
//! gateway has purged everything when a call returns.

use crate::link::Link;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Call, Completion, Part};
use outboard_ring::purge::{PurgeCall, Selected};
use outboard_ring::spsc::Corrupt;

/// The maximum size of an operation besides its selectors, and of a selector besides its text.
const OVERHEAD_BYTES: usize = 16;

/// Returns how many pages were purged; `None` if the ring is corrupt or a selector does not fit.
pub(crate) fn through(link: &mut Link, request: Tag, call: &PurgeCall<'_>) -> Option<u64> {
    purge(link, request, call).unwrap_or_else(|corrupt| {
        link.set_broken(corrupt);
        None
    })
}

fn purge(link: &mut Link, request: Tag, call: &PurgeCall<'_>) -> Result<Option<u64>, Corrupt> {
    let most_bytes = link.largest_piece_bytes - OVERHEAD_BYTES;
    let mut rest = &call.selected[..];
    let mut purged = 0;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(fitting(rest, most_bytes));
        if batch.is_empty() {
            return Ok(None);
        }
        let batch = PurgeCall { is_soft: call.is_soft, selected: batch.to_vec() };
        let completion = link.call(request, Call::Purge(batch), &[])?;
        match Completion::decode(&completion)?.part {
            Part::Purged(count) => purged += u64::from(count),
            _ => return Ok(None),
        }
        rest = later;
    }
    Ok(Some(purged))
}

/// How many of these selectors fit into one operation.
fn fitting(selected: &[Selected<'_>], most_bytes: usize) -> usize {
    let mut taken_bytes = 0;
    let fits = |one: &&Selected<'_>| {
        taken_bytes += OVERHEAD_BYTES + one.text().len();
        taken_bytes <= most_bytes
    };
    selected.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_go_in_batches_that_fit() {
        let selected = [Selected::Tag(&[b'a'; 84]), Selected::All, Selected::Url(&[b'b'; 100])];
        assert_eq!(fitting(&selected, 1000), 3);
        assert_eq!(fitting(&selected, 116), 2);
        assert_eq!(fitting(&selected, 100), 1);
        assert_eq!(fitting(&selected, 99), 0);
    }
}
