//! Any bytes as an answer to the load generator: no panic, and the same in two pieces as in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_load::{Protocol, read_response};

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let cut = usize::from(cut) % (bytes.len() + 1);
    for protocol in [Protocol::Http1, Protocol::FastCgi, Protocol::Redis] {
        let whole = read_response(protocol, bytes, bytes.len());
        assert_eq!(read_response(protocol, bytes, cut), whole, "{protocol:?} cut at {cut}");
    }
});
