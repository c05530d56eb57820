//! Any bytes as a response head: no panic, and the same answer in two pieces as in one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http1::{HeadLimits, HeadStatus, Method, ResponseParser};

const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 200, header_bytes: 600, header_count: 12 };

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let mut whole = ResponseParser::new();
    let answer = whole.parse(bytes, &LIMITS);

    let mut split = ResponseParser::new();
    let cut = usize::from(cut) % (bytes.len() + 1);
    match split.parse(&bytes[..cut], &LIMITS) {
        Ok(HeadStatus::Partial) => {
            let resumed = split.parse(bytes, &LIMITS);
            // A line that is not whole is judged at once, or when its end comes.
            let is_put_off = answer.is_err() && resumed == Ok(HeadStatus::Partial);
            assert!(resumed == answer || is_put_off, "{resumed:?} for {answer:?}");
        }
        first => assert_eq!(first, answer),
    }

    if answer.is_ok_and(|status| status != HeadStatus::Partial) {
        assert!((100..=999).contains(&whole.status()));
        assert!(!whole.reason(bytes).contains(&b'\r'));
        let _ = (whole.body(Method::Get), whole.keep_alive(Method::Head), whole.is_interim());
    }
});
