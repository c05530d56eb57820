//! Payloads about raw connections: what arrives on them, and what a worker does with them.
//!
//! The gateway encodes [`StreamEvent`]s and decodes [`StreamCall`]s, the host vice versa; each works on
//! its own copy. Invariant: decoding checks every length and number, and returns what was encoded; that a session or an item exists is
//! checked by the one that receives it.
//!
//! ```text
//!  StreamEvent:  u8 kind │ u8 flags │ u16 port │ u64 item │ u64 session │ bytes
//!  StreamCall:   u8 verb │ u8 is_last │ u64 item │ u64 session │ u64 value │ bytes
//!  Peer:         u16 port │ u16 local port │ u8 length │ address
//! ```

use crate::corrupt::Corrupt;

const TRUNCATED: Corrupt = Corrupt { what: "a frame of a raw connection is too short" };

/// What has happened on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A connection was accepted; the bytes are its [`Peer`].
    Opened = 1,
    /// Bytes of a message.
    Data = 2,
    /// The connection has ended.
    Closed = 3,
    /// A datagram; the bytes are a [`Peer`] and the datagram.
    Packet = 4,
    /// A message of another worker, whose number is the session.
    Message = 5,
    /// The client reads slowly: nothing more is to be sent for now.
    Full = 6,
    /// The client has read enough to continue.
    Drained = 7,
    /// The worker gets no more items and is to leave.
    Leave = 8,
    /// The first bytes of a message; the worker reports its length ([`Verb::Length`]).
    Measure = 9,
}

impl EventKind {
    fn from_wire(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Opened,
            2 => Self::Data,
            3 => Self::Closed,
            4 => Self::Packet,
            5 => Self::Message,
            6 => Self::Full,
            7 => Self::Drained,
            8 => Self::Leave,
            9 => Self::Measure,
            _ => return None,
        })
    }
}

/// Gateway → worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEvent<'a> {
    /// The event.
    pub kind: EventKind,
    /// Whether these are the last bytes of the item.
    pub is_last: bool,
    /// Whether a worker has died since it received the item: [`Verb::Start`] is to be sent before it is
    /// handled.
    pub is_suspect: bool,
    /// The index of the program's port.
    pub port: u16,
    /// The number of the item, which the worker acknowledges; 0: none.
    pub item: u64,
    /// The number of the connection.
    pub session: u64,
    /// The content.
    pub bytes: &'a [u8],
}

/// Bytes of an event before its content.
pub const EVENT_HEADER_BYTES: usize = 20;

impl<'a> StreamEvent<'a> {
    /// Appends the payload to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let flags = u8::from(self.is_last) | u8::from(self.is_suspect) << 1;
        out.extend_from_slice(&[self.kind as u8, flags]);
        out.extend_from_slice(&self.port.to_le_bytes());
        out.extend_from_slice(&self.item.to_le_bytes());
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(self.bytes);
        debug_assert_eq!(StreamEvent::decode(&out[at..]), Ok(*self));
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// [`Corrupt`] when it is too short or its kind is unknown.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let mut rest = payload;
        let [kind, flags] = take(&mut rest)?;
        let kind = EventKind::from_wire(kind)
            .ok_or(Corrupt { what: "an event of a raw connection of an unknown kind" })?;
        Ok(Self {
            kind,
            is_last: flags & 1 != 0,
            is_suspect: flags & 2 != 0,
            port: u16::from_le_bytes(take(&mut rest)?),
            item: u64::from_le_bytes(take(&mut rest)?),
            session: u64::from_le_bytes(take(&mut rest)?),
            bytes: rest,
        })
    }
}

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// The worker with the number `value` takes items; the bytes are its settings as JSON.
    Join = 1,
    /// Bytes for a connection; the item, if any, is acknowledged.
    Send = 2,
    /// The item was handled.
    Acknowledge = 3,
    /// The connection is to close: after its output, or at once if `value` is 1.
    Close = 4,
    /// A datagram from the port `value`; the bytes are a [`Peer`] and the datagram.
    SendTo = 5,
    /// The connection belongs to the user `value` (`bind()`).
    Bind = 6,
    /// Whether the connection may stay idle.
    Protect = 7,
    /// Whether the connection is read.
    Pause = 8,
    /// The connection is accepted (`confirm()`).
    Confirm = 9,
    /// A message to the worker `value`; the session is the number of the sender.
    Message = 10,
    /// The worker takes no more items.
    Leave = 12,
    /// The worker begins with an item that is under suspicion.
    Start = 13,
    /// The message whose first bytes are the item has `value` bytes; 0: that is not known yet, below 0
    /// as a signed number: there is no such message.
    Length = 14,
    /// Query: facts about a connection.
    Info = 32,
    /// Query: connections after this one, at most `value`.
    List = 33,
    /// Query: numbers about all connections.
    Stats = 34,
    /// Query: connections that are idle for longer than the heartbeat; closed if `value` is 1.
    Heartbeat = 35,
    /// Query: whether the connection is open, and whether its client reads slowly.
    Room = 36,
}

impl Verb {
    /// The verb with this number.
    pub fn from_wire(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Join,
            2 => Self::Send,
            3 => Self::Acknowledge,
            4 => Self::Close,
            5 => Self::SendTo,
            6 => Self::Bind,
            7 => Self::Protect,
            8 => Self::Pause,
            9 => Self::Confirm,
            10 => Self::Message,
            12 => Self::Leave,
            13 => Self::Start,
            14 => Self::Length,
            32 => Self::Info,
            33 => Self::List,
            34 => Self::Stats,
            35 => Self::Heartbeat,
            36 => Self::Room,
            _ => return None,
        })
    }

    /// Whether the gateway sends a completion.
    pub fn is_query(self) -> bool {
        self as u8 >= Self::Info as u8
    }
}

/// Worker → gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamCall<'a> {
    /// What to do.
    pub verb: Verb,
    /// Whether these are the last bytes of the call.
    pub is_last: bool,
    /// The item that the caller handles; 0: none.
    pub item: u64,
    /// The number of the connection.
    pub session: u64,
    /// A number, by verb.
    pub value: u64,
    /// The content.
    pub bytes: &'a [u8],
}

impl<'a> StreamCall<'a> {
    /// Appends the payload to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[self.verb as u8, u8::from(self.is_last)]);
        for number in [self.item, self.session, self.value] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.bytes);
        debug_assert_eq!(StreamCall::decode(&out[at..]), Ok(*self));
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// [`Corrupt`] when it is too short or its verb is unknown.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let mut rest = payload;
        let [verb, is_last] = take(&mut rest)?;
        let verb = Verb::from_wire(verb)
            .ok_or(Corrupt { what: "a call about a raw connection of an unknown kind" })?;
        Ok(Self {
            verb,
            is_last: is_last != 0,
            item: u64::from_le_bytes(take(&mut rest)?),
            session: u64::from_le_bytes(take(&mut rest)?),
            value: u64::from_le_bytes(take(&mut rest)?),
            bytes: rest,
        })
    }
}

/// The client of a connection, or the address of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer<'a> {
    /// Its port; 0 for Unix sockets.
    pub port: u16,
    /// The port that it has connected to, or sent to.
    pub local_port: u16,
    /// Its IP address, or the path of its Unix socket.
    pub address: &'a str,
}

impl<'a> Peer<'a> {
    /// Appends it to `out`. An address beyond 255 bytes is cut off; no socket address is that long.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let address = &self.address.as_bytes()[..self.address.len().min(255)];
        out.extend_from_slice(&self.port.to_le_bytes());
        out.extend_from_slice(&self.local_port.to_le_bytes());
        out.push(address.len() as u8);
        out.extend_from_slice(address);
    }

    /// Reads it, and returns what follows.
    ///
    /// # Errors
    /// [`Corrupt`] when a length leads out of the bytes, or the address is not text.
    pub fn decode(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Corrupt> {
        let mut rest = bytes;
        let port = u16::from_le_bytes(take(&mut rest)?);
        let local_port = u16::from_le_bytes(take(&mut rest)?);
        let [length] = take(&mut rest)?;
        let (address, rest) = rest.split_at_checked(usize::from(length)).ok_or(TRUNCATED)?;
        let address = std::str::from_utf8(address)
            .map_err(|_| Corrupt { what: "an address that is not text" })?;
        Ok((Self { port, local_port, address }, rest))
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Corrupt> {
    let (taken, tail) = rest.split_first_chunk::<N>().ok_or(TRUNCATED)?;
    *rest = tail;
    Ok(*taken)
}

#[cfg(test)]
mod tests;
