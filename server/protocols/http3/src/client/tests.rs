//! RFC 9114 as a client reads it, stream by stream.

use super::*;
use crate::frame::{frame_type, write_frame_head};
use crate::{Config, Connection, Event};
use outboard_header_compression::qpack;

const CONFIG: ClientConfig =
    ClientConfig { field_section_bytes_max: 600, skipped_bytes_max: 200, unknown_streams_max: 3 };

const OK: [(&str, &str); 2] = [(":status", "200"), ("content-length", "5")];
const CONTROL: u64 = 3;

fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    write_frame_head(&mut frame, kind, payload.len() as u64);
    [&frame, payload].concat()
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut encoder, mut section) = (qpack::Encoder::new(), Vec::new());
    let mut writer = encoder.begin(&mut section);
    fields.iter().for_each(|(name, value)| writer.field(name.as_bytes(), value.as_bytes()));
    frame(frame_type::HEADERS, &section)
}

fn data(body: &[u8]) -> Vec<u8> {
    frame(frame_type::DATA, body)
}

/// A connection with requests on the streams 0 and 4, and what it has reported.
struct Client {
    connection: ClientConnection,
    events: Vec<String>,
}

impl Client {
    fn new() -> Self {
        let mut connection = ClientConnection::new(CONFIG);
        connection.expect_response(0, false);
        connection.expect_response(4, true);
        Self { connection, events: Vec::new() }
    }

    fn receive(&mut self, stream_id: u64, bytes: &[u8], fin: bool) -> Result<(), ErrorCode> {
        let events = &mut self.events;
        let received = self.connection.receive(stream_id, bytes, fin, |event| {
            events.push(line(&event, bytes));
        });
        received.map_err(|error| error.code())
    }

    fn events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }
}

fn line(event: &ClientEvent<'_>, bytes: &[u8]) -> String {
    match event {
        ClientEvent::Head { stream_id, head } => {
            format!("{stream_id} {} {}", head.status(), head.fields().len())
        }
        ClientEvent::Data { stream_id, range } => {
            format!("{stream_id} data {}", String::from_utf8_lossy(&bytes[range.clone()]))
        }
        ClientEvent::End { stream_id } => format!("{stream_id} end"),
        ClientEvent::StreamError { stream_id, error } => format!("{stream_id} {error:?}"),
        ClientEvent::Settings(settings) => {
            format!("settings {:?}", settings.max_field_section_size)
        }
        ClientEvent::GoAway { stream_id } => format!("goaway {stream_id}"),
        ClientEvent::UnknownStream { stream_id } => format!("{stream_id} unknown"),
    }
}

#[test]
fn a_server_reads_what_a_client_writes() {
    let mut request = Vec::new();
    let line =
        RequestLine { method: b"POST", scheme: b"https", authority: b"a.test", path: b"/a?b" };
    write_request(&mut request, &line, |fields| fields.field(b"Content-Length", b"4"), b"body");
    let (mut server, mut found) = (Connection::new(Config::default()), Vec::new());
    let received = server.receive(0, &request, true, |event| match event {
        Event::Head { head, .. } => {
            found.extend([head.method(), head.path(), head.authority()].concat());
        }
        Event::Data { range, .. } => found.extend(&request[range]),
        Event::End { .. } => found.push(b'!'),
        event => panic!("{event:?}"),
    });
    assert_eq!(received, Ok(crate::Received::All));
    assert_eq!(String::from_utf8_lossy(&found), "POST/a?ba.testbody!");
    let mut control = Vec::new();
    ClientConnection::new(CONFIG).write_control_stream_start(&mut control);
    let mut limit = None;
    let received = server.receive(2, &control, false, |event| {
        if let Event::Settings(settings) = event {
            limit = settings.max_field_section_size;
        }
    });
    assert_eq!((received, limit), (Ok(crate::Received::All), Some(600)));
}

#[test]
fn a_response_is_the_same_in_any_pieces() {
    let early = headers(&[(":status", "103"), ("link", "</a>")]);
    let trailers = headers(&[("a", "b")]);
    let bytes =
        [early, frame(0x21, b"grease"), headers(&OK), data(b"he"), data(b"llo"), trailers].concat();
    for cut in 0..=bytes.len() {
        let mut client = Client::new();
        assert_eq!(client.receive(0, &bytes[..cut], false), Ok(()));
        assert_eq!(client.receive(0, &bytes[cut..], true), Ok(()));
        let events = client.events().join("; ");
        let (head, rest) = events.split_once(';').unwrap();
        assert_eq!(head, "0 200 1", "cut at {cut}");
        assert_eq!(rest.replace("; 0 data ", "").replace(" 0 data ", ""), "hello; 0 end");
        assert_eq!(client.connection.open_requests(), 1);
    }
}

#[test]
fn responses_without_a_body_have_any_length() {
    let mut client = Client::new();
    assert_eq!(client.receive(4, &headers(&OK), true), Ok(()));
    assert_eq!(client.receive(0, &headers(&[(":status", "304"), OK[1]]), true), Ok(()));
    assert_eq!(client.events(), ["4 200 1", "4 end", "0 304 1", "0 end"]);
}

#[test]
fn malformed_responses_end_their_request() {
    for (bytes, error) in [
        (headers(&[("a", "b")]), "0 Malformed(MissingPseudoField)"),
        (headers(&[(":status", "2x0")]), "0 Malformed(InvalidStatus)"),
        (headers(&[(":status", "101")]), "0 Malformed(InvalidStatus)"),
        (headers(&[(":status", "200"), ("upgrade", "h2c")]), "0 Malformed(ConnectionField)"),
        (headers(&[(":status", "100")]), "0 Incomplete"),
        (headers(&OK), "0 ContentLengthMismatch"),
        ([headers(&OK), data(b"hello!")].concat(), "0 ContentLengthMismatch"),
        (
            [headers(&OK), data(b"hello"), headers(&OK)].concat(),
            "0 Malformed(UnexpectedPseudoField)",
        ),
        (headers(&[(":status", "200"), ("a", &"b".repeat(600))]), "0 FieldsTooLarge"),
        (vec![], "0 Incomplete"),
    ] {
        let mut client = Client::new();
        assert_eq!(client.receive(0, &bytes, true), Ok(()), "{error}");
        assert_eq!(client.events().last().map(String::as_str), Some(error));
        assert_eq!(client.receive(0, b"\0\x01a", true), Ok(()), "nothing is read any more");
        assert_eq!(client.connection.open_requests(), 1);
        assert!(client.events().is_empty());
    }
}

#[test]
fn frames_that_are_not_allowed_end_the_connection() {
    use ErrorCode as Code;
    for (bytes, fin, code) in [
        (data(b"early"), false, Code::FRAME_UNEXPECTED),
        ([headers(&[(":status", "103")]), data(b"a")].concat(), false, Code::FRAME_UNEXPECTED),
        (frame(frame_type::SETTINGS, b""), false, Code::FRAME_UNEXPECTED),
        (frame(0x8, b""), false, Code::FRAME_UNEXPECTED),
        (frame(frame_type::PUSH_PROMISE, b"\0\0\0"), false, Code::ID_ERROR),
        (frame(frame_type::HEADERS, b"\x02\0\x80"), false, Code::QPACK_DECOMPRESSION_FAILED),
        (vec![frame_type::HEADERS as u8, 9, 0], true, Code::FRAME_ERROR),
        (frame(0x21, &[0; 201]), false, Code::EXCESSIVE_LOAD),
        (headers(&[(":status", "103"), ("a", "b")]).repeat(40), false, Code::EXCESSIVE_LOAD),
    ] {
        assert_eq!(Client::new().receive(0, &bytes, fin), Err(code), "{bytes:x?}");
    }
    assert_eq!(Client::new().receive(1, b"", false), Err(Code::STREAM_CREATION_ERROR));
}

#[test]
fn a_control_stream_has_settings_and_goaway() {
    let mut client = Client::new();
    let settings = Settings { max_field_section_size: Some(9), ..Settings::DEFAULT };
    let mut bytes = vec![0];
    settings.write(&mut bytes);
    bytes.extend([frame(0x21, b"grease"), frame(frame_type::GOAWAY, b"\x08")].concat());
    for byte in bytes {
        assert_eq!(client.receive(CONTROL, &[byte], false), Ok(()));
    }
    assert_eq!(client.receive(CONTROL, &frame(frame_type::GOAWAY, b"\x04"), false), Ok(()));
    assert_eq!(client.receive(7, b"\x02", false), Ok(()), "an encoder stream");
    assert_eq!(client.receive(11, b"\x03", false), Ok(()), "a decoder stream");
    assert_eq!(client.receive(15, b"\x21abc", false), Ok(()));
    assert_eq!(client.events(), ["settings Some(9)", "goaway 8", "goaway 4", "15 unknown"]);
    let increased = client.receive(CONTROL, &frame(frame_type::GOAWAY, b"\x08"), false);
    assert_eq!(increased, Err(ErrorCode::ID_ERROR));
}

#[test]
fn invalid_streams_of_a_server_end_the_connection() {
    use ErrorCode as Code;
    let after_settings = |frame: &[u8]| [b"\0\x04\0", frame].concat();
    for (bytes, fin, code) in [
        (b"\0\x07\x01\0".to_vec(), false, Code::MISSING_SETTINGS),
        (after_settings(b"\x04\0"), false, Code::FRAME_UNEXPECTED),
        (after_settings(b"\x0d\x01\0"), false, Code::FRAME_UNEXPECTED),
        (after_settings(b"\x07\x01\x01"), false, Code::ID_ERROR),
        (after_settings(b"\x07\x02\0\0"), false, Code::FRAME_ERROR),
        (after_settings(b"\x03\x01\0"), false, Code::ID_ERROR),
        (after_settings(b"\x80\x0f\x07\0\x01\0"), false, Code::FRAME_UNEXPECTED),
        (after_settings(b""), true, Code::CLOSED_CRITICAL_STREAM),
        (b"\x01\0".to_vec(), false, Code::ID_ERROR),
        (b"\x02\x3f\x01".to_vec(), false, Code::QPACK_ENCODER_STREAM_ERROR),
        (b"\x03\x80".to_vec(), false, Code::QPACK_DECODER_STREAM_ERROR),
    ] {
        assert_eq!(Client::new().receive(CONTROL, &bytes, fin), Err(code), "{bytes:x?}");
    }
    let mut client = Client::new();
    assert_eq!(client.receive(3, b"\0\x04\0", false), Ok(()));
    assert_eq!(client.receive(7, b"\0", false), Err(Code::STREAM_CREATION_ERROR));
    assert_eq!(client.connection.close_stream(3), Err(closed()));
    let mut client = Client::new();
    let unknown = (0..4).map(|at| client.receive(3 + 4 * at, b"\x21", true));
    assert_eq!(unknown.last(), Some(Err(Code::EXCESSIVE_LOAD)));
}

fn closed() -> ConnectionError {
    let description = "control or QPACK stream was closed";
    ConnectionError::new(ErrorCode::CLOSED_CRITICAL_STREAM, description)
}
