//! RFC 9213: targeted cache control.

mod support;

use outboard_page_cache::{Basis, Policy, Reason};
use support::{NOW_S, freshness, stored, stored_by};

#[test]
fn section_2_2_a_targeted_field_decides_alone() {
    for (response, lifetime_s) in [
        ("CDN-Cache-Control: max-age=60\nCache-Control: max-age=5", 60),
        ("CDN-Cache-Control: max-age=60\nCache-Control: no-store", 60),
        ("CDN-Cache-Control: max-age=60\nExpires: 0", 60),
        ("Outboard-Cache-Control: max-age=7\nCDN-Cache-Control: max-age=60", 7),
        ("CDN-Cache-Control: max-age=60;note=1", 60),
        ("CDN-Cache-Control: max-age=1, max-age=60", 60),
        ("CDN-Cache-Control: public\nCDN-Cache-Control: max-age=60", 60),
        ("CDN-Cache-Control: max-age=60, stale-while-revalidate=5, x=(a b)", 60),
        ("CDN-Cache-Control: max-age=60, no-store=?0", 60),
    ] {
        assert_eq!(stored("", response).unwrap().freshness.lifetime_s, lifetime_s, "{response}");
    }
    for (response, reason) in [
        ("CDN-Cache-Control: no-store\nCache-Control: max-age=60", Reason::NoStore),
        ("CDN-Cache-Control: private\nCache-Control: public, max-age=60", Reason::Private),
        ("CDN-Cache-Control: max-age=0\nCache-Control: max-age=60", Reason::NoLifetime),
    ] {
        assert_eq!(stored("", response).err(), Some(reason), "{response}");
    }
}

#[test]
fn section_2_2_an_empty_or_malformed_field_is_ignored() {
    for field in ["", "max-age=60,", "Max-Age=60", "max-age = 60", "&", "max-age=60 private"] {
        let response = format!("CDN-Cache-Control: {field}\nCache-Control: max-age=5");
        let times = freshness(&response);
        assert_eq!((times.lifetime_s, times.basis), (5, Basis::MaxAge), "{field}");
    }
    let falls_through = "Outboard-Cache-Control: ,\nCDN-Cache-Control: max-age=60";
    assert_eq!(freshness(falls_through).lifetime_s, 60);
}

#[test]
fn a_lifetime_of_the_wrong_type_is_zero() {
    for value in ["\"60\"", "60.5", "-1", "?1", "tok"] {
        let times = freshness(&format!("CDN-Cache-Control: max-age={value}"));
        assert!(!times.is_fresh(NOW_S), "{value}");
    }
}

#[test]
fn expires_beside_a_targeted_field_is_ignored() {
    let response = "CDN-Cache-Control: public\nExpires: Fri, 31 Dec 9999 23:59:59 GMT";
    let refused = stored_by(&Policy { heuristic_max_s: 0, ..Policy::STANDARD }, "", 200, response);
    assert_eq!(refused.err(), Some(Reason::NoLifetime));
}
