//! What the gateway and a worker send each other about raw connections comes back, and damage does not.

use super::*;

#[test]
fn events_and_calls_are_read_as_they_were_written() {
    let event = StreamEvent {
        kind: EventKind::Data,
        is_last: true,
        is_suspect: true,
        port: 7,
        item: 1 << 40,
        session: 9,
        bytes: b"text",
    };
    let mut out = Vec::new();
    event.encode(&mut out);
    assert_eq!(out.len(), EVENT_HEADER_BYTES + 4);
    assert_eq!(StreamEvent::decode(&out), Ok(event));
    let call = StreamCall {
        verb: Verb::Close,
        is_last: false,
        item: 3,
        session: u64::MAX,
        value: 1,
        bytes: b"",
    };
    out.clear();
    call.encode(&mut out);
    assert_eq!(StreamCall::decode(&out), Ok(call));
    for length in 0..out.len() {
        assert!(StreamCall::decode(&out[..length]).is_err());
    }
}

#[test]
fn numbers_without_a_meaning_are_corrupt() {
    assert!(StreamEvent::decode(&[99; 40]).is_err());
    assert!(StreamCall::decode(&[99; 40]).is_err());
    for raw in 0..=u8::MAX {
        assert!(Verb::from_wire(raw).is_none_or(|verb| verb as u8 == raw));
        assert!(EventKind::from_wire(raw).is_none_or(|kind| kind as u8 == raw));
    }
}

#[test]
fn a_peer_is_followed_by_the_datagram() {
    let peer = Peer { port: 5000, local_port: 80, address: "::1" };
    let mut out = Vec::new();
    peer.encode(&mut out);
    out.extend_from_slice(b"rest");
    assert_eq!(Peer::decode(&out), Ok((peer, &b"rest"[..])));
    assert!(Peer::decode(&out[..6]).is_err());
    assert!(Peer::decode(&[0, 0, 0, 0, 1, 0xff]).is_err());
}

#[test]
fn an_address_is_cut_to_what_its_length_can_name() {
    let long = "a".repeat(300);
    let mut out = Vec::new();
    Peer { port: 1, local_port: 2, address: &long }.encode(&mut out);
    out.extend_from_slice(b"datagram");
    let cut = Peer { port: 1, local_port: 2, address: &long[..255] };
    assert_eq!(Peer::decode(&out), Ok((cut, &b"datagram"[..])));
}

#[test]
fn only_queries_have_a_completion() {
    let verbs = (0..=u8::MAX).filter_map(Verb::from_wire);
    let queries: Vec<Verb> = verbs.filter(|verb| verb.is_query()).collect();
    assert_eq!(queries, [Verb::Info, Verb::List, Verb::Stats, Verb::Heartbeat, Verb::Room]);
}

proptest::proptest! {
    #[test]
    fn any_flags_and_numbers_are_read_as_they_are_encoded(
        kind in 1..10_u8, verb in 1..40_u8, numbers: [u8; 40],
    ) {
        let (mut event, mut call) = (numbers, numbers);
        (event[0], call[0]) = (kind, verb);
        let event = StreamEvent::decode(&event).unwrap();
        let mut out = Vec::new();
        event.encode(&mut out);
        assert_eq!(StreamEvent::decode(&out), Ok(event));
        assert_eq!(event.bytes, &numbers[EVENT_HEADER_BYTES..]);
        if let Ok(call) = StreamCall::decode(&call) {
            out.clear();
            call.encode(&mut out);
            assert_eq!(StreamCall::decode(&out), Ok(call));
        }
    }
}
