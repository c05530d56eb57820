//! What a request costs: 8 fields in, a head of 6 fields and a body of 1 KiB out, in memory.
//!
//! `cargo run --release -p outboard-http2 --example request_cost [BATCHES]`; under
//! `valgrind --tool=callgrind --toggle-collect=request_cost::serve` it counts instructions.

use outboard_header_compression::hpack::Encoder;
use outboard_http2::{Connection, Event, PREFACE, RequestHead, Settings};
use std::time::Instant;

/// Requests before the output is written, as with as many streams at a time.
const BATCH: u32 = 10;
const DEFAULT_BATCHES: u32 = 100_000;
/// After so many, the fields are in the tables.
const WARM_UP: u32 = 10;

const PSEUDO_FIELDS: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "www.example.org"),
    (":path", "/assets/1k.html"),
];

const FIELDS: [(&str, &str); 8] = [
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("cookie", "session=0123456789abcdef0123456789abcdef"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("priority", "u=0, i"),
];

const RESPONSE: [(&[u8], &[u8]); 6] = [
    (b"Server", b"outboard"),
    (b"Date", b"Mon, 23 Nov 2026 20:26:09 GMT"),
    (b"Content-Type", b"text/html"),
    (b"Content-Length", b"1024"),
    (b"Last-Modified", b"Mon, 23 Nov 2026 20:00:00 GMT"),
    (b"ETag", b"\"68c1f3a2-400\""),
];

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, id: u32, payload: &[u8]) {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The requests of a client.
fn requests(encoder: &mut Encoder, first_id: u32, out: &mut Vec<u8>) {
    for id in (first_id..).step_by(2).take(BATCH as usize) {
        let mut block = Vec::new();
        let mut writer = encoder.begin(&mut block);
        for (name, value) in PSEUDO_FIELDS.iter().chain(&FIELDS) {
            writer.field(name.as_bytes(), value.as_bytes());
        }
        frame(out, 1, 5, id, &block);
    }
}

/// Serves the input; returns how many bytes were written.
#[inline(never)]
fn serve(connection: &mut Connection, mut input: &[u8], spare: &mut RequestHead) -> usize {
    let body = [b'x'; 1024];
    while let Ok(Some(event)) = connection.receive(&mut input, 0) {
        if let Event::Head { stream, head, .. } = event {
            std::mem::swap(spare, head);
            connection.send_head(stream, 200, RESPONSE, false).expect("the stream is open");
            connection.send_data(stream, &body, true).expect("the stream is open");
        }
    }
    let mut written = 0;
    while connection.has_output() {
        let bytes = connection.output(64 << 10).len();
        connection.sent(bytes);
        written += bytes;
    }
    written
}

fn main() {
    let batches = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let batches: u32 = batches.unwrap_or(DEFAULT_BATCHES).max(1);
    let mut connection = Connection::new(Settings::default(), 0);
    let (mut encoder, mut spare) = (Encoder::new(), RequestHead::new());
    let mut input = PREFACE.to_vec();
    // The window of a stream is 1 GiB, that of the connection is opened again with each batch.
    frame(&mut input, 4, 0, 0, b"\0\x04\x40\0\0\0");
    frame(&mut input, 8, 0, 0, &(1u32 << 30).to_be_bytes());
    (0..WARM_UP).for_each(|batch| requests(&mut encoder, 2 * batch * BATCH + 1, &mut input));
    serve(&mut connection, &input, &mut spare);
    let (mut spent_ns, mut written, mut received) = (0, 0, 0);
    for batch in WARM_UP..batches + WARM_UP {
        input.clear();
        requests(&mut encoder, 2 * batch * BATCH + 1, &mut input);
        frame(&mut input, 8, 0, 0, &(BATCH * 1024).to_be_bytes());
        let start = Instant::now();
        written += serve(&mut connection, &input, &mut spare);
        spent_ns += start.elapsed().as_nanos();
        received += input.len();
    }
    let count = u128::from(BATCH * batches);
    println!("{} ns per request", spent_ns / count);
    println!("{} bytes in, {} bytes out", received as u128 / count, written as u128 / count);
    assert_eq!((connection.open_streams(), connection.error()), (0, None));
}
