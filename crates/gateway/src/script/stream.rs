//! [`Stream`]: a script's answer that comes in pieces, on its way to the client.
//!
//! Invariant: what the client was sent is what came, in order; an answer that breaks off is broken off.

use super::relay::{finish, put_piece};
use crate::app::App;
use crate::compression::Compression;
use crate::connection::Connection;
use crate::development::live;
use crate::exchange::{Arrived, End, Exchange};
use crate::php_head::PhpHead;
use crate::spool::Taken;
use crate::turn::{Answered, Turn, told};
use outboard_log::Reason;
use outboard_reactor::with_deadline;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

/// An answer that comes in pieces.
pub(super) struct Stream<'a> {
    pub(super) app: &'a App,
    pub(super) head: &'a PhpHead,
    pub(super) exchange: &'a Exchange,
    pub(super) compression: Option<Compression>,
}

impl Stream<'_> {
    pub(super) async fn send(
        mut self,
        connection: &mut Connection,
        turn: &Turn,
        first: Arrived,
    ) -> Answered {
        let head = self.head;
        let tag = live::tag(&connection.gateway, &head.headers);
        let length = head.content_length.map(|length| length + tag.len() as u64);
        let framing = turn.asked.framing(head.status, length);
        let facts = head.facts(turn.asked, framing);
        connection.put_head(facts, &head.headers.bytes);
        let mut sent_bytes = 0;
        let mut arrived = first;
        loop {
            let is_last = arrived.end == Some(End::Complete);
            let Arrived { body, end, held, .. } = arrived;
            let Ok(mut piece) = self.coded(body, is_last).await else {
                return Answered::broken(head.status, sent_bytes);
            };
            if is_last {
                piece.extend_from_slice(tag);
            }
            if !put_piece(connection, framing, &piece, &mut sent_bytes).await {
                return Answered::broken(head.status, sent_bytes);
            }
            drop((piece, held));
            match end {
                Some(End::Complete) => return finish(connection, facts, sent_bytes).await,
                Some(End::Failed(reason)) => {
                    connection.gateway.counters.borrow_mut().refused(reason);
                    let text = told(connection, turn);
                    connection.gateway.log_refusal(Some(self.app), turn.request_id, reason, &text);
                    return Answered::broken(head.status, sent_bytes);
                }
                None => {}
            }
            arrived = match self.next(connection).await {
                Ok(arrived) => arrived,
                Err(reason) => {
                    connection.lost = Some(reason);
                    return Answered::broken(head.status, sent_bytes);
                }
            };
        }
    }

    /// What comes next of the answer; meanwhile the client gets what it has not taken yet.
    async fn next(&self, connection: &mut Connection) -> Result<Arrived, Reason> {
        loop {
            let until_ms = connection.spool_until_ms().unwrap_or(u64::MAX);
            let news = with_deadline(until_ms, poll_fn(|_| self.poll_next(connection))).await;
            match news {
                Ok(Ok(Some(arrived))) => return Ok(arrived),
                Ok(Ok(None)) => {}
                Ok(Err(reason)) => return Err(reason),
                Err(_) => return Err(Reason::WriteTimeout),
            }
        }
    }

    /// `None` when the client has taken something.
    fn poll_next(&self, connection: &mut Connection) -> Poll<Result<Option<Arrived>, Reason>> {
        let taken = connection.send_spool()?;
        self.exchange.set_spooled(connection.spooled_bytes());
        if let Some(arrived) = self.exchange.take() {
            return Poll::Ready(Ok(Some(arrived)));
        }
        match taken {
            Taken::All => connection.wire.poll_hangup().map(|()| Err(Reason::ClientGone)),
            Taken::Some => Poll::Ready(Ok(None)),
            Taken::Nothing => connection.wire.poll_writable().map(|()| Ok(None)),
        }
    }

    /// A piece as it goes out.
    async fn coded(&mut self, bytes: Vec<u8>, is_last: bool) -> io::Result<Vec<u8>> {
        if bytes.is_empty() && !is_last {
            return Ok(bytes);
        }
        match self.compression.take() {
            None => Ok(bytes),
            Some(compression) if is_last => compression.end(bytes).await,
            Some(compression) => {
                let (compression, coded) = compression.piece(bytes).await?;
                self.compression = Some(compression);
                Ok(coded)
            }
        }
    }
}
