//! Any bytes on any streams of a client: no panic; each request has one head, and one end; bodies are as
//! long as was announced; a blocked stream continues.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http3::{Config, Connection, ErrorCode, Event, Received};
use std::collections::HashMap;

/// What was reported of a request.
#[derive(Debug, Default)]
struct Request {
    has_head: bool,
    has_trailers: bool,
    is_over: bool,
    content_length: Option<u64>,
    body_bytes: u64,
    /// Not read yet, because the stream is blocked.
    unread: Option<(Vec<u8>, bool)>,
}

#[derive(Default)]
struct Client {
    requests: HashMap<u64, Request>,
    unblocked: Vec<u64>,
    unknown: Vec<u64>,
}

impl Client {
    fn check(&mut self, event: Event<'_>, len: usize) {
        match event {
            Event::Head { stream_id, head, is_end } => {
                let request = self.requests.entry(stream_id).or_default();
                assert!(!request.has_head && !request.is_over);
                (request.has_head, request.is_over) = (true, is_end);
                assert!(!head.method().is_empty() && !head.authority().is_empty());
                let is_connect = head.is_connect();
                assert_eq!(head.path().is_empty(), is_connect && head.protocol().is_none());
                request.content_length = head.content_length().filter(|_| !is_connect);
                for (name, value) in head.fields().iter() {
                    assert!(!name.is_empty() && !name.iter().any(u8::is_ascii_uppercase));
                    assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
                }
            }
            Event::Data { stream_id, range } => {
                let request = self.requests.get_mut(&stream_id).unwrap();
                assert!(request.has_head && !request.has_trailers && !request.is_over);
                assert!(!range.is_empty() && range.end <= len);
                request.body_bytes += range.len() as u64;
                assert!(request.content_length.is_none_or(|length| request.body_bytes <= length));
            }
            Event::Trailers { stream_id, .. } => {
                let request = self.requests.get_mut(&stream_id).unwrap();
                assert!(request.has_head && !request.has_trailers && !request.is_over);
                request.has_trailers = true;
            }
            Event::End { stream_id } => {
                let request = self.requests.get_mut(&stream_id).unwrap();
                assert!(request.has_head && !request.is_over);
                assert!(request.content_length.is_none_or(|length| request.body_bytes == length));
                request.is_over = true;
            }
            Event::StreamError { stream_id, .. } => {
                let request = self.requests.entry(stream_id).or_default();
                assert!(!request.is_over);
                request.is_over = true;
            }
            Event::Unblocked { stream_id } => self.unblocked.push(stream_id),
            Event::UnknownStream { stream_id } => self.unknown.push(stream_id),
            Event::PriorityUpdate { priority, .. } => assert!(priority.urgency <= 7),
            Event::Settings(_) | Event::GoAway { .. } => {}
        }
    }

    fn send(
        &mut self,
        connection: &mut Connection,
        stream_id: u64,
        bytes: &[u8],
        fin: bool,
    ) -> Result<(), ErrorCode> {
        let received =
            connection.receive(stream_id, bytes, fin, |event| self.check(event, bytes.len()));
        if let Received::Blocked { consumed } = received.map_err(|error| error.code())? {
            let request = self.requests.entry(stream_id).or_default();
            request.unread = Some((bytes[consumed..].to_vec(), fin));
        }
        while let Some(stream_id) = self.unblocked.pop() {
            let request = self.requests.get_mut(&stream_id).unwrap();
            let (bytes, fin) = request.unread.take().expect("a blocked stream");
            self.send(connection, stream_id, &bytes, fin)?;
            assert!(
                self.requests[&stream_id].unread.is_none() || !self.requests[&stream_id].is_over
            );
        }
        Ok(())
    }
}

/// Takes the next piece, behind its stream, whether it is the last one, and its length.
fn next_piece<'a>(bytes: &mut &'a [u8]) -> Option<(u64, bool, &'a [u8])> {
    let (&[head, len], rest) = bytes.split_first_chunk()?;
    let (piece, rest) = rest.split_at(usize::from(len).min(rest.len()));
    *bytes = rest;
    Some((u64::from(head >> 1) % 32, head & 1 == 1, piece))
}

fuzz_target!(|input: (u8, &[u8])| {
    let (capacity, mut bytes) = input;
    let mut connection = Connection::new(Config {
        field_section_bytes_max: 1000,
        qpack_table_capacity: capacity.into(),
        qpack_blocked_streams: 3,
        enable_connect_protocol: capacity & 1 == 1,
        skipped_bytes_max: 500,
        unknown_streams_max: 5,
    });
    let (mut client, mut ended, mut out) = (Client::default(), Vec::new(), Vec::new());
    while let Some((stream_id, fin, piece)) = next_piece(&mut bytes) {
        let request = client.requests.get(&stream_id);
        let is_silent = request.is_some_and(|request| request.is_over || request.unread.is_some());
        if is_silent || ended.contains(&stream_id) || client.unknown.contains(&stream_id) {
            continue;
        }
        if fin {
            ended.push(stream_id);
        }
        if let Err(code) = client.send(&mut connection, stream_id, piece, fin) {
            assert!(code.name().is_some());
            return;
        }
        connection.write_decoder_stream(&mut out);
    }
    for stream_id in (0..32).step_by(4) {
        let _ = connection.close_stream(stream_id);
    }
    assert_eq!(connection.open_requests(), 0);
});
