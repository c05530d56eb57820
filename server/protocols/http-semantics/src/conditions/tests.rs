use super::*;

const NOW: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const NOW_S: u64 = 784_111_777;
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const CURRENT: Validators<'_> = Validators {
    etag: Some(EntityTag { is_weak: false, opaque: b"\"abc\"" }),
    last_modified: Some(LastModified { unix_s: NOW_S, is_strong: true }),
};

/// Builds conditions from `name: value` lines.
fn request<'a>(lines: &'a [(&'a str, &'a str)]) -> Conditions<'a> {
    let mut conditions = Conditions::default();
    for (name, value) in lines {
        let value = Some(value.as_bytes());
        match *name {
            "match" => conditions.if_match = value,
            "none-match" => conditions.if_none_match = value,
            "since" => conditions.if_modified_since = value,
            "unmodified" => conditions.if_unmodified_since = value,
            "range" => conditions.range = value,
            "if-range" => conditions.if_range = value,
            other => panic!("unknown field {other}"),
        }
    }
    conditions
}

#[test]
fn conditions_are_evaluated_in_the_order_of_section_13_2_2() {
    use Outcome::{NotModified, PreconditionFailed, Whole};
    const RANGED: Outcome<'_> = Outcome::Ranged(b"bytes=0-1");
    for (lines, expected) in [
        (&[][..], Whole),
        // Step 1: If-Match compares strongly.
        (&[("match", "*")], Whole),
        (&[("match", "\"abc\"")], Whole),
        (&[("match", "\"x\", \"abc\"")], Whole),
        (&[("match", "\"x\",,\t\"abc\"")], Whole),
        (&[("match", "W/\"abc\"")], PreconditionFailed),
        (&[("match", "\"x\"")], PreconditionFailed),
        (&[("match", "")], PreconditionFailed),
        (&[("match", "abc")], PreconditionFailed),
        // A comma is an ordinary byte of a tag.
        (&[("match", "\"x,\"abc\"")], PreconditionFailed),
        // Step 2: If-Unmodified-Since, only without If-Match.
        (&[("unmodified", NOW)], Whole),
        (&[("unmodified", AFTER)], Whole),
        (&[("unmodified", BEFORE)], PreconditionFailed),
        (&[("unmodified", "yesterday")], Whole),
        (&[("match", "*"), ("unmodified", BEFORE)], Whole),
        (&[("match", "\"x\""), ("unmodified", AFTER)], PreconditionFailed),
        // Step 3: If-None-Match compares weakly.
        (&[("none-match", "*")], NotModified),
        (&[("none-match", "\"abc\"")], NotModified),
        (&[("none-match", "W/\"abc\"")], NotModified),
        (&[("none-match", "\"x\", W/\"abc\"")], NotModified),
        (&[("none-match", "\"x\"")], Whole),
        (&[("none-match", "\"ABC\"")], Whole),
        (&[("none-match", "\"abc")], Whole),
        // Step 4: If-Modified-Since, only without If-None-Match.
        (&[("since", NOW)], NotModified),
        (&[("since", AFTER)], NotModified),
        (&[("since", BEFORE)], Whole),
        (&[("since", "0")], Whole),
        (&[("since", "Sunday, 06-Nov-94 08:49:37 GMT")], NotModified),
        (&[("since", "Sun Nov  6 08:49:37 1994")], NotModified),
        (&[("none-match", "\"x\""), ("since", NOW)], Whole),
        (&[("none-match", "\"abc\""), ("since", BEFORE)], NotModified),
        // The first two steps come before the next two.
        (&[("match", "\"x\""), ("none-match", "\"abc\"")], PreconditionFailed),
        (&[("match", "\"abc\""), ("none-match", "\"abc\"")], NotModified),
        // Step 5: If-Range.
        (&[("range", "bytes=0-1")], RANGED),
        (&[("range", "bytes=0-1"), ("if-range", "\"abc\"")], RANGED),
        (&[("range", "bytes=0-1"), ("if-range", "W/\"abc\"")], Whole),
        (&[("range", "bytes=0-1"), ("if-range", "\"x\"")], Whole),
        (&[("range", "bytes=0-1"), ("if-range", NOW)], RANGED),
        (&[("range", "bytes=0-1"), ("if-range", BEFORE)], Whole),
        (&[("range", "bytes=0-1"), ("if-range", AFTER)], Whole),
        (&[("range", "bytes=0-1"), ("if-range", "")], Whole),
        (&[("if-range", "\"abc\"")], Whole),
        (&[("range", "bytes=0-1"), ("none-match", "\"abc\"")], NotModified),
        (&[("range", "bytes=0-1"), ("match", "\"x\"")], PreconditionFailed),
    ] {
        assert_eq!(request(lines).evaluate(CURRENT), expected, "{lines:?}");
    }
}

#[test]
fn range_is_ignored_on_head() {
    let conditions = Conditions { is_head: true, ..request(&[("range", "bytes=0-1")]) };
    assert_eq!(conditions.evaluate(CURRENT), Outcome::Whole);
}

#[test]
fn without_a_modification_time_dates_are_ignored() {
    let undated = Validators { last_modified: None, ..CURRENT };
    for lines in [
        &[("since", AFTER)][..],
        &[("unmodified", BEFORE)],
        &[("range", "bytes=0-1"), ("if-range", NOW)],
    ] {
        assert_eq!(request(lines).evaluate(undated), Outcome::Whole, "{lines:?}");
    }
}

#[test]
fn bytes_that_are_not_text_are_no_date() {
    let conditions = Conditions { if_modified_since: Some(b"\xff\xfe"), ..Conditions::default() };
    assert_eq!(conditions.evaluate(CURRENT), Outcome::Whole);
}

#[test]
fn a_weak_validator_never_selects_a_range() {
    let weak = Validators {
        etag: Some(EntityTag { is_weak: true, opaque: b"\"abc\"" }),
        last_modified: Some(LastModified { unix_s: NOW_S, is_strong: false }),
    };
    for validator in ["W/\"abc\"", "\"abc\"", NOW] {
        let lines = [("range", "bytes=0-1"), ("if-range", validator)];
        assert_eq!(request(&lines).evaluate(weak), Outcome::Whole, "{validator}");
    }
    assert_eq!(request(&[("since", NOW)]).evaluate(weak), Outcome::NotModified);
    assert_eq!(
        request(&[("none-match", "*")]).evaluate(Validators::default()),
        Outcome::NotModified
    );
}
