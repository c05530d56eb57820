//! Completions of operations that dispatch tasks.
//!
//! Sent by [`Tasks`](super::Tasks). Invariant: memory for a long result is counted until the worker has read it
//! (by its type: the task that sends it owns the [`Held`](outboard_buffer::Held)).

use crate::pool::operations::{PIECE_BYTES, Requester};
use outboard_reactor::spawn;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Completion, Failure, FetchedHead, Part};

pub(super) fn fail(requester: &Requester, id: Tag, failure: Failure, message: &str) {
    // A worker that has exited does not wait for it.
    let _ = requester.send(&Completion { id, part: Part::Failed { failure, message } });
}

/// Sends a result in the form of a fetched response; a long one as the worker reads it.
pub(super) fn send_result(requester: &Requester, id: Tag, text: &[u8]) {
    let head = FetchedHead { status: 200, http_version: 1, url: b"", headers: b"" };
    if text.len() <= PIECE_BYTES {
        // As above.
        let _ = requester.send(&Completion { id, part: Part::Whole(head, text) });
        return;
    }
    let Some(held) = requester.memory().try_hold(text.len()) else {
        let message = "the result exceeds the memory for operations; see limits.memory";
        return fail(requester, id, Failure::TooLarge, message);
    };
    let (requester, text) = (requester.clone(), text.to_vec());
    spawn(async move {
        // As above.
        let _ = requester.send_whole(id, head, std::iter::once(&text[..])).await;
        drop(held);
    });
}
