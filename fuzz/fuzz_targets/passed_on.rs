//! Any response head of PHP or of an upstream: what is passed on is header lines, whole, without those
//! that frame a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_gateway::fuzzing::passed_on;
use outboard_ring::response::ResponseHead;

const OURS: [&[u8]; 6] = [
    b"connection",
    b"content-length",
    b"keep-alive",
    b"trailer",
    b"transfer-encoding",
    b"x-sendfile",
];

fuzz_target!(|input: (&[u8], u16, Vec<&[u8]>)| {
    let (payload, status, lines) = input;
    let mut head = Vec::new();
    ResponseHead::encode_status(&mut head, status, b"");
    lines.iter().for_each(|line| ResponseHead::encode_line(&mut head, line));
    for passed in [passed_on(payload, payload), passed_on(&head, &lines.join(&b'\n'))] {
        passed.iter().flatten().for_each(|lines| check(lines));
    }
});

fn check(lines: &[u8]) {
    assert!(lines.is_empty() || lines.ends_with(b"\r\n"));
    assert!(!lines.contains(&0));
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").expect("a line ends with both");
        assert!(!line.contains(&b'\r'));
        let colon = line.iter().position(|byte| *byte == b':').expect("a name ends with a colon");
        let name = line[..colon].to_ascii_lowercase();
        assert!(!name.is_empty() && !OURS.contains(&&name[..]));
    }
}
