//! Whose data is sent first (RFC 9218).

mod support;

use outboard_http2::ErrorCode;
use support::*;

#[test]
fn more_urgent_responses_are_sent_first() {
    let mut client = Client::new();
    client.setting(4, 0);
    let mut streams = Vec::new();
    for (id, priority) in [(1, "u=5"), (3, "u=1"), (5, "u=3"), (7, "u=6")] {
        client.request(id, "GET", &[("priority", priority)], true);
        streams.push(client.opened());
    }
    client.send(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=0");
    let expected = Happened::Priority { stream: streams[2], urgency: 0 };
    assert_eq!(client.poll().unwrap(), [expected]);
    for stream in &streams[..3] {
        respond(&mut client, *stream, 1000);
    }
    // The server overrides what the client has declared.
    let last = streams[3];
    client.connection.send_head(last, 200, pairs(&[("priority", "u=2")]), false).unwrap();
    client.connection.send_data(last, &[0; 1000], true).unwrap();
    client.setting(4, WINDOW as u32);
    client.poll().unwrap();
    let frames = client.frames();
    let order = frames.iter().filter(|frame| frame.kind == DATA).map(|frame| frame.id);
    assert_eq!(order.collect::<Vec<_>>(), [5, 3, 7, 1]);
}

#[test]
fn a_priority_may_precede_its_request() {
    let mut client = Client::new();
    client.send(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=0");
    client.setting(4, 0);
    let streams = [client.get(1), client.get(3)];
    streams.iter().for_each(|stream| assert_eq!(respond(&mut client, *stream, 100), 100));
    client.setting(4, WINDOW as u32);
    client.poll().unwrap();
    let frames = client.frames();
    let first = frames.iter().find(|frame| frame.kind == DATA).unwrap();
    assert_eq!(first.id, 3);
}

#[test]
fn responses_without_priorities_alternate() {
    let mut client = Client::unlimited();
    let streams = [client.get(1), client.get(3)];
    for stream in streams {
        assert_eq!(respond(&mut client, stream, 60_000), 60_000);
    }
    let frames = client.frames();
    let order = frames.iter().filter(|frame| frame.kind == DATA).map(|frame| frame.id);
    let order = order.collect::<Vec<_>>();
    let first_of_second = order.iter().position(|id| *id == 3).unwrap();
    assert!(order[first_of_second..].contains(&1), "{order:?}");
}

#[test]
fn a_stream_does_not_depend_on_itself() {
    let mut client = Client::new();
    let stream = client.get(1);
    // On another stream, and on itself while it is idle: without effect.
    client.send(PRIORITY, 0, 1, &[0, 0, 0, 3, 0]);
    client.send(PRIORITY, 0, 3, &[0, 0, 0, 3, 0]);
    assert_eq!(client.poll().unwrap(), []);
    assert!(client.connection.is_open(stream));
    // The exclusive bit is not of the stream's number.
    client.send(PRIORITY, 0, 1, &[0x80, 0, 0, 1, 0]);
    client.poll().unwrap();
    assert_eq!(client.reset_code(1), ErrorCode::PROTOCOL_ERROR);
    assert!(!client.connection.is_open(stream));
}
