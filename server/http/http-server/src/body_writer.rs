//! [`BodyWriter`]: a response body that is written in pieces, within its framing.
//!
//! Created by the service after the head. Invariant: never more than the announced length is written: the
//! client would take it for the next response.

use crate::header_block::HeaderBlock;
use crate::response_facts::{Framing, Written};
use crate::response_writer::ResponseWriter;
use outboard_buffer::Account;
use outboard_http1::{CHUNK_END, write_chunk_head};
use std::rc::Rc;

/// The last chunk (RFC 9112 7.1), alone and behind data; the trailers follow.
const LAST_CHUNK: &[u8] = b"0\r\n";
const CHUNK_END_AND_LAST_CHUNK: &[u8] = b"\r\n0\r\n";
/// The empty line after the trailers.
const TRAILERS_END: &[u8] = b"\r\n";

/// See the module.
#[derive(Debug)]
pub struct BodyWriter {
    framing: Framing,
    written_bytes: u64,
    trailers: HeaderBlock,
}

impl BodyWriter {
    /// A body with this framing.
    pub fn new(framing: Framing) -> Self {
        Self { framing, written_bytes: 0, trailers: HeaderBlock::default() }
    }

    /// Sends these fields after the body. They are dropped if the framing has no room for them (RFC 9110
    /// 6.5: only a chunked message and a stream do).
    pub fn set_trailers(&mut self, trailers: HeaderBlock) {
        self.trailers = trailers;
    }

    /// Bytes of the body that were written or spooled.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Writes the output buffer and a piece, and waits until the client has read both. False if it is
    /// gone.
    pub async fn write(&mut self, response: &mut ResponseWriter, piece: &[u8]) -> bool {
        let piece = self.take(piece);
        if self.framing == Framing::Chunked && !piece.is_empty() {
            return response.flush_chunk(piece).await;
        }
        response.flush(piece).await
    }

    /// Writes the output buffer and a piece; what a slow client does not read is spooled. False if it is
    /// gone.
    pub async fn write_or_spool(
        &mut self,
        response: &mut ResponseWriter,
        piece: &[u8],
        account: &Rc<Account>,
    ) -> bool {
        let piece = self.take(piece);
        if self.framing == Framing::Chunked && !piece.is_empty() {
            write_chunk_head(&mut response.output, piece.len());
            return response.write_or_spool([piece, CHUNK_END, b""], account).await;
        }
        response.write_or_spool([piece, b"", b""], account).await
    }

    /// Writes the output buffer, the last piece and the end of the body in one write, and waits until the
    /// client has read everything.
    pub async fn finish(
        &mut self,
        response: &mut ResponseWriter,
        last: &[u8],
        keep_alive: bool,
        account: &Rc<Account>,
    ) -> Written {
        let last = self.take(last);
        let end = match self.framing {
            Framing::Chunked if last.is_empty() => LAST_CHUNK,
            Framing::Chunked => {
                write_chunk_head(&mut response.output, last.len());
                CHUNK_END_AND_LAST_CHUNK
            }
            _ => b"",
        };
        let is_complete = match self.framing {
            Framing::Length(length) => self.written_bytes == length,
            _ => true,
        };
        let trailers = &mut self.trailers.bytes;
        let trailers = match self.framing {
            Framing::Chunked if trailers.is_empty() => TRAILERS_END,
            Framing::Chunked => {
                trailers.extend_from_slice(TRAILERS_END);
                trailers
            }
            _ => b"",
        };
        let is_written = response.write_or_spool([last, end, trailers], account).await;
        let is_sent = is_written && is_complete && response.drain_spool().await;
        let stream = response.client.transport.message().filter(|_| is_sent);
        if let Some(stream) = stream.filter(|_| !self.trailers.bytes.is_empty()) {
            stream.send_trailers(&self.trailers.bytes);
        }
        if is_sent { Written::Complete { keep_alive } } else { Written::Broken }
    }

    /// The part of a piece that belongs to the body; it is counted.
    fn take<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        let piece = match self.framing {
            Framing::Bodyless(_) => &[],
            Framing::Length(length) => {
                let left = usize::try_from(length - self.written_bytes).unwrap_or(usize::MAX);
                &piece[..piece.len().min(left)]
            }
            Framing::Chunked | Framing::UntilClose | Framing::Stream => piece,
        };
        self.written_bytes += piece.len() as u64;
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connection_pair, read_all};
    use outboard_reactor::run;

    fn body(framing: Framing, pieces: &'static [&'static [u8]]) -> (String, Written) {
        body_with_trailers(framing, pieces, &[])
    }

    fn body_with_trailers(
        framing: Framing,
        pieces: &'static [&'static [u8]],
        trailers: &'static [(&'static str, &'static str)],
    ) -> (String, Written) {
        let (last, pieces) = pieces.split_last().unwrap();
        run(async move {
            let (mut connection, client) = connection_pair();
            let account = Account::detached();
            let mut writer = BodyWriter::new(framing);
            writer.set_trailers(HeaderBlock::constant(trailers));
            for (number, piece) in pieces.iter().enumerate() {
                match number % 2 {
                    0 => assert!(writer.write(&mut connection.response, piece).await),
                    _ => {
                        assert!(
                            writer.write_or_spool(&mut connection.response, piece, &account).await
                        );
                    }
                }
            }
            let written = writer.finish(&mut connection.response, last, true, &account).await;
            (read_all(&client), written)
        })
        .unwrap()
    }

    const COMPLETE: Written = Written::Complete { keep_alive: true };

    #[test]
    fn a_body_is_never_longer_than_announced() {
        let pieces: &[&[u8]] = &[b"four", b"and more", b"and more"];
        assert_eq!(body(Framing::Length(6), pieces), ("fouran".to_owned(), COMPLETE));
        assert_eq!(body(Framing::Bodyless(Some(4)), pieces), (String::new(), COMPLETE));
    }

    #[test]
    fn a_body_that_is_too_short_breaks_the_connection() {
        assert_eq!(body(Framing::Length(6), &[b"four"]), ("four".to_owned(), Written::Broken));
    }

    #[test]
    fn an_empty_piece_does_not_end_a_chunked_body() {
        let written = body(Framing::Chunked, &[b"four", b"", b"", b"two"]);
        assert_eq!(written, ("4\r\nfour\r\n3\r\ntwo\r\n0\r\n\r\n".to_owned(), COMPLETE));
    }

    #[test]
    fn trailers_follow_the_last_chunk_and_nothing_else() {
        let trailers =
            |framing, pieces| body_with_trailers(framing, pieces, &[("A", "1"), ("B", "2")]);
        let chunked = trailers(Framing::Chunked, &[b"four", b"two"]);
        assert_eq!(chunked.0, "4\r\nfour\r\n3\r\ntwo\r\n0\r\nA: 1\r\nB: 2\r\n\r\n");
        assert_eq!(trailers(Framing::Chunked, &[b""]).0, "0\r\nA: 1\r\nB: 2\r\n\r\n");
        assert_eq!(trailers(Framing::Length(4), &[b"four"]), ("four".to_owned(), COMPLETE));
        assert_eq!(trailers(Framing::UntilClose, &[b"four"]), ("four".to_owned(), COMPLETE));
    }
}
