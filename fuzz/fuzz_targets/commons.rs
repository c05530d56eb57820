//! What a Redis that gateways share sends: a value is the same whatever follows it and none before it
//! is whole, and a purge that cannot be read is one all the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_gateway::fuzzing::{purge_message, shared_value};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(count)) = shared_value(bytes) {
        let value = &bytes[..count];
        assert_eq!(shared_value(value), Ok(Some(count)));
        assert_eq!(shared_value(&value[..count - 1]), Ok(None));
    }
    purge_message(bytes);
    assert_eq!(purge_message(&[b"7 ", bytes].concat()), Some(7));
});
