//! The control stream, the QPACK streams, and streams of other types.

use super::*;

fn settings() -> Vec<u8> {
    [vec![0], frame(frame_type::SETTINGS, &[6, 0x41, 0])].concat()
}

/// What a control stream causes that continues with these frames after SETTINGS.
fn control(frames: &[u8]) -> Result<Vec<String>, ErrorCode> {
    let mut server = Server::new(CONFIG);
    // Byte by byte.
    for byte in [&settings(), frames].concat() {
        assert_eq!(server.receive(2, &[byte], false)?, Received::All);
    }
    let events = server.events();
    assert_eq!(events[0], "settings Some(256)");
    Ok(events[1..].to_vec())
}

#[test]
fn control_frames_are_reported() {
    for (frames, events) in [
        (vec![], &[][..]),
        (frame(0x21, b"grease"), &[]),
        (frame(frame_type::GOAWAY, &[4]).repeat(2), &["goaway 4", "goaway 4"]),
        (frame(frame_type::MAX_PUSH_ID, &[0x40, 9]), &[]),
        (frame(frame_type::PRIORITY_UPDATE, b"\x04u=1, i"), &["4 priority 1 true"]),
        (frame(frame_type::PRIORITY_UPDATE, b"\x04"), &["4 priority 3 false"]),
    ] {
        assert_eq!(control(&frames).unwrap(), events);
    }
}

#[test]
fn invalid_control_frames_end_the_connection() {
    use frame_type::*;
    let decreasing = [frame(MAX_PUSH_ID, &[9]), frame(MAX_PUSH_ID, &[8])].concat();
    let increasing = [frame(GOAWAY, &[4]), frame(GOAWAY, &[8])].concat();
    for (frames, code) in [
        (frame(SETTINGS, b""), ErrorCode::FRAME_UNEXPECTED),
        (frame(DATA, b""), ErrorCode::FRAME_UNEXPECTED),
        (frame(HEADERS, b""), ErrorCode::FRAME_UNEXPECTED),
        (frame(PUSH_PROMISE, b""), ErrorCode::FRAME_UNEXPECTED),
        (frame(0x6, b""), ErrorCode::FRAME_UNEXPECTED),
        (frame(GOAWAY, b""), ErrorCode::FRAME_ERROR),
        (frame(GOAWAY, &[0, 0]), ErrorCode::FRAME_ERROR),
        (frame(GOAWAY, &[0x40]), ErrorCode::FRAME_ERROR),
        (frame(GOAWAY, &[0; 9]), ErrorCode::FRAME_ERROR),
        (frame(CANCEL_PUSH, b""), ErrorCode::FRAME_ERROR),
        (frame(CANCEL_PUSH, &[0]), ErrorCode::ID_ERROR),
        (decreasing, ErrorCode::ID_ERROR),
        (increasing, ErrorCode::ID_ERROR),
        (frame(PRIORITY_UPDATE, b""), ErrorCode::FRAME_ERROR),
        (frame(PRIORITY_UPDATE, &[1]), ErrorCode::ID_ERROR),
        (frame(PRIORITY_UPDATE_OF_PUSH, &[0]), ErrorCode::ID_ERROR),
        (frame(PRIORITY_UPDATE, &[0; 1025]), ErrorCode::EXCESSIVE_LOAD),
        (frame(PRIORITY_UPDATE, b"\x04").repeat(70), ErrorCode::EXCESSIVE_LOAD),
        (frame(0x21, &[0; 200]), ErrorCode::EXCESSIVE_LOAD),
    ] {
        assert_eq!(control(&frames), Err(code), "{frames:x?}");
    }
}

#[test]
fn settings_come_first() {
    for frames in [frame(frame_type::GOAWAY, &[0]), frame(0x21, b""), frame(0, b"")] {
        let result = Server::new(CONFIG).receive(2, &[&[0], &frames[..]].concat(), false);
        assert_eq!(result, Err(ErrorCode::MISSING_SETTINGS));
    }
    let invalid = [vec![0], frame(frame_type::SETTINGS, &[2, 0])].concat();
    let result = Server::new(CONFIG).receive(2, &invalid, false);
    assert_eq!(result, Err(ErrorCode::SETTINGS_ERROR));
}

#[test]
fn streams_that_the_connection_needs_do_not_end() {
    let closed = Err(ErrorCode::CLOSED_CRITICAL_STREAM);
    for bytes in [settings(), vec![2], vec![3]] {
        assert_eq!(Server::new(CONFIG).receive(6, &bytes, true), closed);
        let mut server = Server::new(CONFIG);
        assert_eq!(server.receive(6, &bytes, false), Ok(Received::All));
        let reset = server.connection.close_stream(6).map_err(|error| error.code());
        assert_eq!(reset, Err(ErrorCode::CLOSED_CRITICAL_STREAM));
        let mut server = Server::new(CONFIG);
        assert_eq!(server.receive(6, &bytes, false), Ok(Received::All));
        let second = server.receive(10, &bytes, false);
        assert_eq!(second, Err(ErrorCode::STREAM_CREATION_ERROR));
    }
    let push = Server::new(CONFIG).receive(2, &[1, 0], false);
    assert_eq!(push, Err(ErrorCode::STREAM_CREATION_ERROR));
}

#[test]
fn unknown_streams_are_skipped_up_to_a_limit() {
    let mut server = Server::new(CONFIG);
    for (stream_id, bytes) in [(2, &[0x21][..]), (6, &[0x40, 0x41, 9, 9]), (10, &[0x21])] {
        assert_eq!(server.receive(stream_id, bytes, stream_id == 10), Ok(Received::All));
        assert_eq!(server.events(), [format!("{stream_id} unknown")]);
        assert_eq!(server.connection.close_stream(stream_id), Ok(()));
    }
    // A type that is incomplete.
    assert_eq!(server.receive(14, &[0x40], false), Ok(Received::All));
    assert_eq!(server.receive(14, &[], true), Ok(Received::All));
    assert_eq!(server.receive(0, &headers(&GET), true), Ok(Received::All));
    for stream_id in [18, 22, 26] {
        assert_eq!(server.receive(stream_id, &[0x21], true), Ok(Received::All));
    }
    assert_eq!(server.receive(30, &[0x21], true), Err(ErrorCode::EXCESSIVE_LOAD));
}

#[test]
fn errors_of_qpack_end_the_connection() {
    for (bytes, code) in [
        (&[2, 0x3f, 0x01][..], ErrorCode::QPACK_ENCODER_STREAM_ERROR),
        (&[3, 0x80], ErrorCode::QPACK_DECODER_STREAM_ERROR),
    ] {
        let mut server = Server::new(CONFIG);
        assert_eq!(server.receive(2, bytes, false), Err(code));
        let error = Connection::new(CONFIG).receive(2, bytes, false, |_| {}).unwrap_err();
        assert!(std::error::Error::source(&error).is_some());
        assert_eq!(error.to_string().split(':').next(), code.name());
    }
    let mut server = Server::new(CONFIG);
    assert_eq!(server.receive(2, &[2, 0x20], false), Ok(Received::All));
    assert_eq!(server.receive(6, &[3, 0x44], false), Ok(Received::All));
}

#[test]
fn the_control_stream_begins_with_its_type_and_settings() {
    let mut out = Vec::new();
    Connection::new(CONFIG).write_control_stream_start(&mut out);
    assert_eq!(out, [0, 4, 5, 6, 0x42, 0x58, 8, 1]);
    out.clear();
    Connection::new(CONFIG).write_decoder_stream(&mut out);
    assert!(out.is_empty());
}
