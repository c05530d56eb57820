//! RFC 9111 4.3.2 and RFC 9110 13 and 14: conditions and ranges, answered from what is stored.

mod support;

use outboard_page_cache::{Answer, Conditions, Fields, Ranged, Validators};
use support::{NOW_S, lines};

const MODIFIED: &str = "Tue, 14 Nov 2023 21:00:00 GMT";
const SIZE: u64 = 1000;

fn answer(stored: &str, request: &str) -> Answer {
    answer_to(false, stored, request)
}

fn answer_to(is_head: bool, stored: &str, request: &str) -> Answer {
    let (stored, request) = (lines(stored), lines(request));
    let conditions = Conditions::read(Fields(&request));
    let validators = Validators::of(Fields(&stored));
    conditions.answer(is_head, validators, Some(NOW_S), NOW_S, SIZE)
}

fn part(start: u64, end: u64) -> Answer {
    Answer::Part(Ranged { start, end, size: SIZE })
}

#[test]
fn rfc_9110_13_1_2_if_none_match_compares_weakly() {
    for (etag, field, expected) in [
        ("\"a\"", "\"a\"", Answer::NotModified),
        ("\"a\"", "W/\"a\"", Answer::NotModified),
        ("W/\"a\"", "\"a\"", Answer::NotModified),
        ("\"a\"", "\"b\", \"a\"", Answer::NotModified),
        ("\"a\"", "\"b\",W/\"a\"", Answer::NotModified),
        ("\"a,b\"", "\"a,b\"", Answer::NotModified),
        ("\"a\"", "*", Answer::NotModified),
        ("\"a\"", "\"b\"", Answer::Whole),
        ("\"a\"", "\"A\"", Answer::Whole),
        ("\"a\"", "a", Answer::Whole),
        ("\"a\"", "", Answer::Whole),
        ("\"a\"", "\"a", Answer::Whole),
        ("a", "a", Answer::Whole),
    ] {
        let got = answer(&format!("ETag: {etag}"), &format!("If-None-Match: {field}"));
        assert_eq!(got, expected, "{etag} / {field}");
    }
    let two_lines = "If-None-Match: \"b\"\nIf-None-Match: \"a\"";
    assert_eq!(answer("ETag: \"a\"", two_lines), Answer::NotModified);
}

#[test]
fn rfc_9110_13_1_3_if_modified_since_counts_without_if_none_match() {
    let stored = format!("Last-Modified: {MODIFIED}\nETag: \"a\"");
    for (request, expected) in [
        (format!("If-Modified-Since: {MODIFIED}"), Answer::NotModified),
        ("If-Modified-Since: Tue, 14 Nov 2023 21:00:01 GMT".into(), Answer::NotModified),
        ("If-Modified-Since: Tue, 14 Nov 2023 20:59:59 GMT".into(), Answer::Whole),
        ("If-Modified-Since: yesterday".into(), Answer::Whole),
        (format!("If-Modified-Since: {MODIFIED}\nIf-None-Match: \"b\""), Answer::Whole),
    ] {
        assert_eq!(answer(&stored, &request), expected, "{request}");
    }
}

#[test]
fn section_4_3_2_without_last_modified_the_date_is_compared() {
    // NOW_S is 22:13:20 on that day.
    let since = |time: &str| format!("If-Modified-Since: Tue, 14 Nov 2023 {time} GMT");
    assert_eq!(answer("ETag: \"a\"", &since("22:13:20")), Answer::NotModified);
    assert_eq!(answer("ETag: \"a\"", &since("22:13:19")), Answer::Whole);
}

#[test]
fn section_4_3_2_conditions_for_the_origin_alone_are_left_to_it() {
    for (request, expected) in [
        ("If-Match: \"a\"", true),
        ("If-Unmodified-Since: Tue, 14 Nov 2023 21:00:00 GMT", true),
        ("If-None-Match: \"a\"", false),
        ("Range: bytes=0-", false),
        ("", false),
    ] {
        let request = lines(request);
        assert_eq!(Conditions::read(Fields(&request)).concern_the_origin, expected);
    }
}

#[test]
fn rfc_9110_14_one_range_of_a_complete_response() {
    for (range, expected) in [
        ("bytes=0-99", part(0, 100)),
        ("bytes=900-", part(900, 1000)),
        ("bytes=-100", part(900, 1000)),
        ("bytes=-5000", part(0, 1000)),
        ("bytes=500-5000", part(500, 1000)),
        ("BYTES = 0-0", part(0, 1)),
        ("bytes=1000-", Answer::Unsatisfiable),
        ("bytes=-0", Answer::Unsatisfiable),
        ("bytes=99-0", Answer::Whole),
        ("bytes=0-1, 5-6", Answer::Whole),
        ("lines=0-1", Answer::Whole),
        ("bytes=a-b", Answer::Whole),
        ("bytes=", Answer::Whole),
        ("bytes=-", Answer::Whole),
        ("bytes=0-99999999999999999999999", part(0, 1000)),
    ] {
        assert_eq!(answer("", &format!("Range: {range}")), expected, "{range}");
    }
    assert_eq!(answer_to(true, "", "Range: bytes=0-99"), Answer::Whole);
}

#[test]
fn rfc_9110_13_1_5_if_range_needs_strong_agreement() {
    let stored = format!("ETag: \"a\"\nLast-Modified: {MODIFIED}");
    for (validator, expected) in [
        ("\"a\"", part(0, 10)),
        ("W/\"a\"", Answer::Whole),
        ("\"b\"", Answer::Whole),
        (MODIFIED, part(0, 10)),
        ("Tue, 14 Nov 2023 21:00:01 GMT", Answer::Whole),
        ("nonsense", Answer::Whole),
    ] {
        let request = format!("Range: bytes=0-9\nIf-Range: {validator}");
        assert_eq!(answer(&stored, &request), expected, "{validator}");
    }
    let weak = "ETag: W/\"a\"";
    assert_eq!(answer(weak, "Range: bytes=0-9\nIf-Range: W/\"a\""), Answer::Whole);
}

#[test]
fn rfc_9110_13_2_2_not_modified_goes_before_a_range() {
    let request = "If-None-Match: \"a\"\nRange: bytes=0-9";
    assert_eq!(answer("ETag: \"a\"", request), Answer::NotModified);
}

#[test]
fn content_range_names_the_last_byte() {
    assert_eq!(Ranged { start: 0, end: 10, size: 100 }.content_range(), "bytes 0-9/100");
}
