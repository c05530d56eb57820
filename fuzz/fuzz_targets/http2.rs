//! Any frames after the preface: no panic, whole frames in the output, bounded output and memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http2::{Connection, ErrorCode, Event, PREFACE, Settings, StreamKey};

/// Congestion begins at 128 KiB; what one read adds after that is little.
const OUTPUT_BYTES: usize = 512 << 10;
const MEMORY_BYTES: usize = 2 << 20;
const BODY: [u8; 20_000] = [b'x'; 20_000];

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (piece_len, reads, bytes) = input;
    let settings = Settings { max_concurrent_streams: 8, ..Settings::default() };
    let mut connection = Connection::new(settings, 0);
    let mut all = PREFACE.to_vec();
    all.extend_from_slice(b"\0\0\0\x04\0\0\0\0\0");
    all.extend_from_slice(bytes);
    let (mut visible, mut at) = (0, 0);
    while visible < all.len() && !connection.is_congested() {
        visible = all.len().min(visible + usize::from(piece_len) + 1);
        let mut rest = &all[at..visible];
        while let Ok(Some(event)) = connection.receive(&mut rest, visible as u64) {
            let stream = answer(event);
            if let Some((stream, released)) = stream {
                connection.release(stream, released);
                respond(&mut connection, stream);
            }
        }
        at = visible - rest.len();
        if reads {
            read(&mut connection);
        }
        assert!(connection.unsent_bytes() < OUTPUT_BYTES);
        assert!(connection.buffer_bytes() < MEMORY_BYTES);
    }
    connection.go_away_gracefully();
    connection.reset_stalled(1 << 40, 0, |_| {});
    connection.reset_stalled(1 << 41, 0, |_| {});
    connection.go_away(ErrorCode::NO_ERROR);
    read(&mut connection);
    connection.shrink();
});

/// The stream of an event, and what it has received.
fn answer(event: Event<'_, '_>) -> Option<(StreamKey, usize)> {
    match event {
        Event::Head { stream, head, .. } => {
            assert!(!head.method().is_empty());
            assert!(head.fields().iter().all(|(name, _)| !name.starts_with(b":")));
            Some((stream, 0))
        }
        Event::Data { stream, data, .. } => Some((stream, data.len())),
        Event::HeadTooLarge { stream } | Event::Trailers { stream, .. } => Some((stream, 0)),
        _ => None,
    }
}

/// Every second stream waits for its data; the choice is by its number.
fn respond(connection: &mut Connection, stream: StreamKey) {
    let is_end = stream.id() % 8 == 1;
    let _ = connection.send_head(stream, 200, [(&b"content-type"[..], &b"a/b"[..])], is_end);
    let accepts = connection.accepts_bytes(stream);
    if let Ok(sent) = connection.send_data(stream, &BODY, stream.id() % 8 == 3) {
        assert!(sent >= accepts.min(BODY.len()));
    }
    match stream.id() % 8 {
        5 => drop(connection.send_trailers(stream, [(&b"x"[..], &b"1"[..])])),
        7 => connection.reset(stream, ErrorCode::CANCEL),
        _ => {}
    }
}

/// Reads everything: the output is a sequence of frames.
fn read(connection: &mut Connection) {
    let mut bytes = Vec::new();
    while connection.has_output() {
        let output = connection.output(16 << 10);
        let len = output.len();
        bytes.extend_from_slice(output);
        assert!(len > 0, "there was output");
        connection.sent(len);
        while connection.next_writable().is_some() {}
    }
    let mut rest = &bytes[..];
    while let Some((head, after)) = rest.split_first_chunk::<9>() {
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        rest = &after[len..];
    }
    assert!(rest.is_empty());
}
