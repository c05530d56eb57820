//! The header fields of a request to an upstream.
//!
//! Called by [`super`]. Invariants: hop-by-hop fields are dropped; fields about the client are set
//! by the gateway, and extend those of a trusted proxy only.

use crate::cache_requirements::{OwnField, is_about_representation};
use crate::request::Request;
use outboard_config as config;
use outboard_http_server as http_server;

use outboard_http1::RequestHead;
use outboard_upstream::{Error, RequestHeaders};

/// Fields about the client and its connection, which the gateway sets itself.
const ABOUT_THE_CLIENT: [&[u8]; 5] =
    [b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host", b"via"];

/// Never passed on: CGI programs would take it for `HTTP_PROXY` (httpoxy).
const PROXY: &[u8] = b"proxy";

/// The fields of the current request for an upstream; for a cache, with the conditions of the
/// cache.
///
/// # Errors
/// A field that is invalid.
pub(super) fn of(
    request: &Request<'_>,
    to: &config::Proxy,
    for_cache: Option<&[OwnField]>,
) -> Result<RequestHeaders, Error> {
    let forwarding = request.client.listener.forwarding.clone();
    let peer = request.client.peer.text.to_string();
    let is_trusted = request.client.peer.is_trusted(&forwarding);
    let is_early = request.is_early;
    let version = request.protocol().trim_start_matches("HTTP/");
    let (head, input) = request.head();
    let connection_fields: Vec<&[u8]> = all(head, input, b"connection").collect();
    let mut headers = RequestHeaders::default();
    for (name, value) in head.headers(input) {
        let is = |other: &&[u8]| name.eq_ignore_ascii_case(other);
        let is_replaced = ABOUT_THE_CLIENT.iter().any(is) || is(&&b"host"[..]) || is(&PROXY);
        let is_claim =
            http_server::is_ambiguous(name) || (!is_trusted && http_server::is_claim(name));
        let is_early_data = http_server::is_early_data(name) && (is_early || !is_trusted);
        let is_for_cache = for_cache.is_some() && is_about_representation(name);
        let is_nominated = connection_fields.iter().any(|names| names_field(names, name));
        if !is_replaced && !is_claim && !is_early_data && !is_for_cache && !is_nominated {
            headers.add(name, value)?;
        }
    }
    let host = request.forwarded.host.as_deref().or(head.host(input)).unwrap_or_default();
    if to.preserves_host && !host.is_empty() {
        headers.add(b"Host", host)?;
    }
    let before = |name: &'static [u8]| {
        let mut chain = if is_trusted { all(head, input, name).collect() } else { Vec::new() };
        chain.retain(|value| !value.is_empty());
        chain.join(&b", "[..])
    };
    let appended = |chain: Vec<u8>, last: &[u8]| match chain.is_empty() {
        true => last.to_vec(),
        false => [&chain, &b", "[..], last].concat(),
    };
    headers.add(b"X-Forwarded-For", &appended(before(b"x-forwarded-for"), peer.as_bytes()))?;
    headers.add(b"X-Forwarded-Proto", if request.forwarded.https { b"https" } else { b"http" })?;
    headers.add(b"X-Forwarded-Host", host)?;
    // RFC 9110 7.6.3: a gateway appends itself to those before it.
    let vias: Vec<&[u8]> = all(head, input, b"via").collect();
    let via = appended(vias.join(&b", "[..]), format!("{version} outboard").as_bytes());
    headers.add(b"Via", &via)?;
    if is_early {
        // The upstream may respond with 425 (RFC 8470 5.1).
        headers.add(b"Early-Data", b"1")?;
    }
    for (name, value) in for_cache.unwrap_or_default() {
        headers.add(name, value)?;
    }
    Ok(headers)
}

fn all<'a>(
    head: &'a RequestHead,
    input: &'a [u8],
    field_name: &'static [u8],
) -> impl Iterator<Item = &'a [u8]> {
    let fields = head.headers(input).filter(move |(name, _)| name.eq_ignore_ascii_case(field_name));
    fields.map(|(_, value)| value)
}

/// Whether a Connection field with this value names the field (RFC 9110 7.6.1).
fn names_field(names: &[u8], field: &[u8]) -> bool {
    let mut names = names.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    names.any(|name| name.eq_ignore_ascii_case(field))
}
