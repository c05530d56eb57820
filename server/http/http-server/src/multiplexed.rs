//! What HTTP/2 and HTTP/3 have in common: a connection with many requests at a time, each in a task of its own.
//!
//! Used by both front ends, which differ in how frames become events and in how responses become frames. The task
//! of a connection owns its [`Requests`]; it shares an [`OpenStream`] with the task of each of them. Invariant: a
//! connection is looked at once a second, even if nothing happens on it.

mod open_stream;
mod requests;

pub(crate) use open_stream::OpenStream;
pub(crate) use requests::{Accepted, Requests, Sizes};

use outboard_reactor::{now_ms, with_deadline};
use std::future::poll_fn;
use std::task::Poll;

/// The interval of checks whether the connection is idle or a stream has stalled.
pub(crate) const CHECK_MS: u64 = 1_000;
/// Frames, each of which may have only a few bytes, take so much longer to process than the same bytes
/// of a body.
pub(crate) const FRAMES_WEIGHT: usize = 8;

/// The rest of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// All of it.
    Head,
    /// So many bytes of the body.
    Bytes(u64),
    /// Until [`MessageStream::end`](crate::message_stream::MessageStream::end).
    Open,
    /// The response is complete, or the stream was reset.
    Nothing,
}

/// The work of the task of a connection.
pub(crate) trait Turns {
    /// How a connection ends.
    type End;

    /// Reads and writes as much as possible without waiting.
    fn poll_turn(&mut self) -> Poll<Self::End>;

    /// Checks, once a second, what no event reports.
    fn check(&mut self) -> Option<Self::End>;
}

/// Serves a connection until it ends.
pub(crate) async fn run<T: Turns>(connection: &mut T) -> T::End {
    loop {
        let turn = poll_fn(|_| connection.poll_turn());
        let ended = with_deadline(now_ms() + CHECK_MS, turn).await.ok();
        if let Some(end) = ended.or_else(|| connection.check()) {
            return end;
        }
    }
}
