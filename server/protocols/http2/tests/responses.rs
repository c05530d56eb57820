//! What a client receives: heads, data, its order and its windows.

mod support;

use outboard_http2::{ErrorCode, SendError, Settings};
use support::*;

fn data_bytes(frames: &[Frame], id: u32) -> usize {
    let data = frames.iter().filter(|frame| frame.kind == DATA && frame.id == id);
    data.map(|frame| frame.payload.len()).sum()
}

#[test]
fn a_small_response_is_two_frames_in_a_row() {
    let mut client = Client::new();
    let stream = client.get(1);
    let fields = pairs(&[("Content-Type", "text/html"), ("X-A", "1")]);
    client.connection.send_head(stream, 200, fields, false).unwrap();
    assert_eq!(client.connection.send_data(stream, b"hello", true), Ok(5));
    let frames = client.frames();
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(kinds, [(HEADERS, END_HEADERS), (DATA, END_STREAM)]);
    let expected = [(":status", "200"), ("content-type", "text/html"), ("x-a", "1")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(client.fields(&frames[0].payload), expected);
    assert_eq!(frames[1].payload, b"hello");
    assert_eq!(client.connection.open_streams(), 0);
}

#[test]
fn fields_that_may_not_be_sent_are_left_out() {
    let mut client = Client::new();
    let stream = client.get(1);
    let fields = pairs(&[
        ("Connection", "close"),
        ("transfer-encoding", "chunked"),
        ("Keep-Alive", "1"),
        ("upgrade", "h2c"),
        ("a b", "1"),
        (":status", "500"),
        ("x", "a\r\nb: c"),
        ("y", "1"),
    ]);
    client.connection.send_head(stream, 204, fields, true).unwrap();
    let frames = client.frames();
    let found = client.fields(&frames[0].payload);
    let expected = [(":status", "204"), ("y", "1")];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(frames[0].is_end());
}

#[test]
fn the_parts_of_a_response_have_an_order() {
    let mut client = Client::new();
    let stream = client.get(1);
    let connection = &mut client.connection;
    assert_eq!(connection.send_data(stream, b"a", false), Err(SendError::WrongOrder));
    connection.send_interim(stream, 103, pairs(&[("link", "</a>")])).unwrap();
    connection.send_head(stream, 200, [], false).unwrap();
    assert_eq!(connection.send_head(stream, 200, [], false), Err(SendError::WrongOrder));
    assert_eq!(connection.send_interim(stream, 103, []), Err(SendError::WrongOrder));
    connection.send_end(stream).unwrap();
    assert_eq!(connection.send_end(stream), Err(SendError::StreamClosed));
    let ends: Vec<_> = client.frames().iter().map(Frame::is_end).collect();
    assert_eq!(ends, [false, false, true]);
}

#[test]
fn a_head_longer_than_a_frame_is_continued() {
    let mut client = Client::new();
    let stream = client.get(1);
    let long = "~".repeat(40_000);
    client.connection.send_head(stream, 200, pairs(&[("x", &long)]), true).unwrap();
    let frames = client.frames();
    assert!(frames.len() > 2 && frames[0].is_end());
    assert!(frames[1..].iter().all(|frame| frame.kind == CONTINUATION));
    let ends: Vec<_> = frames.iter().map(|frame| frame.flags & END_HEADERS != 0).collect();
    assert_eq!(ends.iter().position(|end| *end), Some(frames.len() - 1));
    let block = frames.iter().flat_map(|frame| frame.payload.clone()).collect::<Vec<_>>();
    assert_eq!(client.fields(&block)[1], ("x".to_owned(), long));
}

#[test]
fn data_stops_at_the_window_of_the_stream() {
    let mut client = Client::new();
    client.window_update(0, 1 << 20);
    let stream = client.get(1);
    assert_eq!(respond(&mut client, stream, 80_000), 80_000);
    assert_eq!(data_bytes(&client.frames(), 1), WINDOW);
    assert!(!client.connection.has_output());
    client.window_update(1, 1_000);
    client.poll().unwrap();
    assert_eq!(data_bytes(&client.frames(), 1), 1_000);
    client.setting(4, WINDOW as u32 + 500);
    client.poll().unwrap();
    assert_eq!(data_bytes(&client.frames(), 1), 500);
    client.window_update(1, 1 << 20);
    client.poll().unwrap();
    assert!(client.frames().last().unwrap().is_end());
    assert!(!client.connection.is_open(stream));
}

#[test]
fn data_stops_at_the_window_of_the_connection() {
    let mut client = Client::new();
    client.setting(4, 1 << 20);
    let (first, second) = (client.get(1), client.get(3));
    respond(&mut client, first, 50_000);
    respond(&mut client, second, 50_000);
    let frames = client.frames();
    assert_eq!(data_bytes(&frames, 1) + data_bytes(&frames, 3), WINDOW);
    client.window_update(0, 1 << 20);
    client.poll().unwrap();
    assert_eq!(client.frames().iter().filter(|frame| frame.is_end()).count(), 2);
}

#[test]
fn a_smaller_initial_window_applies_to_open_streams() {
    let mut client = Client::new();
    let stream = client.get(1);
    respond(&mut client, stream, 20_000);
    client.frames();
    let stream = client.get(3);
    head(&mut client.connection, stream, false);
    client.connection.send_data(stream, &[0; 20_000], false).unwrap();
    client.frames();
    client.setting(4, 10_000);
    client.poll().unwrap();
    client.connection.send_data(stream, &[0; 5_000], true).unwrap();
    assert_eq!(data_bytes(&client.frames(), 3), 0);
    // The window was -10,000.
    client.window_update(3, 14_000);
    client.poll().unwrap();
    assert_eq!(data_bytes(&client.frames(), 3), 4_000);
}

#[test]
fn a_stream_that_waits_is_writable_once_its_buffer_has_room() {
    let mut client = Client::unlimited();
    let stream = client.get(1);
    head(&mut client.connection, stream, false);
    let body = vec![b'x'; 1 << 20];
    let (mut sent, mut received) = (0, 0);
    loop {
        let accepts = client.connection.accepts_bytes(stream);
        let accepted = client.connection.send_data(stream, &body[sent..], true).unwrap();
        assert!(accepted >= accepts.min(body.len() - sent) && accepted <= 96 << 10);
        sent += accepted;
        if sent == body.len() {
            break;
        }
        assert_eq!(client.connection.accepts_bytes(stream), 0);
        let frames = client.frames_up_to(48 << 10);
        let bytes: usize = frames.iter().map(|frame| frame.payload.len() + 9).sum();
        assert!(bytes <= 48 << 10);
        received += data_bytes(&frames, 1);
        while client.connection.next_writable().is_none() {
            received += data_bytes(&client.frames_up_to(48 << 10), 1);
        }
        assert_eq!(client.connection.next_writable(), None);
    }
    received += data_bytes(&client.frames(), 1);
    assert_eq!(received, body.len());
}

#[test]
fn the_data_of_all_streams_is_limited_and_none_is_left_out() {
    let mut client = Client::new();
    client.setting(4, 0);
    client.poll().unwrap();
    let settings = Settings::default();
    let mut buffered = 0;
    for id in (1..).step_by(2).take(100) {
        let stream = client.get(id);
        let accepted = respond(&mut client, stream, 1 << 20);
        assert!(accepted >= Settings::MIN_SEND_BUFFER_BYTES);
        buffered += accepted;
    }
    let least = 100 * Settings::MIN_SEND_BUFFER_BYTES;
    assert!(buffered <= settings.send_buffer_bytes + least, "{buffered}");
    assert_eq!(client.connection.next_writable(), None);
    client.setting(4, 1 << 20);
    client.window_update(0, 1 << 20);
    client.poll().unwrap();
    client.frames();
    let writable = std::iter::from_fn(|| client.connection.next_writable()).count();
    assert_eq!(writable, 100);
}

#[test]
fn trailers_follow_the_data() {
    let mut client = Client::new();
    client.setting(4, 100);
    let stream = client.get(1);
    head(&mut client.connection, stream, false);
    client.connection.send_data(stream, &[0; 150], false).unwrap();
    client.connection.send_trailers(stream, pairs(&[("x", "1")])).unwrap();
    assert_eq!(client.connection.send_end(stream), Err(SendError::WrongOrder));
    // A head that is sent in between belongs to the same state of the encoder.
    let other = client.get(3);
    client.connection.send_head(other, 200, pairs(&[("x", "1")]), true).unwrap();
    let first = client.frames();
    client.window_update(1, 100);
    client.poll().unwrap();
    let frames = [first, client.frames()].concat();
    let blocks: Vec<_> = frames.iter().filter(|frame| frame.kind == HEADERS).collect();
    let decoded: Vec<_> = blocks.iter().map(|frame| client.fields(&frame.payload)).collect();
    assert_eq!(decoded[2], [("x".to_owned(), "1".to_owned())]);
    assert!(blocks[2].is_end() && blocks[2].id == 1);
    assert_eq!(client.connection.open_streams(), 0);
}

#[test]
fn a_response_before_the_end_of_the_request_stops_the_request() {
    let mut client = Client::new();
    let stream = client.post(1);
    respond(&mut client, stream, 10);
    let last = client.frames().pop().unwrap();
    assert_eq!((last.kind, ErrorCode(last.number(0))), (RST_STREAM, ErrorCode::NO_ERROR));
    client.send(DATA, END_STREAM, 1, b"late");
    assert_eq!(client.poll().unwrap(), []);
}

#[test]
fn a_stream_whose_client_reads_nothing_is_reset() {
    let mut client = Client::new();
    client.setting(4, 100);
    let streams = [client.get(1), client.get(3), client.get(5)];
    streams[..2].iter().for_each(|stream| assert_eq!(respond(&mut client, *stream, 200), 200));
    client.frames();
    let reset = |client: &mut Client, now_ms| {
        let mut reset = Vec::new();
        client.connection.reset_stalled(now_ms, 10_000, |stream| reset.push(stream));
        reset
    };
    assert_eq!(reset(&mut client, 50_000), []);
    client.window_update(1, 50);
    client.poll().unwrap();
    client.frames();
    assert_eq!(reset(&mut client, 60_000), [streams[1]]);
    assert_eq!(client.reset_code(3), ErrorCode::CANCEL);
    assert_eq!(reset(&mut client, 70_000), [streams[0]]);
    assert!(client.connection.is_open(streams[2]));
}

#[test]
fn received_data_is_released_half_a_window_at_a_time() {
    let mut client = Client::new();
    let stream = client.post(1);
    client.frames();
    let half = Settings::default().stream_window_bytes / 2;
    for _ in 0..half / 16_384 {
        assert_eq!(client.frames(), []);
        client.send(DATA, 0, 1, &[0; 16_384]);
        client.poll().unwrap();
        client.connection.release(stream, 16_384);
    }
    let frames = client.frames();
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].kind, frames[0].id, frames[0].number(0)), (WINDOW_UPDATE, 1, half));
}

#[test]
fn what_a_closed_stream_has_received_is_released() {
    let mut client = Client::new();
    let half = Settings::default().connection_window_bytes / 2;
    let mut increments = 0;
    for id in (1..).step_by(2).take(half as usize / (100 << 10) + 1) {
        let stream = client.post(id);
        for _ in 0..25 {
            client.send(DATA, PADDED, id, &[&[95][..], &[0; 4095]].concat());
        }
        client.poll().unwrap();
        client.connection.reset(stream, ErrorCode::CANCEL);
        let frames = client.frames();
        let updates = frames.iter().filter(|frame| frame.kind == WINDOW_UPDATE && frame.id == 0);
        increments += updates.map(|frame| frame.number(0)).sum::<u32>();
    }
    assert!(increments >= half, "{increments}");
}

#[test]
fn a_graceful_end_serves_what_is_on_its_way() {
    let mut client = Client::new();
    let stream = client.get(1);
    client.connection.go_away_gracefully();
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].number(0)), (GOAWAY, (1 << 31) - 1));
    assert_eq!((frames[1].kind, frames[1].flags), (PING, 0));
    let late = client.get(3);
    client.send(PING, ACK, 0, &frames[1].payload);
    assert_eq!(client.poll().unwrap(), []);
    let frames = client.frames();
    assert_eq!((frames[0].kind, frames[0].number(0)), (GOAWAY, 3));
    client.request(5, "POST", &[], false);
    client.send(DATA, END_STREAM, 5, b"ignored");
    assert_eq!(client.poll().unwrap(), []);
    respond(&mut client, stream, 10);
    respond(&mut client, late, 10);
    assert!(!client.connection.is_over(), "the responses were not written");
    client.frames();
    assert!(client.connection.is_over());
}

#[test]
fn an_idle_connection_gives_back_its_memory() {
    let mut client = Client::unlimited();
    for id in (1..).step_by(2).take(20) {
        let stream = client.get(id);
        respond(&mut client, stream, 60_000);
        client.frames();
    }
    assert!(client.connection.buffer_bytes() > 64 << 10);
    assert!(client.connection.buffer_bytes() < 1 << 20);
    client.connection.shrink();
    assert_eq!(client.connection.buffer_bytes(), 0);
    let stream = client.get(101);
    respond(&mut client, stream, 100);
    assert!(client.frames()[1].is_end());
}
