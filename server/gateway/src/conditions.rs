//! [`holding`]: which conditions of an app hold for a request.
//!
//! Called by [`crate::dispatch`] once per request, when fields that a client must not send are gone. Invariant: a field, cookie or
//! parameter that is sent several times has each of its values, and those of the query are compared as PHP decodes them.

use crate::app::App;
use crate::request::Request;
use outboard_config::{Condition, ConditionSet, Countries, Texts, query_pairs};

/// See the module.
pub(crate) fn holding(
    request: &Request<'_>,
    app: &App,
    countries: Option<&Countries>,
) -> ConditionSet {
    let mut held = ConditionSet::default();
    for (index, condition) in app.config.conditions.iter().enumerate() {
        if holds(condition, request, app, countries, held) {
            held.insert(index);
        }
    }
    held
}

/// `held` are the conditions before it.
fn holds(
    condition: &Condition,
    request: &Request<'_>,
    app: &App,
    countries: Option<&Countries>,
    held: ConditionSet,
) -> bool {
    let one_of = |is_empty: bool, any: &dyn Fn() -> bool| is_empty || any();
    let host = || String::from_utf8_lossy(request.host());
    let path = || app.below_prefix(request.path());
    let country = || request.client_ip().zip(countries).and_then(|(ip, all)| all.of(ip));
    condition.all.holds(held)
        && one_of(condition.any.is_empty(), &|| condition.any.iter().any(|one| one.holds(held)))
        && one_of(condition.methods.is_empty(), &|| {
            condition.methods.iter().any(|name| name.as_bytes() == request.method_name())
        })
        && one_of(condition.hosts.is_empty(), &|| {
            condition.hosts.iter().any(|pattern| pattern.matches(&host()))
        })
        && one_of(condition.paths.is_empty(), &|| {
            condition.paths.iter().any(|pattern| pattern.matches(path()))
        })
        && condition.clients.as_ref().is_none_or(|peers| peers.contains(request.client_ip()))
        && one_of(condition.countries.is_empty(), &|| {
            country().is_some_and(|code| condition.countries.iter().any(|own| own == code))
        })
        && condition.headers.iter().all(|wanted| has_header(request, wanted))
        && condition.cookies.iter().all(|wanted| has_cookie(request, wanted))
        && condition.query.iter().all(|wanted| has_parameter(request, wanted))
}

fn has_header(request: &Request<'_>, (name, texts): &(String, Texts)) -> bool {
    let mut fields = request.headers();
    fields
        .any(|(theirs, value)| theirs.eq_ignore_ascii_case(name.as_bytes()) && texts.matches(value))
}

/// RFC 6265 4.2.1.
fn has_cookie(request: &Request<'_>, (name, texts): &(String, Texts)) -> bool {
    let cookies = request.header(b"cookie").unwrap_or_default().split(|byte| *byte == b';');
    let mut pairs = cookies.map(|pair| split(pair.trim_ascii()));
    pairs.any(|(theirs, value)| {
        let value =
            value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value);
        theirs == name.as_bytes() && texts.matches(value)
    })
}

fn has_parameter(request: &Request<'_>, (name, texts): &(String, Texts)) -> bool {
    let mut pairs = query_pairs(request.query().unwrap_or_default());
    pairs.any(|(theirs, value)| theirs == name.as_bytes() && texts.matches(&value))
}

fn split(pair: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'=', pair) {
        Some(at) => (&pair[..at], &pair[at + 1..]),
        None => (pair, b""),
    }
}
