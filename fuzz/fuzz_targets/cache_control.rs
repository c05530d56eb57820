//! Any bytes as the fields that steer the cache: no panic, and another `no-store` or `private`
//! never allows more.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_page_cache::{
    Conditions, Control, CookieRules, ExchangeTimes, Fields, Freshness, Policy, RequestDirectives,
    Response, Validators, Variant,
};

const NOW_S: u64 = 1_700_000_000;

const NAMES: [&[u8]; 10] = [
    b"cache-control",
    b"cdn-cache-control",
    b"vary",
    b"expires",
    b"age",
    b"etag",
    b"range",
    b"if-none-match",
    b"cookie",
    b"accept-encoding",
];

fuzz_target!(|input: (&[u8], &[u8])| {
    let (first, second) = input;
    let lines: Vec<_> = NAMES.iter().flat_map(|name| [(*name, first), (*name, second)]).collect();
    let fields = Fields(&lines);

    RequestDirectives::read(fields);
    let exchanged = ExchangeTimes { request_s: NOW_S, response_s: NOW_S };
    let response = Response { status: 200, fields };
    Freshness::of(&Policy::STANDARD, response, &Control::read(fields), exchanged);
    let conditions = Conditions::read(fields);
    let _ = conditions.evaluate(false, Validators::of(fields), None, NOW_S, 1000);
    let rules = CookieRules::default();
    if let Ok(variant) = Variant::of(fields, fields, true, &rules) {
        assert!(variant.matches(fields, true, &rules));
    }

    for word in [&b"no-store"[..], b"private"] {
        let lines = [(&b"cache-control"[..], first), (b"cache-control", word)];
        let said = Control::read(Fields(&lines)).directives;
        assert!(said.no_store || said.private.is_response());
    }
});
