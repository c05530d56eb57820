//! The HTTP method `PURGE`.
//!
//! Called by [`crate::dispatch`]. Invariant: when the response to a purge is sent, the purge is in
//! effect, also for pages that are being rendered.

use crate::refusal::Outcome;
use crate::request::{Request, send};
use outboard_admin_api::cache::Purged;
use outboard_http_server::{HeaderBlock, ResponseWriter};
use outboard_log::Reason;
use outboard_page_cache::{Field, Fields, PageCache, Selector, tags_of};

/// Whether the current request is a `PURGE`.
pub(crate) fn is_purge(request: &Request<'_>) -> bool {
    request.method() == outboard_http1::Method::Other && request.method_name() == b"PURGE"
}

/// Whether the peer is a proxy that is not trusted: then its address is not that of the client.
fn comes_through_untrusted_proxy(request: &Request<'_>) -> bool {
    const PROXY_FIELDS: [&[u8]; 4] = [b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via"];
    let mut names = request.headers().map(|(name, _)| name);
    request.forwarded.client.is_none()
        && names.any(|name| PROXY_FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

/// Responds to `PURGE`, which purges its URL, or the tags in its Cache-Tag, Surrogate-Key or xkey.
/// `Soft-Purge: 1` makes it soft.
pub(crate) async fn purge(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    cache: &PageCache,
) -> Outcome {
    let is_proxied = comes_through_untrusted_proxy(request);
    if is_proxied || !cache.settings().purge_from.trusts(request.client_ip()) {
        return Err(Reason::PurgeRefused.into());
    }
    let fields: Vec<Field<'_>> = request.headers().collect();
    let fields = Fields(&fields);
    let is_soft = ["soft-purge", "fastly-soft-purge"].iter().any(|name| fields.contains(name));
    let tags = tags_of(fields);
    let host = request.authority().unwrap_or_default();
    let selectors = if tags.is_empty() {
        // A client on the same machine often purges by plain HTTP pages that visitors get by TLS.
        let path = request.origin_form();
        let url = |scheme: &[u8]| Selector::url(&[scheme, host, &path].concat());
        vec![url(b"http://"), url(b"https://")]
    } else {
        vec![Selector::Tags(tags.into())]
    };
    let purged: usize = selectors.into_iter().map(|one| cache.purge(one, is_soft)).sum();
    let confirmed = match cache.has_shared_tier() {
        true => Some(cache.settle().await),
        false => None,
    };
    let headers = HeaderBlock::constant(&[("Content-Type", "application/json")]);
    let (_, _, body) = crate::admin_reply::render(Ok(Purged { purged, confirmed }));
    Ok(send(response, 200, &headers, &body).await)
}
