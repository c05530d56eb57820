//! Any bytes as header lines that PHP wants sent to an upstream: what is accepted is header lines, and
//! none that frame a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_upstream::RequestHeaders;

const OF_THE_CONNECTION: [&[u8]; 5] =
    [b"connection", b"content-length", b"te", b"trailer", b"transfer-encoding"];

fuzz_target!(|text: &[u8]| {
    let Ok(headers) = RequestHeaders::parse(text) else { return };
    for (name, value) in headers.iter() {
        assert!(!name.is_empty() && name.is_ascii() && !name.contains(&b' '));
        assert!(!OF_THE_CONNECTION.contains(&&name.to_ascii_lowercase()[..]));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
    }
});
