//! Frames about raw connections: any payload is refused or written again as it was read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_ring::stream::{Peer, StreamCall, StreamEvent};

fuzz_target!(|payload: &[u8]| {
    let mut again = Vec::new();
    if let Ok(event) = StreamEvent::decode(payload) {
        event.encode(&mut again);
        assert_eq!(StreamEvent::decode(&again), Ok(event));
    }
    again.clear();
    if let Ok(call) = StreamCall::decode(payload) {
        call.encode(&mut again);
        assert_eq!(StreamCall::decode(&again), Ok(call));
    }
    again.clear();
    if let Ok((peer, rest)) = Peer::decode(payload) {
        peer.encode(&mut again);
        again.extend_from_slice(rest);
        assert_eq!(again, payload);
    }
});
