//! Any bytes as a reply of Redis to the entity store: no panic, the same whatever follows, and none
//! before it is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_entity_store::fuzzing::redis_reply;

fuzz_target!(|bytes: &[u8]| {
    if let Some(count) = redis_reply(bytes) {
        let reply = &bytes[..count];
        assert_eq!(redis_reply(reply), Some(count));
        assert_eq!(redis_reply(&reply[..count - 1]), None);
    }
});
