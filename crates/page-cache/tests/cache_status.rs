//! RFC 9211 and X-Cache: what an answer says about itself.

use outboard_page_cache::{Missed, Outcome, Reason};
use std::collections::HashSet;

fn lines(outcome: Outcome) -> String {
    let mut out = Vec::new();
    outcome.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn each_outcome_has_its_words() {
    for (outcome, status, word) in [
        (Outcome::Hit { remaining_s: 59 }, "hit; ttl=59", "HIT"),
        (Outcome::Stale { remaining_s: -5, after_error: false }, "hit; ttl=-5", "STALE"),
        (
            Outcome::Stale { remaining_s: -5, after_error: true },
            "hit; ttl=-5; detail=stale-if-error",
            "STALE",
        ),
        (Outcome::Collapsed { remaining_s: 60 }, "fwd=miss; collapsed; ttl=60", "HIT"),
        (
            Outcome::Revalidated { remaining_s: 9 },
            "fwd=stale; fwd-status=304; stored; ttl=9",
            "HIT",
        ),
        (Outcome::Miss { forward: Missed::Uri, stored: Ok(()) }, "fwd=uri-miss; stored", "MISS"),
        (
            Outcome::Miss { forward: Missed::Vary, stored: Err(Reason::SetCookie) },
            "fwd=vary-miss; detail=set_cookie",
            "BYPASS",
        ),
        (Outcome::Bypass(Reason::LoginCookie), "fwd=bypass; detail=login_cookie", "BYPASS"),
        (Outcome::Bypass(Reason::Method), "fwd=method; detail=method", "BYPASS"),
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
