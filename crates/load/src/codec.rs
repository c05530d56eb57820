//! [`Codec`]: the protocol of one connection, as far as the connection needs to know.

use crate::answer::Answer;
use crate::http1;
use crate::message::Message;
use crate::target::Protocol;

/// What came is no answer in the protocol.
pub(crate) use crate::http1::Malformed;

/// The state of one protocol on one connection.
pub(crate) enum Codec {
    Http1(http1::Reader),
}

impl Codec {
    pub(crate) fn new(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Http1 | Protocol::Http2 | Protocol::FastCgi => {
                Codec::Http1(http1::Reader::new())
            }
        }
    }

    /// A new connection begins.
    pub(crate) fn reset(&mut self) {
        match self {
            Codec::Http1(_) => {}
        }
    }

    /// A request of this method was, or is about to be, sent.
    pub(crate) fn begin(&mut self, method: &str) {
        match self {
            Codec::Http1(reader) => reader.begin(method),
        }
    }

    /// Takes what came; true when the answer is whole.
    pub(crate) fn feed(&mut self, bytes: &[u8], answer: &mut Answer) -> Result<bool, Malformed> {
        match self {
            Codec::Http1(reader) => reader.feed(bytes, answer),
        }
    }

    /// The peer sends nothing more; true when that ends the answer well.
    pub(crate) fn end(&mut self) -> bool {
        match self {
            Codec::Http1(reader) => reader.end(),
        }
    }
}

/// The bytes of `message`, in protocols where they depend on nothing else.
pub(crate) fn write(protocol: Protocol, message: &Message, keep_alive: bool, out: &mut Vec<u8>) {
    match protocol {
        Protocol::Http1 | Protocol::Http2 | Protocol::FastCgi => {
            http1::write(message, keep_alive, out);
        }
    }
}
