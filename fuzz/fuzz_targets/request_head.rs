//! Any bytes as a request head: no panic, the same answer in two pieces as in one, and what the
//! accessors give is what the rules promise.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_http1::{HeadLimits, HeadStatus, RequestHead, normalize_path};

const LIMITS: HeadLimits =
    HeadLimits { request_line_bytes: 200, header_bytes: 600, header_count: 12 };

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let mut whole = RequestHead::new();
    let answer = whole.parse(bytes, &LIMITS);

    let mut split = RequestHead::new();
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

    if let Ok(HeadStatus::Complete { head_len }) = answer {
        check_accepted(&whole, &bytes[..head_len]);
    }
});

fn check_accepted(head: &RequestHead, bytes: &[u8]) {
    assert!(bytes.ends_with(b"\r\n\r\n"));
    assert!(head.header_count() <= LIMITS.header_count);
    for (name, value) in head.headers(bytes) {
        assert!(!name.is_empty() && name.is_ascii());
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        assert!(head.header(bytes, name).is_some());
    }
    if let Some(host) = head.host(bytes) {
        assert!(!host.is_empty() && host.is_ascii());
    }
    let mut path = Vec::new();
    if normalize_path(head.path(bytes), &mut path).is_ok() {
        assert!(path.starts_with(b"/"));
        assert!(!path.split(|&byte| byte == b'/').any(|segment| segment == b".."));
    }
    let _ = (head.method(bytes), head.query(bytes), head.upgrade(bytes));
    let _ = (head.body(), head.keep_alive(), head.expect_continue());
}
