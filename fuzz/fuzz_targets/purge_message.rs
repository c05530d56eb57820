//! Any purge message from another gateway: no panic, and a malformed one still purges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_page_cache::fuzzing::purge_message;

fuzz_target!(|bytes: &[u8]| {
    purge_message(bytes);
    assert_eq!(purge_message(&[b"7 ", bytes].concat()), Some(7));
});
