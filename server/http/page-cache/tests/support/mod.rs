//! Requests and responses from text.
#![allow(dead_code, reason = "each test binary uses a part")]

use outboard_http1::Method;
use outboard_page_cache::{
    BypassRules, Control, CookieRules, ExchangeTimes, Field, Fields, Freshness, Policy, Reason,
    Request, RequestFacts, Response, Reuse, Storable, reuse, storable,
};

/// An arbitrary time.
pub(crate) const NOW_S: u64 = 1_700_000_000;

/// An exchange without delay.
pub(crate) const AT_ONCE: ExchangeTimes = ExchangeTimes { request_s: NOW_S, response_s: NOW_S };

/// `Name: value` lines as fields.
pub(crate) fn lines(text: &str) -> Vec<Field<'_>> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (name, value) = line.split_once(':').expect("a test's field has a colon");
            (name.as_bytes(), value.trim().as_bytes())
        })
        .collect()
}

/// The facts of a GET with these fields.
pub(crate) fn facts<'a>(fields: &'a [Field<'a>]) -> RequestFacts<'a> {
    let request = Request { method: Method::Get, path: b"/", fields: Fields(fields) };
    RequestFacts::read(request, &BypassRules::default(), &Policy::STANDARD)
        .expect("nothing in the request passes the cache by")
}

/// Whether `policy` stores a response.
pub(crate) fn stored_by(
    policy: &Policy,
    request: &str,
    status: u16,
    response: &str,
) -> Result<Storable, Reason> {
    let (request, response) = (lines(request), lines(response));
    let response = Response { status, fields: Fields(&response) };
    let rules = CookieRules::default();
    storable(policy, &rules, &facts(&request), Fields(&request), response, AT_ONCE)
}

/// Whether a response of status 200 is stored by RFC 9111 alone.
pub(crate) fn stored(request: &str, response: &str) -> Result<Storable, Reason> {
    stored_by(&Policy::STANDARD, request, 200, response)
}

/// The times of a response with status 200.
pub(crate) fn freshness(response: &str) -> Freshness {
    freshness_by(&Policy::STANDARD, 200, response, AT_ONCE)
}

/// The times of a response.
pub(crate) fn freshness_by(
    policy: &Policy,
    status: u16,
    response: &str,
    exchanged: ExchangeTimes,
) -> Freshness {
    let response = lines(response);
    let fields = Fields(&response);
    Freshness::of(policy, Response { status, fields }, &Control::read(fields), exchanged)
}

/// The use of a stored response `after_s` seconds after its reception.
pub(crate) fn reused(response: &str, request: &str, after_s: u64) -> Reuse {
    let request = lines(request);
    reuse(&freshness(response), &facts(&request).directives, NOW_S + after_s)
}
