//! Properties of every input: no panic, further directives never extend a lifetime, time only ages, and
//! a variant matches its own request.

mod support;

use outboard_page_cache::{
    Conditions, Control, CookieRules, ExchangeTimes, Fields, Freshness, Policy, RequestDirectives,
    Response, Reuse, Validators, Variant, reuse,
};
use proptest::prelude::*;
use support::NOW_S;

/// Bytes that often resemble cache directives.
fn control_like() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&str] = &[
        "max-age",
        "s-maxage",
        "no-store",
        "no-cache",
        "private",
        "public",
        "must-revalidate",
        "immutable",
        "stale-if-error",
        "=",
        "=",
        ",",
        ", ",
        "\"",
        "\\",
        ";",
        "60",
        "0",
        "-1",
        "99999999999999999999",
        "set-cookie",
        " ",
        "?0",
        "(",
        ")",
        ":",
        "@",
        "a",
    ];
    let piece = prop_oneof![
        12 => prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..3),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

fn freshness(fields: &[(&[u8], &[u8])]) -> Freshness {
    let fields = Fields(fields);
    let exchanged = ExchangeTimes { request_s: NOW_S, response_s: NOW_S };
    let response = Response { status: 200, fields };
    Freshness::of(&Policy::STANDARD, response, &Control::read(fields), exchanged)
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(value in control_like(), range in control_like()) {
        let name = [&b"cache-control"[..], b"cdn-cache-control", b"expires", b"age", b"vary",
            b"etag", b"range", b"if-none-match", b"if-range", b"last-modified", b"cookie"];
        let fields: Vec<_> = name.iter().map(|name| (*name, &value[..])).collect();
        let fields = Fields(&fields);
        RequestDirectives::read(fields);
        freshness(fields.0);
        let with_range = [(&b"range"[..], &range[..]), (b"if-none-match", &value)];
        let conditions = Conditions::read(Fields(&with_range));
        conditions.evaluate(false, Validators::of(fields), None, NOW_S, 100);
        let _ = Variant::of(fields, fields, true, &CookieRules::default());
    }

    #[test]
    fn saying_no_store_or_private_once_more_never_allows_more(value in control_like()) {
        for word in [&b"no-store"[..], b"private"] {
            let fields = [(&b"cache-control"[..], &value[..]), (b"cache-control", word)];
            let said = Control::read(Fields(&fields)).directives;
            prop_assert!(said.no_store || said.private.is_response());
        }
    }

    #[test]
    fn a_repeated_lifetime_is_the_shorter_one(first in 0_u32..1000, second in 0_u32..1000) {
        let (one, two) = (format!("max-age={first}"), format!("max-age={second}"));
        let fields = [(&b"cache-control"[..], one.as_bytes()), (b"cache-control", two.as_bytes())];
        prop_assert!(freshness(&fields).lifetime_s <= first.min(second));
    }

    #[test]
    fn what_is_stale_never_becomes_fresh_again(
        lifetime_s in 0_u32..1000, age_s in 0_u32..1000, later in prop::collection::vec(0_u64..100, 1..20)
    ) {
        let (control, age) = (format!("max-age={lifetime_s}"), age_s.to_string());
        let fields =
            [(&b"cache-control"[..], control.as_bytes()), (b"age", age.as_bytes())];
        let times = freshness(&fields);
        let mut now_s = NOW_S;
        let mut was_fresh = true;
        for step_s in later {
            now_s += step_s;
            let is_fresh = matches!(
                reuse(&times, &RequestDirectives::default(), now_s),
                Reuse::Fresh { .. }
            );
            prop_assert!(was_fresh || !is_fresh);
            prop_assert_eq!(is_fresh, i64::from(lifetime_s) > i64::from(times.age_s(now_s)));
            was_fresh = is_fresh;
        }
    }

    #[test]
    fn requests_can_only_ask_for_less_unless_they_accept_stale(
        value in control_like(), after_s in 0_u64..200
    ) {
        let fields = [(&b"cache-control"[..], &value[..])];
        let asked = RequestDirectives::read(Fields(&fields));
        let times = freshness(&[(b"cache-control", b"max-age=60, stale-while-revalidate=30")]);
        let without = reuse(&times, &RequestDirectives::default(), NOW_S + after_s);
        let with = reuse(&times, &asked, NOW_S + after_s);
        if matches!(without, Reuse::Validate(_)) && asked.max_stale_s.is_none() {
            prop_assert!(matches!(with, Reuse::Validate(_)));
        }
    }

    #[test]
    fn a_request_matches_the_variant_that_it_made(
        names in prop::collection::vec(prop::sample::select(vec!["accept", "cookie", "x-a",
            "accept-encoding", "accept-language"]), 0..4),
        values in prop::collection::vec(control_like(), 0..6), implicit: bool
    ) {
        let request: Vec<_> =
            names.iter().zip(&values).map(|(name, value)| (name.as_bytes(), &value[..])).collect();
        let vary = names.join(",");
        let response = [(&b"vary"[..], vary.as_bytes())];
        let rules = CookieRules::default();
        let variant = Variant::of(Fields(&request), Fields(&response), implicit, &rules).unwrap();
        prop_assert!(variant.matches(Fields(&request), implicit, &rules));
    }
}
