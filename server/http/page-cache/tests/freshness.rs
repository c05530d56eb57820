//! RFC 9111 4.2: freshness, age and heuristics, as tables.

mod support;

use outboard_http_semantics::format_http_date;
use outboard_page_cache::{Basis, ExchangeTimes, Policy, SECONDS_MAX};
use support::{AT_ONCE, NOW_S, freshness, freshness_by};

fn date(offset_s: i64) -> String {
    format_http_date(NOW_S.checked_add_signed(offset_s).unwrap())
}

#[test]
fn section_4_2_1_the_first_source_of_a_lifetime_decides() {
    let expires = date(300);
    for (response, lifetime_s, basis) in [
        ("Cache-Control: s-maxage=10, max-age=20".into(), 10, Basis::SharedMaxAge),
        ("Cache-Control: max-age=20, s-maxage=10".into(), 10, Basis::SharedMaxAge),
        (format!("Cache-Control: max-age=20\nExpires: {expires}"), 20, Basis::MaxAge),
        (format!("Date: {}\nExpires: {expires}", date(0)), 300, Basis::Expires),
        (format!("Date: {}\nExpires: {expires}", date(-100)), 400, Basis::Expires),
        (format!("Expires: {expires}"), 300, Basis::Expires),
        (format!("Cache-Control: public\nExpires: {expires}"), 300, Basis::Expires),
        (String::new(), 0, Basis::Nothing),
    ] {
        let times = freshness(&response);
        assert_eq!((times.lifetime_s, times.basis), (lifetime_s, basis), "{response}");
    }
}

#[test]
fn section_4_2_1_unreadable_or_conflicting_means_stale() {
    let (soon, later) = (date(100), date(200));
    for response in [
        "Cache-Control: max-age".to_owned(),
        "Cache-Control: max-age=".into(),
        "Cache-Control: max-age=abc".into(),
        "Cache-Control: max-age=-1".into(),
        "Cache-Control: max-age=1.5".into(),
        "Cache-Control: max-age = 60".into(),
        "Cache-Control: max-age=\"60".into(),
        "Cache-Control: max-age=60, max-age=70".into(),
        "Cache-Control: max-age=60\nCache-Control: max-age=70".into(),
        "Cache-Control: s-maxage=x, max-age=60".into(),
        format!("Expires: {soon}\nExpires: {later}"),
    ] {
        assert!(!freshness(&response).is_fresh(NOW_S), "{response}");
    }
}

#[test]
fn section_5_2_directive_names_and_arguments() {
    for response in [
        "Cache-Control: max-age=60",
        "Cache-Control: max-age=\"60\"",
        "cache-control: MAX-AGE=60",
        "Cache-Control: x=\"max-age=5, y\", max-age=60",
        "Cache-Control: ,, max-age=60,",
        "Cache-Control: max-age=60, max-age=60",
        "Cache-Control: unknown\nCache-Control: max-age=60",
        "Cache-Control: max-age=0060",
    ] {
        assert_eq!(freshness(response).lifetime_s, 60, "{response}");
    }
}

#[test]
fn section_1_2_2_delta_seconds_saturate() {
    for number in ["2147483648", "4294967296", "99999999999999999999999999"] {
        let times = freshness(&format!("Cache-Control: max-age={number}"));
        assert_eq!(times.lifetime_s, SECONDS_MAX);
        assert!(times.is_fresh(NOW_S + 1_000_000_000));
    }
}

#[test]
fn section_5_3_an_invalid_expires_is_in_the_past() {
    for value in ["0", "-1", "never", "Thu, 99 Nov 1981 08:52:00 GMT", ""] {
        let times = freshness(&format!("Expires: {value}"));
        assert_eq!((times.lifetime_s, times.basis), (0, Basis::Expires), "{value}");
    }
}

#[test]
fn section_5_3_all_three_forms_of_a_date_are_read() {
    for value in [
        "Sun, 06 Nov 2033 08:49:37 GMT",
        "Sunday, 06-Nov-33 08:49:37 GMT",
        "Sun Nov  6 08:49:37 2033",
    ] {
        let lifetime_s = freshness(&format!("Expires: {value}")).lifetime_s;
        assert_eq!(NOW_S + u64::from(lifetime_s), 2_014_879_777, "{value}");
    }
}

#[test]
fn section_4_2_2_heuristics_are_a_tenth_within_limits() {
    let policy = Policy { heuristic_max_s: 500, ..Policy::STANDARD };
    for (status, modified_s, extra, expected_s, basis) in [
        (200, -1000, "", 100, Basis::Heuristic),
        (404, -1000, "", 100, Basis::Heuristic),
        (200, -1_000_000, "", 500, Basis::Heuristic),
        (200, 1000, "", 0, Basis::Nothing),
        (200, -1000, "Cache-Control: max-age=7", 7, Basis::MaxAge),
        (200, -1000, "Cache-Control: no-cache", 0, Basis::Nothing),
        (200, -1000, "Expires: 0", 0, Basis::Expires),
        (302, -1000, "", 0, Basis::Nothing),
        (500, -1000, "", 0, Basis::Nothing),
        (302, -1000, "Cache-Control: public", 100, Basis::Heuristic),
    ] {
        let response = format!("Date: {}\nLast-Modified: {}\n{extra}", date(0), date(modified_s));
        let times = freshness_by(&policy, status, &response, AT_ONCE);
        assert_eq!((times.lifetime_s, times.basis), (expected_s, basis), "{status} {response}");
    }
}

#[test]
fn pages_without_a_lifetime_get_the_default_ttl() {
    let policy = Policy { default_ttl_s: 3, heuristic_max_s: 0, ..Policy::STANDARD };
    for (status, response, expected_s) in [
        (200, "", 3),
        (404, "", 3),
        (200, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", 3),
        (302, "", 0),
        (500, "", 0),
        (200, "Cache-Control: max-age=0", 0),
        (200, "Cache-Control: no-cache", 0),
        (200, "Expires: 0", 0),
        (200, "Pragma: no-cache", 0),
        (200, "Surrogate-Control: no-store", 0),
        (200, "X-LiteSpeed-Cache-Control: no-cache", 0),
    ] {
        let times = freshness_by(&policy, status, response, AT_ONCE);
        assert_eq!(times.lifetime_s, expected_s, "{status} {response}");
    }
}

#[test]
fn section_4_2_3_the_age_includes_transit_and_residence() {
    let exchanged = ExchangeTimes { request_s: NOW_S, response_s: NOW_S + 4 };
    for (response, initial_age_s) in [
        (String::new(), 4),
        (format!("Date: {}", date(4)), 4),
        (format!("Date: {}", date(-16)), 20),
        (format!("Date: {}", date(60)), 4),
        ("Age: 30".into(), 34),
        (format!("Age: 3\nDate: {}", date(-16)), 20),
        (format!("Age: 30\nDate: {}", date(-16)), 34),
    ] {
        let times = freshness_by(&Policy::STANDARD, 200, &response, exchanged);
        assert_eq!(times.initial_age_s, initial_age_s, "{response}");
        assert_eq!(times.age_s(NOW_S + 4 + 50), initial_age_s + 50, "{response}");
    }
}

#[test]
fn section_5_1_only_a_first_valid_age_counts() {
    for (value, expected_s) in
        [("7", 7), ("7, 9", 7), ("x", 0), ("-7", 0), ("7.5", 0), ("99999999999", SECONDS_MAX)]
    {
        assert_eq!(freshness(&format!("Age: {value}")).initial_age_s, expected_s, "{value}");
    }
    assert_eq!(freshness("Age: 7\nAge: 9").initial_age_s, 7);
}

#[test]
fn section_4_2_fresh_while_lifetime_exceeds_age() {
    let times = freshness("Cache-Control: max-age=60\nAge: 20");
    assert!(times.is_fresh(NOW_S + 39));
    assert!(!times.is_fresh(NOW_S + 40));
    assert_eq!(times.remaining_s(NOW_S + 50), -10);
    // A clock that is set back does not reduce the age.
    assert_eq!(times.age_s(NOW_S - 100), 20);
}
