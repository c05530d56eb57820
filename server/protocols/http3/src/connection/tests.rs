//! RFC 9114, stream by stream.

mod control;
mod requests;

use super::*;
use outboard_header_compression::qpack;
use outboard_http_semantics::MalformedFields;

const CONFIG: Config = Config {
    field_section_bytes_max: 600,
    qpack_table_capacity: 0,
    qpack_blocked_streams: 0,
    enable_connect_protocol: true,
    skipped_bytes_max: 200,
    unknown_streams_max: 3,
};

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")];
const POST: [(&str, &str); 4] =
    [(":method", "POST"), (":scheme", "https"), (":authority", "a.test"), (":path", "/")];

/// A frame of less than 64 bytes, or of less than 2^14.
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

/// A connection, and what it has reported, one line for each event.
struct Server {
    connection: Connection,
    events: Vec<String>,
}

impl Server {
    fn new(config: Config) -> Self {
        Self { connection: Connection::new(config), events: Vec::new() }
    }

    fn receive(&mut self, stream_id: u64, bytes: &[u8], fin: bool) -> Result<Received, ErrorCode> {
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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn line(event: &Event<'_>, bytes: &[u8]) -> String {
    match event {
        Event::Head { stream_id, head, is_end } => {
            let path = if head.path().is_empty() { "-".to_owned() } else { text(head.path()) };
            let end = if *is_end { " end" } else { "" };
            let fields = head.fields().len();
            format!("{stream_id} {} {path} {fields}{end}", text(head.method()))
        }
        Event::Data { stream_id, range } => {
            format!("{stream_id} data {}", text(&bytes[range.clone()]))
        }
        Event::Trailers { stream_id, fields } => format!("{stream_id} trailers {}", fields.len()),
        Event::End { stream_id } => format!("{stream_id} end"),
        Event::StreamError { stream_id, error } => format!("{stream_id} {error:?}"),
        Event::Unblocked { stream_id } => format!("{stream_id} unblocked"),
        Event::Settings(settings) => format!("settings {:?}", settings.max_field_section_size),
        Event::GoAway { push_id } => format!("goaway {push_id}"),
        Event::PriorityUpdate { stream_id, priority } => {
            format!("{stream_id} priority {} {}", priority.urgency, priority.is_incremental)
        }
        Event::UnknownStream { stream_id } => format!("{stream_id} unknown"),
    }
}
