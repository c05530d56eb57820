//! [`Codec`]: the protocol of one connection, as far as the connection needs to know.

use crate::answer::Answer;
use crate::message::Message;
use crate::target::{Protocol, Target};
use crate::{fastcgi, http1, http2, redis};

/// What came, or what was to be sent, has no form in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The lanes of a connection of which something has come.
#[derive(Debug, Default)]
pub(crate) struct Came {
    /// Their answers are whole.
    pub(crate) whole: Vec<usize>,
    /// The server says that it has not looked at their requests, and wants no more of them here.
    pub(crate) refused: Vec<usize>,
    /// The protocol has come to its end.
    pub(crate) is_over: bool,
}

impl Came {
    pub(crate) fn is_nothing(&self) -> bool {
        self.whole.is_empty() && self.refused.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.whole.clear();
        self.refused.clear();
        self.is_over = false;
    }
}

/// The state of one protocol on one connection.
pub(crate) enum Codec {
    Http1(http1::Reader),
    Http2(Box<http2::Session>),
    FastCgi { reader: fastcgi::Reader, keep_alive: bool },
    Redis(redis::Reader),
}

impl Codec {
    pub(crate) fn new(target: &Target, keep_alive: bool, lanes: usize) -> Self {
        match target.protocol {
            Protocol::Http1 => Codec::Http1(http1::Reader::new()),
            Protocol::Http2 => {
                Codec::Http2(Box::new(http2::Session::new(target.tls_name.is_some(), lanes)))
            }
            Protocol::FastCgi => Codec::FastCgi { reader: fastcgi::Reader::default(), keep_alive },
            Protocol::Redis => Codec::Redis(redis::Reader::default()),
        }
    }

    /// A new connection begins.
    pub(crate) fn reset(&mut self) {
        if let Codec::Http2(session) = self {
            session.reset();
        }
    }

    /// A request of this method is about to be sent as bytes that were made beforehand.
    pub(crate) fn begin(&mut self, method: &str) {
        match self {
            Codec::Http1(reader) => reader.begin(method),
            Codec::FastCgi { reader, .. } => reader.begin(),
            Codec::Redis(reader) => reader.begin(),
            Codec::Http2(_) => {}
        }
    }

    /// Takes what came; says in `came` for which lanes. All but HTTP/2 have one.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        answers: &mut [Answer],
        came: &mut Came,
    ) -> Result<(), Malformed> {
        let is_whole = match self {
            Codec::Http1(reader) => reader.feed(bytes, &mut answers[0])?,
            Codec::Http2(session) => return session.feed(bytes, answers, came),
            Codec::FastCgi { reader, keep_alive } => {
                answers[0].keep_alive = *keep_alive;
                reader.feed(bytes, &mut answers[0])?
            }
            Codec::Redis(reader) => reader.feed(bytes, &mut answers[0])?,
        };
        if is_whole {
            came.whole.push(0);
        }
        Ok(())
    }

    /// The peer sends nothing more; true when that ends the answer well.
    pub(crate) fn end(&mut self) -> bool {
        match self {
            Codec::Http1(reader) => reader.end(),
            Codec::Http2(_) | Codec::FastCgi { .. } | Codec::Redis(_) => false,
        }
    }
}

/// The bytes of `message`; `None` in HTTP/2, where they depend on those before.
pub(crate) fn write(
    protocol: Protocol,
    message: &Message,
    keep_alive: bool,
    out: &mut Vec<u8>,
) -> Option<()> {
    match protocol {
        Protocol::Http1 => http1::write(message, keep_alive, out),
        Protocol::FastCgi => fastcgi::write(message, keep_alive, out),
        Protocol::Redis => redis::write(message, out),
        Protocol::Http2 => return None,
    }
    Some(())
}

/// Reads `bytes`, in two pieces, as the answer to a `GET`: its status and the length of its body,
/// or nothing when it is not whole or not well formed. For the fuzz target of the readers.
#[doc(hidden)]
pub fn read_answer(protocol: Protocol, bytes: &[u8], cut: usize) -> Option<(u16, u64)> {
    let mut answer = [Answer { wants_fields: true, wants_body: true, ..Answer::default() }];
    let mut codec = match protocol {
        Protocol::Http1 | Protocol::Http2 => Codec::Http1(http1::Reader::new()),
        Protocol::FastCgi => {
            Codec::FastCgi { reader: fastcgi::Reader::default(), keep_alive: true }
        }
        Protocol::Redis => Codec::Redis(redis::Reader::default()),
    };
    codec.begin("GET");
    let mut came = Came::default();
    for piece in [&bytes[..cut], &bytes[cut..]] {
        if !piece.is_empty() {
            // Bytes after a whole answer belong to none.
            let was_whole = !came.whole.is_empty();
            came.clear();
            if !was_whole {
                codec.feed(piece, &mut answer, &mut came).ok()?;
            }
        }
    }
    (!came.whole.is_empty() || codec.end()).then_some((answer[0].status, answer[0].body_bytes))
}
