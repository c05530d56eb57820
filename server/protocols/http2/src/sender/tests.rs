//! Streams that share a sender and its windows.

use super::*;

/// A sender, and open streams that have sent their heads.
fn sender(stream_window_bytes: u32, count: u32) -> (Sender, Streams, Vec<StreamKey>) {
    let settings = Settings {
        stream_send_buffer_bytes: 64 << 10,
        send_buffer_bytes: 64 << 10,
        ..Settings::default()
    };
    let mut streams = Streams::new();
    let keys = (0..count).map(|at| {
        let mut stream = Stream::new(2 * at + 1, stream_window_bytes, 1);
        stream.sending = Sending::Body;
        streams.open(stream)
    });
    let keys = keys.collect();
    (Sender::new(&settings), streams, keys)
}

/// The frames of the output: type, flags, stream and length.
fn frames(sender: &mut Sender) -> Vec<(u8, u8, u32, usize)> {
    let mut found = Vec::new();
    let mut bytes = sender.output().bytes();
    while let Some(head) = FrameHead::read(bytes) {
        found.push((head.kind, head.flags, head.stream_id, head.len));
        bytes = &bytes[FRAME_HEAD_BYTES + head.len..];
    }
    assert!(bytes.is_empty(), "the output ends within a frame");
    sender.sent(sender.output().len());
    found
}

#[test]
fn data_is_written_directly_while_the_windows_allow_it() {
    let (mut sender, mut streams, keys) = sender(20_000, 1);
    let stream = streams.get_mut(keys[0]).unwrap();
    let sent = sender.send_directly(stream, &[0; 30_000], true);
    assert_eq!(sent, Some(SentDirectly { bytes: 20_000, is_end: false }));
    assert_eq!(frames(&mut sender), [(kind::DATA, 0, 1, 16_384), (kind::DATA, 0, 1, 3_616)]);
    assert_eq!(sender.send_directly(stream, &[0; 1], true), None);
    // An end without data needs no window.
    let sent = sender.send_directly(stream, &[], true);
    assert_eq!(sent, Some(SentDirectly { bytes: 0, is_end: true }));
    assert_eq!(frames(&mut sender), [(kind::DATA, flag::END_STREAM, 1, 0)]);
}

#[test]
fn buffered_data_is_sent_once_its_window_opens() {
    let (mut sender, mut streams, keys) = sender(0, 1);
    let key = keys[0];
    let stream = streams.get_mut(key).unwrap();
    assert_eq!(sender.buffer_data(key, stream, b"late", true), 4);
    assert!(!sender.has_output());
    assert_eq!(sender.send_turn(&mut streams, 1 << 16), Turn::Nothing);
    let stream = streams.get_mut(key).unwrap();
    sender.add_stream_window(key, stream, 3).unwrap();
    assert!(sender.has_output());
    assert_eq!(sender.send_turn(&mut streams, 1 << 16), Turn::Sent);
    sender.change_stream_windows(&mut streams, 1).unwrap();
    assert_eq!(sender.send_turn(&mut streams, 1 << 16), Turn::Ended(key));
    let end = (kind::DATA, flag::END_STREAM, 1, 1);
    assert_eq!(frames(&mut sender), [(kind::DATA, 0, 1, 3), end]);
}

#[test]
fn no_stream_overtakes_data_that_waits() {
    let (mut sender, mut streams, keys) = sender(1 << 20, 2);
    let stream = streams.get_mut(keys[0]).unwrap();
    assert_eq!(sender.buffer_data(keys[0], stream, &[0; 100], false), 100);
    let other = streams.get_mut(keys[1]).unwrap();
    assert_eq!(sender.send_directly(other, b"x", false), None);
    sender.set_priority(keys[1], other, Priority { urgency: 0, ..Priority::default() });
    assert!(sender.send_directly(other, b"x", false).is_some(), "it is more urgent");
}

#[test]
fn a_budget_bounds_what_is_framed_at_a_time() {
    let (mut sender, mut streams, keys) = sender(1 << 20, 1);
    let stream = streams.get_mut(keys[0]).unwrap();
    sender.buffer_data(keys[0], stream, &[0; 40_000], false);
    assert_eq!(sender.send_turn(&mut streams, 5_000), Turn::Sent);
    assert_eq!(sender.output().len(), 5_000);
    assert_eq!(sender.send_turn(&mut streams, 5_000), Turn::Nothing);
    assert_eq!(frames(&mut sender), [(kind::DATA, 0, 1, 5_000 - FRAME_HEAD_BYTES)]);
    // A budget of nothing sends something nevertheless.
    assert_eq!(sender.send_turn(&mut streams, 0), Turn::Sent);
}

#[test]
fn a_stream_that_waits_is_found_when_it_has_much_room() {
    let (mut sender, mut streams, keys) = sender(1 << 20, 1);
    let stream = streams.get_mut(keys[0]).unwrap();
    assert_eq!(sender.buffer_data(keys[0], stream, &[0; 70_000], false), 64 << 10);
    sender.find_writable(&mut streams);
    assert_eq!(sender.next_writable(), None);
    for _ in 0..2 {
        assert_eq!(sender.send_turn(&mut streams, 1 << 20), Turn::Sent);
    }
    sender.find_writable(&mut streams);
    assert_eq!(sender.next_writable(), Some(keys[0]));
    sender.find_writable(&mut streams);
    assert_eq!(sender.next_writable(), None, "it is found once");
}

#[test]
fn a_forgotten_stream_sends_nothing() {
    let (mut sender, mut streams, keys) = sender(1 << 20, 1);
    let stream = streams.get_mut(keys[0]).unwrap();
    assert_eq!(sender.buffer_data(keys[0], stream, &[0; 70_000], false), 64 << 10);
    sender.forget(keys[0], stream);
    assert_eq!(sender.state_of(stream).buffered_bytes, 0);
    assert_eq!(sender.send_turn(&mut streams, 1 << 20), Turn::Nothing);
    sender.find_writable(&mut streams);
    assert_eq!(sender.next_writable(), None);
    sender.shrink();
    assert_eq!(sender.buffer_bytes(), 0);
}

#[test]
fn a_long_block_is_continued_in_further_frames() {
    let (mut sender, ..) = sender(0, 0);
    let value = vec![b'~'; 40_000];
    sender.write_head(7, Some(200), [(&b"x-long"[..], &value[..])], true);
    let frames = frames(&mut sender);
    assert_eq!(frames[0].0, kind::HEADERS);
    assert_eq!((frames[0].1, frames[0].2), (flag::END_STREAM, 7));
    assert!(frames[1..].iter().all(|frame| frame.0 == kind::CONTINUATION && frame.2 == 7));
    let ends = frames.iter().filter(|frame| frame.1 & flag::END_HEADERS != 0).count();
    assert_eq!((ends, frames.last().unwrap().1), (1, flag::END_HEADERS));
}

#[test]
fn fields_that_may_not_be_sent_are_left_out() {
    let length = |fields: &[(&[u8], &[u8])]| {
        let (mut sender, ..) = sender(0, 0);
        sender.write_head(1, Some(200), fields.iter().copied(), false);
        frames(&mut sender)[0].3
    };
    let without = length(&[]);
    assert!(length(&[(b"a", b"b")]) > without);
    for (name, value) in [("connection", "close"), ("a b", "c"), ("a", "b\nc")] {
        assert_eq!(length(&[(name.as_bytes(), value.as_bytes())]), without, "{name}");
    }
}
