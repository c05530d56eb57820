//! Frames of both directions: whatever a peer wrote is read whole or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_ring::request::{Field, RequestView};
use outboard_ring::response::{Done, LogLine, ResponseHead, Trailers};

fuzz_target!(|payload: &[u8]| {
    if let Ok(view) = RequestView::decode(payload) {
        assert_eq!(view.headers().count(), usize::from(view.fixed.header_count));
        assert_eq!(view.params().count(), usize::from(view.fixed.param_count));
        // C reads the strings in place: each must be followed by its NUL inside of the payload.
        let uri = view.field(Field::Uri);
        let end = uri.as_ptr_range().end as usize - payload.as_ptr() as usize;
        assert_eq!(payload[end], 0);
    }
    if let Ok(trailers) = Trailers::decode(payload) {
        let lines_bytes: usize = trailers.lines().map(|line| line.len() + 4).sum();
        assert_eq!(lines_bytes, payload.len());
    }
    if let Ok(head) = ResponseHead::decode(payload) {
        let bytes: usize = head.lines().map(|line| line.len() + 4).sum();
        assert_eq!(bytes + 4 + head.reason.len(), payload.len());
    }
    if let Ok(done) = Done::decode(payload) {
        assert_eq!(Done::decode(&done.encode()), Ok(done));
    }
    if let Ok(line) = LogLine::decode(payload) {
        assert!(line.severity <= 7);
    }
});
