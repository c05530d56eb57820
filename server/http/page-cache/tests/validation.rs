//! RFC 9111 4.3.1, 4.3.3 to 4.3.5 and 3.2: validation with the origin.

mod support;

use outboard_page_cache::{
    Fields, Response, Validation, Validators, belongs_into_304, conditional_fields, freshened,
    head_agrees, is_replaced, validate,
};
use support::lines;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

#[test]
fn section_4_3_1_all_validators_are_sent() {
    let text = format!("ETag: W/\"a\"\nLast-Modified: {DATE}");
    let stored = lines(&text);
    let sent: Vec<_> = conditional_fields(Validators::of(Fields(&stored))).collect();
    assert_eq!(sent[0], (&b"If-None-Match"[..], &b"W/\"a\""[..]));
    assert_eq!(sent[1], (&b"If-Modified-Since"[..], DATE.as_bytes()));
    let unreadable = lines("ETag: a\nLast-Modified: b");
    assert_eq!(conditional_fields(Validators::of(Fields(&unreadable))).count(), 0);
    assert!(is_replaced(b"if-none-match") && is_replaced(b"Range") && !is_replaced(b"Accept"));
}

#[test]
fn sections_4_3_3_and_4_3_4_validation_responses() {
    let other_date = "Sun, 06 Nov 1994 08:49:38 GMT";
    for (stored, status, answer, expected) in [
        ("ETag: \"a\"", 304, "ETag: \"a\"".to_owned(), Validation::Confirmed),
        ("ETag: \"a\"", 304, String::new(), Validation::Confirmed),
        ("ETag: \"a\"", 304, "ETag: \"b\"".into(), Validation::Mismatch),
        ("ETag: W/\"a\"", 304, "ETag: \"a\"".into(), Validation::Mismatch),
        ("ETag: W/\"a\"", 304, "ETag: W/\"a\"".into(), Validation::Confirmed),
        ("ETag: \"a\"", 304, "ETag: W/\"a\"".into(), Validation::Confirmed),
        (
            &format!("Last-Modified: {DATE}"),
            304,
            format!("Last-Modified: {DATE}"),
            Validation::Confirmed,
        ),
        (
            &format!("Last-Modified: {DATE}"),
            304,
            format!("Last-Modified: {other_date}"),
            Validation::Mismatch,
        ),
        (&format!("Last-Modified: {DATE}"), 304, "ETag: \"a\"".into(), Validation::Mismatch),
        ("ETag: \"a\"", 200, "ETag: \"a\"".into(), Validation::Replaced),
        ("ETag: \"a\"", 404, String::new(), Validation::Replaced),
        ("ETag: \"a\"", 500, String::new(), Validation::Failed),
        ("ETag: \"a\"", 503, String::new(), Validation::Failed),
    ] {
        let (stored_lines, answer_lines) = (lines(stored), lines(&answer));
        let answered = Response { status, fields: Fields(&answer_lines) };
        let meant = validate(Validators::of(Fields(&stored_lines)), answered);
        assert_eq!(meant, expected, "{stored} / {status} {answer}");
    }
}

#[test]
fn section_3_2_a_304_updates_fields_but_not_those_of_the_body() {
    let stored = lines(
        "ETag: \"a\"\nCache-Control: max-age=1\nX-Old: 1\nX-Two: 1\nX-Two: 2\n\
         Content-Type: text/html\nContent-Encoding: gzip",
    );
    let answer = lines(
        "cache-control: max-age=9\nX-Two: 3\nX-New: 1\nContent-Type: text/plain\n\
         Content-Encoding: br\nContent-Length: 0\nContent-Range: bytes 0-1/2",
    );
    let fresh = freshened(Fields(&stored), Fields(&answer));
    let text = |(name, value): &(&[u8], &[u8])| {
        format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
    };
    let expected = [
        "ETag: \"a\"",
        "X-Old: 1",
        "Content-Type: text/html",
        "Content-Encoding: gzip",
        "cache-control: max-age=9",
        "X-Two: 3",
        "X-New: 1",
    ];
    assert_eq!(fresh.iter().map(text).collect::<Vec<_>>(), expected);
}

#[test]
fn section_4_3_5_a_head_response_freshens_or_invalidates() {
    for (stored, answer, expected) in [
        ("ETag: \"a\"", "ETag: \"a\"\nContent-Length: 7", true),
        ("ETag: \"a\"", "Content-Length: 7", true),
        ("ETag: \"a\"", "", true),
        ("ETag: \"a\"", "Content-Length: 8", false),
        ("ETag: \"a\"", "ETag: \"b\"", false),
    ] {
        let (stored, answer) = (lines(stored), lines(answer));
        let response = Response { status: 200, fields: Fields(&answer) };
        assert_eq!(head_agrees(Validators::of(Fields(&stored)), 7, response), expected);
    }
}

#[test]
fn rfc_9110_15_4_5_what_a_304_carries() {
    for name in ["Cache-Control", "Content-Location", "Date", "ETag", "Expires", "Vary"] {
        assert!(belongs_into_304(name.as_bytes()), "{name}");
    }
    for name in ["Content-Type", "Content-Length", "Content-Encoding", "X-Powered-By"] {
        assert!(!belongs_into_304(name.as_bytes()), "{name}");
    }
}
