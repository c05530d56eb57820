//! Encoding and decoding are inverse, and decoding survives any bytes.

use super::*;
use proptest::prelude::*;

#[test]
fn a_head_comes_back_line_by_line() {
    let mut payload = Vec::new();
    ResponseHead::encode_status(&mut payload, 418, b"I'm a teapot");
    ResponseHead::encode_line(&mut payload, b"A: 1");
    ResponseHead::encode_line(&mut payload, b"");
    let head = ResponseHead::decode(&payload).unwrap();
    assert_eq!((head.status, head.reason), (418, &b"I'm a teapot"[..]));
    assert_eq!(head.lines().collect::<Vec<_>>(), [&b"A: 1"[..], b""]);
    for len in [1, 3, 8, payload.len() - 1] {
        assert!(ResponseHead::decode(&payload[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn the_end_of_a_request_comes_back() {
    let done = Done {
        outcome: Outcome::Failed,
        leaving: true,
        takes_snapshot: true,
        handled: true,
        peak_memory_bytes: 2 << 20,
    };
    assert_eq!(Done::decode(&done.encode()), Ok(done));
    let mut raw = done.encode();
    raw[0] = 9;
    assert!(Done::decode(&raw).is_err());
    assert!(Done::decode(b"").is_err());
}

#[test]
fn a_whole_response_comes_back() {
    let done = Done {
        outcome: Outcome::Finished,
        leaving: false,
        takes_snapshot: false,
        handled: true,
        peak_memory_bytes: 1,
    };
    let payload = [&Whole::prefix(&done, 4)[..], b"headbody"].concat();
    let whole = Whole::decode(&payload).unwrap();
    assert_eq!((whole.done, whole.head, whole.body), (done, &b"head"[..], &b"body"[..]));
    for len in 0..WHOLE_PREFIX_BYTES + 4 {
        assert!(Whole::decode(&payload[..len]).is_err(), "{len} bytes");
    }
    assert!(Whole::decode(&payload[..WHOLE_PREFIX_BYTES + 4]).unwrap().body.is_empty());
}

#[test]
fn a_log_line_needs_a_severity() {
    assert!(LogLine::decode(b"").is_err());
    assert_eq!(LogLine::decode(b"\xffhi"), Ok(LogLine { severity: 7, text: b"hi" }));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(head) = ResponseHead::decode(&payload) {
            let bytes: usize = head.lines().map(|line| line.len() + 4).sum();
            prop_assert_eq!(bytes + 4 + head.reason.len(), payload.len());
        }
    }
}

#[test]
fn trailers_come_back_in_order_and_a_cut_one_is_corrupt() {
    let mut payload = Vec::new();
    assert_eq!(Trailers::decode(&payload).unwrap().lines().next(), None);
    for line in [&b"Digest: a"[..], b"", b"X: \r\n"] {
        ResponseHead::encode_line(&mut payload, line);
    }
    let lines: Vec<&[u8]> = Trailers::decode(&payload).unwrap().lines().collect();
    assert_eq!(lines, [&b"Digest: a"[..], b"", b"X: \r\n"]);
    let whole: Vec<usize> =
        (0..=payload.len()).filter(|len| Trailers::decode(&payload[..*len]).is_ok()).collect();
    assert_eq!(whole, [0, 13, 17, payload.len()], "where a line ends");
}

#[test]
fn a_reason_is_cut_to_what_its_length_can_name() {
    let (mut payload, reason) = (Vec::new(), vec![b'r'; 70_000]);
    ResponseHead::encode_status(&mut payload, 599, &reason);
    ResponseHead::encode_line(&mut payload, b"A: 1");
    let head = ResponseHead::decode(&payload).unwrap();
    assert_eq!((head.status, head.reason.len()), (599, 65_535));
    assert_eq!(head.lines().collect::<Vec<_>>(), [b"A: 1"]);
}

#[test]
fn lengths_beyond_the_payload_are_corrupt() {
    for length in [5, u32::from(u16::MAX), i32::MAX as u32, u32::MAX] {
        let line = [&length.to_le_bytes()[..], b"line"].concat();
        assert!(Trailers::decode(&line).is_err(), "{length}");
        let head = [&[200, 0, 0, 0][..], &line].concat();
        assert!(ResponseHead::decode(&head).is_err(), "{length}");
        let done = [0; Done::BYTES];
        assert!(Whole::decode(&[&done[..], &line].concat()).is_err(), "{length}");
    }
}

#[test]
fn only_one_byte_means_that_a_script_has_handled_its_request() {
    let mut raw = [0; Done::BYTES];
    for (byte, handled) in [(0, false), (1, true), (2, false), (255, false)] {
        raw[1..4].fill(byte);
        let done = Done::decode(&raw).unwrap();
        assert_eq!((done.handled, done.leaving), (handled, byte != 0), "{byte}");
    }
    assert!(Done::decode(&[0; Done::BYTES + 1]).is_err());
}
