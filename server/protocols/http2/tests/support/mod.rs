//! A client that writes frames byte by byte, with the connection in the same process.
#![allow(dead_code)] // Each program uses a part.

use outboard_header_compression::hpack::{Decoder, Encoder};
use outboard_http2::{Connection, ConnectionError, ErrorCode, Event, PREFACE, Settings, StreamKey};
use std::ops::ControlFlow;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const PRIORITY_UPDATE: u8 = 0x10;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const PADDED: u8 = 8;

/// The windows of a connection and of its streams before anything changes them (RFC 9113 6.9.2).
pub(crate) const WINDOW: usize = 65_535;

pub(crate) type List<'a> = &'a [(&'a str, &'a str)];

/// A frame that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) id: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// The 32 bits at `at` of the payload.
    pub(crate) fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// An event, with what it borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happened {
    Head { stream: StreamKey, path: String, is_end: bool },
    HeadTooLarge(StreamKey),
    Data { stream: StreamKey, data: Vec<u8>, is_end: bool },
    Trailers { stream: StreamKey, fields: Vec<(String, String)> },
    Reset { stream: StreamKey, code: ErrorCode, is_by_client: bool },
    Priority { stream: StreamKey, urgency: u8 },
    GoAway(ErrorCode),
    PingAck([u8; 8]),
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl From<Event<'_, '_>> for Happened {
    fn from(event: Event<'_, '_>) -> Self {
        match event {
            Event::Head { stream, head, is_end } => {
                Self::Head { stream, path: text(head.path()), is_end }
            }
            Event::HeadTooLarge { stream } => Self::HeadTooLarge(stream),
            Event::Data { stream, data, is_end } => {
                Self::Data { stream, data: data.to_vec(), is_end }
            }
            Event::Trailers { stream, fields } => {
                let fields = fields.iter().map(|(name, value)| (text(name), text(value)));
                Self::Trailers { stream, fields: fields.collect() }
            }
            Event::Reset { stream, code, is_by_client } => {
                Self::Reset { stream, code, is_by_client }
            }
            Event::PriorityUpdate { stream, priority } => {
                Self::Priority { stream, urgency: priority.urgency }
            }
            Event::GoAway { code } => Self::GoAway(code),
            Event::PingAck { opaque } => Self::PingAck(opaque),
            other => panic!("{other:?}"),
        }
    }
}

/// The client, and the connection that it talks to.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    pub(crate) now_ms: u64,
    input: Vec<u8>,
    encoder: Encoder,
    decoder: Decoder,
    unread: Vec<u8>,
}

impl Client {
    /// A client whose preface was not received.
    pub(crate) fn silent(settings: Settings) -> Self {
        Self {
            connection: Connection::new(settings, 0),
            now_ms: 0,
            input: Vec::new(),
            encoder: Encoder::new(),
            decoder: Decoder::new(4096),
            unread: Vec::new(),
        }
    }

    /// A client that has exchanged SETTINGS.
    pub(crate) fn with(settings: Settings) -> Self {
        let mut client = Self::silent(settings);
        client.raw(PREFACE);
        client.send(SETTINGS, 0, 0, &[]);
        assert_eq!(client.poll(), Ok(Vec::new()));
        let kinds: Vec<u8> = client.frames().iter().map(|frame| frame.kind).collect();
        assert_eq!(kinds, [SETTINGS, WINDOW_UPDATE, SETTINGS]);
        client.send(SETTINGS, ACK, 0, &[]);
        client
    }

    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    /// A client whose windows are as large as possible.
    pub(crate) fn unlimited() -> Self {
        let mut client = Self::new();
        client.setting(4, (1 << 31) - 1);
        client.window_update(0, (1 << 31) - 1 - WINDOW as u32);
        assert_eq!(client.poll(), Ok(Vec::new()));
        client.frames();
        client
    }

    /// What was sent and not received.
    pub(crate) fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    pub(crate) fn send(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        self.raw(&[a, b, c, kind, flags]);
        self.raw(&id.to_be_bytes());
        self.raw(payload);
    }

    pub(crate) fn block(&mut self, fields: List) -> Vec<u8> {
        let mut block = Vec::new();
        let mut writer = self.encoder.begin(&mut block);
        fields.iter().for_each(|(name, value)| writer.field(name.as_bytes(), value.as_bytes()));
        block
    }

    /// A request with these fields after its pseudo fields.
    pub(crate) fn request(&mut self, id: u32, method: &str, further: List, is_end: bool) {
        let path = format!("/{id}");
        let start =
            [(":method", method), (":scheme", "https"), (":path", &path), (":authority", "a.test")];
        let block = self.block(&[&start, further].concat());
        self.send(HEADERS, END_HEADERS | u8::from(is_end), id, &block);
    }

    /// A request without a body, and its stream.
    pub(crate) fn get(&mut self, id: u32) -> StreamKey {
        self.request(id, "GET", &[], true);
        self.opened()
    }

    /// A request with a body, and its stream.
    pub(crate) fn post(&mut self, id: u32) -> StreamKey {
        self.request(id, "POST", &[], false);
        self.opened()
    }

    /// The stream of the only event.
    pub(crate) fn opened(&mut self) -> StreamKey {
        match self.poll().unwrap()[..] {
            [Happened::Head { stream, .. }] => stream,
            ref other => panic!("{other:?}"),
        }
    }

    pub(crate) fn window_update(&mut self, id: u32, increment: u32) {
        self.send(WINDOW_UPDATE, 0, id, &increment.to_be_bytes());
    }

    /// SETTINGS with one setting.
    pub(crate) fn setting(&mut self, setting: u16, value: u32) {
        let payload = [&setting.to_be_bytes()[..], &value.to_be_bytes()].concat();
        self.send(SETTINGS, 0, 0, &payload);
    }

    /// Lets the connection receive what was sent.
    pub(crate) fn poll(&mut self) -> Result<Vec<Happened>, ConnectionError> {
        let mut happened = Vec::new();
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        let result = loop {
            match self.connection.receive(&mut rest, self.now_ms) {
                Ok(Some(event)) => happened.push(event.into()),
                Ok(None) => break Ok(happened),
                Err(error) => break Err(error),
            }
        };
        self.input = rest.to_vec();
        result
    }

    /// Reads the frames of one output.
    pub(crate) fn frames_up_to(&mut self, budget_bytes: usize) -> Vec<Frame> {
        let output = self.connection.output(budget_bytes).to_vec();
        self.connection.sent(output.len());
        self.unread.extend(output);
        let mut frames = Vec::new();
        let mut rest = &self.unread[..];
        while !rest.is_empty() {
            let len = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
            let id = u32::from_be_bytes(rest[5..9].try_into().unwrap());
            let payload = rest[9..9 + len].to_vec();
            frames.push(Frame { kind: rest[3], flags: rest[4], id, payload });
            rest = &rest[9 + len..];
        }
        self.unread.clear();
        frames
    }

    /// Reads all frames.
    pub(crate) fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let more = self.frames_up_to(64 << 10);
            if more.is_empty() {
                return frames;
            }
            frames.extend(more);
        }
    }

    /// The fields of a block.
    pub(crate) fn fields(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let decoded = self.decoder.decode(block, 1 << 20, |name, value| {
            fields.push((text(name), text(value)));
            ControlFlow::<()>::Continue(())
        });
        let _ = decoded.unwrap();
        fields
    }

    /// The code of the RST_STREAM that is all there is.
    pub(crate) fn reset_code(&mut self, id: u32) -> ErrorCode {
        match &self.frames()[..] {
            [frame] if frame.kind == RST_STREAM && frame.id == id => ErrorCode(frame.number(0)),
            frames => panic!("{frames:?}"),
        }
    }

    /// Expects that the connection ends, and that the client learns why.
    pub(crate) fn expect_error(&mut self, error: ConnectionError) {
        assert_eq!(self.poll(), Err(error));
        assert_eq!(self.connection.error(), Some(error));
        assert_eq!(self.connection.open_streams(), 0);
        let last = self.frames().pop().unwrap();
        assert_eq!(last.kind, GOAWAY);
        assert_eq!(ErrorCode(last.number(4)), error.code());
        assert_eq!(&last.payload[8..], error.reason().as_bytes());
        assert!(self.connection.is_over());
    }
}

/// A head of 200 without fields.
pub(crate) fn head(connection: &mut Connection, stream: StreamKey, is_end: bool) {
    connection.send_head(stream, 200, [], is_end).unwrap();
}

/// A head and data, of which as much is accepted as there is room for.
pub(crate) fn respond(client: &mut Client, stream: StreamKey, bytes: usize) -> usize {
    head(&mut client.connection, stream, false);
    client.connection.send_data(stream, &vec![b'x'; bytes], true).unwrap()
}

/// Fields for a response.
pub(crate) fn pairs<'a>(list: List<'a>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()))
}
