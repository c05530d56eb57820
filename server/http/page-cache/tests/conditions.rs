//! RFC 9111 4.3.2 and RFC 9110 13 and 14: conditions and ranges against stored responses. The tables of
//! RFC 9110 itself are in `http-semantics`.

mod support;

use outboard_http_semantics::ByteRange;
use outboard_page_cache::{Conditions, ContentSelection, Fields, Validators};
use support::{NOW_S, lines};

const MODIFIED: &str = "Tue, 14 Nov 2023 21:00:00 GMT";
const SIZE: u64 = 1000;

fn answer(stored: &str, request: &str) -> ContentSelection {
    answer_to(false, stored, request)
}

fn answer_to(is_head: bool, stored: &str, request: &str) -> ContentSelection {
    let (stored, request) = (lines(stored), lines(request));
    let conditions = Conditions::read(Fields(&request));
    let validators = Validators::of(Fields(&stored));
    conditions.evaluate(is_head, validators, Some(NOW_S), NOW_S, SIZE)
}

fn part(start: u64, end: u64) -> ContentSelection {
    ContentSelection::Part(ByteRange { start, end })
}

#[test]
fn rfc_9110_13_1_2_if_none_match_compares_weakly() {
    for (etag, field, expected) in [
        ("\"a\"", "\"a\"", ContentSelection::NotModified),
        ("\"a\"", "W/\"a\"", ContentSelection::NotModified),
        ("W/\"a\"", "\"a\"", ContentSelection::NotModified),
        ("\"a\"", "\"b\", \"a\"", ContentSelection::NotModified),
        ("\"a,b\"", "\"a,b\"", ContentSelection::NotModified),
        ("\"a\"", "*", ContentSelection::NotModified),
        ("\"a\"", "\"b\"", ContentSelection::Whole),
        ("\"a\"", "\"A\"", ContentSelection::Whole),
        ("\"a\"", "a", ContentSelection::Whole),
        ("a", "a", ContentSelection::Whole),
    ] {
        let got = answer(&format!("ETag: {etag}"), &format!("If-None-Match: {field}"));
        assert_eq!(got, expected, "{etag} / {field}");
    }
    let two_lines = "If-None-Match: \"b\"\nIf-None-Match: \"a\"";
    assert_eq!(answer("ETag: \"a\"", two_lines), ContentSelection::NotModified);
}

#[test]
fn rfc_9110_13_1_3_if_modified_since_without_if_none_match() {
    let stored = format!("Last-Modified: {MODIFIED}\nETag: \"a\"");
    for (request, expected) in [
        (format!("If-Modified-Since: {MODIFIED}"), ContentSelection::NotModified),
        ("If-Modified-Since: Tue, 14 Nov 2023 21:00:01 GMT".into(), ContentSelection::NotModified),
        ("If-Modified-Since: Tue, 14 Nov 2023 20:59:59 GMT".into(), ContentSelection::Whole),
        ("If-Modified-Since: yesterday".into(), ContentSelection::Whole),
        (format!("If-Modified-Since: {MODIFIED}\nIf-None-Match: \"b\""), ContentSelection::Whole),
    ] {
        assert_eq!(answer(&stored, &request), expected, "{request}");
    }
}

#[test]
fn section_4_3_2_without_last_modified_the_date_is_compared() {
    // NOW_S is 22:13:20 on that day.
    let since = |time: &str| format!("If-Modified-Since: Tue, 14 Nov 2023 {time} GMT");
    assert_eq!(answer("ETag: \"a\"", &since("22:13:20")), ContentSelection::NotModified);
    assert_eq!(answer("ETag: \"a\"", &since("22:13:19")), ContentSelection::Whole);
}

#[test]
fn section_4_3_2_if_match_is_left_to_the_origin() {
    for (request, expected) in [
        ("If-Match: \"a\"", true),
        ("If-Unmodified-Since: Tue, 14 Nov 2023 21:00:00 GMT", true),
        ("If-None-Match: \"a\"", false),
        ("Range: bytes=0-", false),
        ("", false),
    ] {
        let request = lines(request);
        assert_eq!(Conditions::read(Fields(&request)).need_origin, expected);
    }
}

#[test]
fn rfc_9110_14_one_range_of_a_complete_response() {
    for (range, expected) in [
        ("bytes=0-99", part(0, 100)),
        ("bytes=900-", part(900, 1000)),
        ("bytes=-100", part(900, 1000)),
        ("bytes=1000-", ContentSelection::Unsatisfiable),
        ("bytes=0-1, 5-6", part(0, 7)),
        ("bytes=0-1, 500-501", ContentSelection::Whole),
        ("lines=0-1", ContentSelection::Whole),
    ] {
        assert_eq!(answer("", &format!("Range: {range}")), expected, "{range}");
    }
    assert_eq!(answer_to(true, "", "Range: bytes=0-99"), ContentSelection::Whole);
}

#[test]
fn rfc_9110_13_1_5_if_range_needs_strong_agreement() {
    let stored = format!("ETag: \"a\"\nLast-Modified: {MODIFIED}");
    for (validator, expected) in [
        ("\"a\"", part(0, 10)),
        ("W/\"a\"", ContentSelection::Whole),
        ("\"b\"", ContentSelection::Whole),
        (MODIFIED, part(0, 10)),
        ("Tue, 14 Nov 2023 21:00:01 GMT", ContentSelection::Whole),
        ("nonsense", ContentSelection::Whole),
    ] {
        let request = format!("Range: bytes=0-9\nIf-Range: {validator}");
        assert_eq!(answer(&stored, &request), expected, "{validator}");
    }
    let weak = "ETag: W/\"a\"";
    assert_eq!(answer(weak, "Range: bytes=0-9\nIf-Range: W/\"a\""), ContentSelection::Whole);
}

#[test]
fn rfc_9110_13_2_2_not_modified_precedes_a_range() {
    let request = "If-None-Match: \"a\"\nRange: bytes=0-9";
    assert_eq!(answer("ETag: \"a\"", request), ContentSelection::NotModified);
}
