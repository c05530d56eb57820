//! Cache-Status (RFC 9211) and X-Cache.

use outboard_page_cache::{CacheStatus, MissReason, Reason};
use std::collections::HashSet;

fn lines(outcome: CacheStatus) -> String {
    let mut out = Vec::new();
    outcome.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn each_status_has_its_tokens() {
    for (outcome, status, word) in [
        (CacheStatus::Hit { remaining_s: 59 }, "hit; ttl=59", "HIT"),
        (CacheStatus::Stale { remaining_s: -5, after_error: false }, "hit; ttl=-5", "STALE"),
        (
            CacheStatus::Stale { remaining_s: -5, after_error: true },
            "hit; ttl=-5; detail=stale-if-error",
            "STALE",
        ),
        (CacheStatus::Collapsed { remaining_s: 60 }, "fwd=miss; collapsed; ttl=60", "HIT"),
        (
            CacheStatus::Revalidated { remaining_s: 9 },
            "fwd=stale; fwd-status=304; stored; ttl=9",
            "HIT",
        ),
        (
            CacheStatus::Miss { forward: MissReason::Uri, stored: Ok(()) },
            "fwd=uri-miss; stored",
            "MISS",
        ),
        (
            CacheStatus::Miss { forward: MissReason::Vary, stored: Err(Reason::SetCookie) },
            "fwd=vary-miss; detail=set_cookie",
            "BYPASS",
        ),
        (CacheStatus::Bypass(Reason::LoginCookie), "fwd=bypass; detail=login_cookie", "BYPASS"),
        (CacheStatus::Bypass(Reason::Method), "fwd=method; detail=method", "BYPASS"),
    ] {
        let expected = format!("Cache-Status: Outboard; {status}\r\nX-Cache: {word}\r\n");
        assert_eq!(lines(outcome), expected);
    }
}

#[test]
fn reasons_have_distinct_codes_that_are_tokens() {
    let codes: HashSet<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
    assert_eq!(codes.len(), Reason::ALL.len());
    for code in codes {
        assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
    }
}
