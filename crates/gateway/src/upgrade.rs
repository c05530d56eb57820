//! Switching a connection to another protocol (RFC 9110 7.8): the hand-off.
//!
//! Whoever starts the server offers [`Protocol`]s in [`crate::server::Options`]; the turn asks here
//! for each request whether one of them is wanted. Invariants: a request that no protocol takes is
//! answered as if it had offered nothing (Upgrade is an offer and never a demand), and its fields
//! reach PHP like any other; a connection is handed off only after the whole request was read and
//! `101` was written; the connection counts as open until its protocol has ended.

use crate::answer::{Framing, HeadFacts, Sent, write_within};
use crate::app::App;
use crate::buffers::Buffers;
use crate::connection::Connection;
use crate::gateway::Gateway;
use crate::header_block::HeaderBlock;
use crate::pace::Pace;
use crate::turn::{Answered, Turn};
use crate::wire::Wire;
use outboard_http1::{BodyFraming, InvalidHeader};
use outboard_log::Reason;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

#[cfg(test)]
mod tests;

/// A protocol that connections can be switched to.
pub trait Protocol: Debug {
    /// The word in the Upgrade field, with its version if it has one; case does not matter.
    fn name(&self) -> &'static str;

    /// Looks at a request that offers it. `None`: the request is answered as any other.
    fn accept(&self, offer: &Offer<'_>) -> Option<Switch>;
}

/// A request that offers to switch.
pub struct Offer<'a> {
    buffers: &'a Buffers,
    app: Option<&'a App>,
    client: &'a str,
}

impl Offer<'_> {
    /// The method as received.
    pub fn method(&self) -> &[u8] {
        self.buffers.head.method(&self.buffers.input)
    }

    /// The host that the request is for.
    pub fn host(&self) -> Option<&[u8]> {
        self.buffers.head.host(&self.buffers.input)
    }

    /// The path, decoded and normalised. Neither rewrites nor denials of the app were applied.
    pub fn path(&self) -> &[u8] {
        &self.buffers.path
    }

    /// The query, still encoded.
    pub fn query(&self) -> Option<&[u8]> {
        self.buffers.head.query(&self.buffers.input)
    }

    /// The value of the first field called `name`.
    pub fn header(&self, name: &[u8]) -> Option<&[u8]> {
        self.buffers.head.header(&self.buffers.input, name)
    }

    /// The app that host and path belong to.
    pub fn app(&self) -> Option<&str> {
        self.app.map(|app| app.config.name.as_str())
    }

    /// The address of the client, also behind a trusted proxy.
    pub fn client(&self) -> &str {
        self.client
    }
}

/// What a connection does once it is handed off.
pub(crate) type Speak = Box<dyn FnOnce(Upgraded) -> Pin<Box<dyn Future<Output = ()>>>>;

/// The consent to switch.
pub struct Switch {
    headers: HeaderBlock,
    speak: Speak,
}

impl Switch {
    /// `speak` has the connection from after the `101` on; the connection closes when it ends.
    pub fn new(speak: impl AsyncFnOnce(Upgraded) + 'static) -> Self {
        let speak: Speak = Box::new(move |upgraded| Box::pin(async move { speak(upgraded).await }));
        Self { headers: HeaderBlock::default(), speak }
    }

    /// Adds a field to the `101`; Connection and Upgrade are there.
    ///
    /// # Errors
    /// Name or value is none.
    pub fn header(mut self, name: &[u8], value: &[u8]) -> Result<Self, InvalidHeader> {
        self.headers.add(name, value)?;
        Ok(self)
    }
}

/// A connection that speaks another protocol.
#[derive(Debug)]
pub struct Upgraded {
    wire: Wire,
    /// What the client sent right behind its request.
    read_ahead: Vec<u8>,
    gateway: Rc<Gateway>,
}

impl Upgraded {
    pub(crate) fn new(wire: Wire, read_ahead: Vec<u8>, gateway: Rc<Gateway>) -> Self {
        Self { wire, read_ahead, gateway }
    }

    /// Waits for bytes and appends them; 0 when the client sends no more.
    ///
    /// # Errors
    /// What `read(2)` reports.
    pub async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        std::future::poll_fn(|_| self.poll_read(into)).await
    }

    pub(crate) fn poll_read(&mut self, into: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if !self.read_ahead.is_empty() {
            let ahead = std::mem::take(&mut self.read_ahead);
            into.extend_from_slice(&ahead);
            return Poll::Ready(Ok(ahead.len()));
        }
        into.reserve(READ_BYTES);
        while self.wire.poll_readable().is_ready() {
            if let Some(read) = self.wire.try_read(into).transpose() {
                return Poll::Ready(read);
            }
        }
        Poll::Pending
    }

    pub(crate) fn poll_write(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            if let Some(written) = self.wire.try_write(&[IoSlice::new(bytes)]).transpose() {
                return Poll::Ready(written);
            }
            std::task::ready!(self.wire.poll_writable());
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn end(&mut self) {
        self.wire.shutdown_write();
    }

    /// Has a peer noticed that is gone without a word.
    pub(crate) fn keep_alive(&self) {
        self.wire.keep_alive();
    }

    /// Writes all.
    ///
    /// # Errors
    /// `TimedOut` when the client takes nothing for `limits.write_timeout`; else it is gone.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut pace = Pace::of_response(&self.gateway.limits());
        let written = write_within(&self.wire, &mut [IoSlice::new(bytes)], &mut pace).await;
        written.map_err(|reason| match reason {
            Reason::WriteTimeout => io::ErrorKind::TimedOut.into(),
            _ => io::ErrorKind::BrokenPipe.into(),
        })
    }

    /// Whether the server is stopping. What waits on this connection is woken when it begins to; an
    /// end is then expected within the drain time-out.
    pub fn is_draining(&self) -> bool {
        self.gateway.is_draining()
    }
}

/// Room for one read.
const READ_BYTES: usize = 4096;

/// Switches, if the present request offers a protocol that takes it; `None` if it is to be answered.
pub(crate) async fn attempt(
    connection: &mut Connection,
    turn: &Turn,
    app: Option<&App>,
) -> Option<Answered> {
    let (name, Switch { headers, speak }) = wanted(connection, turn, app)?;
    let mut lines = HeaderBlock::default();
    lines.add(b"Connection", b"upgrade").expect("a constant header");
    lines.add(b"Upgrade", name.as_bytes()).ok()?;
    lines.bytes.extend_from_slice(&headers.bytes);
    let facts = HeadFacts { keep_alive: true, ..turn.asked.head(101, Framing::Bodyless(None)) };
    connection.put_head(facts, &lines.bytes);
    if !connection.flush(b"").await {
        return Some(Answered::broken(101, 0));
    }
    connection.switched = Some(speak);
    Some(Answered { sent: Sent::Switched, status: 101, body_bytes: 0 })
}

/// The first of the offered protocols, in the client's order of preference, that takes the request.
fn wanted(
    connection: &mut Connection,
    turn: &Turn,
    app: Option<&App>,
) -> Option<(&'static str, Switch)> {
    let gateway = connection.gateway.clone();
    let client = turn.forwarded.client.as_deref().unwrap_or(&connection.ends.peer_text);
    let buffers = connection.buffers.as_ref()?;
    let offered = buffers.head.upgrade(&buffers.input)?;
    let has_body = !matches!(buffers.head.body(), BodyFraming::None | BodyFraming::Length(0));
    if has_body || gateway.is_draining() {
        return None;
    }
    let offer = Offer { buffers, app, client };
    offered.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).find_map(|name| {
        let mut protocols = gateway.protocols.iter();
        let protocol = protocols.find(|own| own.name().as_bytes().eq_ignore_ascii_case(name))?;
        Some((protocol.name(), protocol.accept(&offer)?))
    })
}
