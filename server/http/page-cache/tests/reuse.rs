//! RFC 9111 4 and 5.2.1, RFC 5861 and RFC 8246: when a stored response may be used.

mod support;

use outboard_page_cache::{Forward, Policy, Reuse, is_stale_if_error_status, may_serve_on_error};
use support::{AT_ONCE, NOW_S, facts, freshness, freshness_by, lines, reused};

const STALE: Reuse = Reuse::Validate(Forward::Stale);
const WANTED: Reuse = Reuse::Validate(Forward::Request);

fn fresh(age_s: u32, remaining_s: i64) -> Reuse {
    Reuse::Fresh { age_s, remaining_s }
}

#[test]
fn section_4_fresh_is_used_and_stale_is_not() {
    assert_eq!(reused("Cache-Control: max-age=60", "", 0), fresh(0, 60));
    assert_eq!(reused("Cache-Control: max-age=60", "", 59), fresh(59, 1));
    assert_eq!(reused("Cache-Control: max-age=60", "", 60), STALE);
    assert_eq!(reused("Cache-Control: no-cache, max-age=60", "", 0), STALE);
    assert_eq!(reused("Cache-Control: no-cache=\"x\", max-age=60", "", 0), fresh(0, 60));
}

#[test]
fn section_5_2_1_directives_of_requests() {
    let kept = "Cache-Control: max-age=60";
    for (request, after_s, expected) in [
        ("Cache-Control: no-cache", 1, WANTED),
        ("Pragma: no-cache", 1, WANTED),
        ("Pragma: no-cache\nCache-Control: max-stale", 1, fresh(1, 59)),
        ("Cache-Control: max-age=10", 10, fresh(10, 50)),
        ("Cache-Control: max-age=10", 11, WANTED),
        ("Cache-Control: max-age=0", 0, fresh(0, 60)),
        ("Cache-Control: max-age=0", 1, WANTED),
        ("Cache-Control: max-age=x", 1, WANTED),
        ("Cache-Control: min-fresh=10", 50, fresh(50, 10)),
        ("Cache-Control: min-fresh=10", 51, WANTED),
        ("Cache-Control: min-fresh=10", 61, STALE),
        (
            "Cache-Control: max-stale",
            1000,
            Reuse::Stale { age_s: 1000, remaining_s: -940, refresh: false },
        ),
        (
            "Cache-Control: max-stale=5",
            65,
            Reuse::Stale { age_s: 65, remaining_s: -5, refresh: false },
        ),
        ("Cache-Control: max-stale=5", 66, STALE),
        ("Cache-Control: max-stale=5, max-age=10", 62, STALE),
        ("Cache-Control: max-stale=x", 61, STALE),
    ] {
        assert_eq!(reused(kept, request, after_s), expected, "{request} after {after_s}");
    }
}

#[test]
fn section_4_2_4_the_response_can_forbid_stale_use() {
    for response in [
        "Cache-Control: max-age=60, must-revalidate",
        "Cache-Control: max-age=60, proxy-revalidate",
        "Cache-Control: s-maxage=60",
        "Cache-Control: max-age=60, must-revalidate, stale-while-revalidate=100, stale-if-error=100",
        "Cache-Control: max-age=60, no-cache, stale-if-error=100",
    ] {
        let request = "Cache-Control: max-stale, stale-if-error=1000";
        assert_eq!(reused(response, request, 61), STALE, "{response}");
        let request = lines(request);
        let directives = facts(&request).directives;
        assert!(!may_serve_on_error(&freshness(response), &directives, NOW_S + 61), "{response}");
    }
}

#[test]
fn rfc_5861_section_3_stale_while_revalidate() {
    let response = "Cache-Control: max-age=60, stale-while-revalidate=30";
    let stale = |age_s| Reuse::Stale { age_s, remaining_s: 60 - i64::from(age_s), refresh: true };
    assert_eq!(reused(response, "", 59), fresh(59, 1));
    assert_eq!(reused(response, "", 60), stale(60));
    assert_eq!(reused(response, "", 89), stale(89));
    assert_eq!(reused(response, "", 90), STALE);
    assert_eq!(reused(response, "Cache-Control: no-cache", 61), WANTED);
    assert_eq!(reused(response, "Cache-Control: max-age=60", 61), STALE);
    // An explicit directive overrides what s-maxage implies.
    let shared = "Cache-Control: s-maxage=60, stale-while-revalidate=30";
    assert_eq!(reused(shared, "", 61), stale(61));
}

#[test]
fn rfc_5861_section_4_stale_if_error() {
    let none = lines("");
    let asks = lines("Cache-Control: stale-if-error=50");
    for (response, request, after_s, expected) in [
        ("Cache-Control: max-age=60, stale-if-error=30", &none, 89, true),
        ("Cache-Control: max-age=60, stale-if-error=30", &none, 90, false),
        ("Cache-Control: max-age=60", &none, 61, false),
        ("Cache-Control: max-age=60", &asks, 109, true),
        ("Cache-Control: max-age=60", &asks, 110, false),
        ("Cache-Control: s-maxage=60", &asks, 61, false),
        ("Cache-Control: s-maxage=60, stale-if-error=30", &none, 61, true),
        ("Cache-Control: max-age=60", &none, 10, true),
    ] {
        let directives = facts(request).directives;
        let stands = may_serve_on_error(&freshness(response), &directives, NOW_S + after_s);
        assert_eq!(stands, expected, "{response} after {after_s}");
    }
    for status in [500, 502, 503, 504] {
        assert!(is_stale_if_error_status(status));
    }
    for status in [200, 404, 501, 505] {
        assert!(!is_stale_if_error_status(status));
    }
}

#[test]
fn the_policy_grants_grace_unless_the_response_forbids_it() {
    let policy = Policy { stale_while_revalidate_s: 5, stale_if_error_s: 7, ..Policy::STANDARD };
    for (response, expected) in [
        ("Cache-Control: max-age=60", (5, 7)),
        ("Cache-Control: max-age=60, stale-while-revalidate=1", (1, 7)),
        ("Cache-Control: max-age=60, stale-if-error=0", (5, 0)),
        ("Cache-Control: s-maxage=60", (0, 0)),
        ("Cache-Control: max-age=60, must-revalidate", (0, 0)),
        ("Cache-Control: no-cache", (0, 0)),
        ("Cache-Control: no-cache, max-age=60", (0, 0)),
        ("Cache-Control: max-age=60, proxy-revalidate", (0, 0)),
        ("Cache-Control: s-maxage=0", (0, 0)),
        ("Cache-Control: max-age=0", (0, 0)),
        ("Cache-Control: max-age=60\nAge: 60", (0, 0)),
        ("Cache-Control: public\nExpires: 0", (0, 0)),
        ("Expires: 0", (0, 0)),
        ("Expires: -1", (0, 0)),
        ("Expires: Thu, 19 Nov 1981 08:52:00 GMT", (0, 0)),
        ("CDN-Cache-Control: max-age=0", (0, 0)),
        ("", (0, 0)),
        // RFC 5861: an explicit directive applies whatever the lifetime.
        ("Cache-Control: max-age=0, stale-while-revalidate=9", (9, 0)),
        ("Cache-Control: max-age=0, stale-if-error=9", (0, 9)),
    ] {
        let times = freshness_by(&policy, 200, response, AT_ONCE);
        let grace = (times.stale_while_revalidate_s, times.stale_if_error_s);
        assert_eq!(grace, expected, "{response}");
    }
}

#[test]
fn rfc_8246_a_reload_does_not_revalidate_immutable_ones() {
    let response = "Cache-Control: max-age=60, immutable";
    assert_eq!(reused(response, "Cache-Control: max-age=0", 5), fresh(5, 55));
    assert_eq!(reused(response, "Cache-Control: no-cache", 5), WANTED);
    assert_eq!(reused(response, "Cache-Control: max-age=0", 61), STALE);
}

#[test]
fn an_expired_entry_is_stale_and_retains_its_grace() {
    let mut times = freshness("Cache-Control: max-age=60, stale-while-revalidate=30, immutable");
    times.expire(NOW_S + 10);
    assert!(!times.is_fresh(NOW_S + 10));
    assert_eq!(times.remaining_s(NOW_S + 15), -5);
    assert_eq!(times.useful_until_s(), NOW_S + 40);
}
