//! Purges that PHP requests: `Outboard\cache_purge()`.
//!
//! Called by [`crate::app_operations`]. Invariant: the completion is sent when neither the cache of the worker's generation nor that of a later one
//! has the purged pages.

use outboard_page_cache::{PageCache, Selector};
use outboard_php_pool::pool::operations::Requester;
use outboard_reactor::spawn;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Completion, Part};
use outboard_ring::purge::{PurgeCall, Selected};
use std::rc::Rc;

/// Purges pages of a cache, if there is one.
pub(crate) fn begin(
    cache: Option<&Rc<PageCache>>,
    requester: Requester,
    id: Tag,
    call: &PurgeCall<'_>,
) {
    let purge = |cache: &Rc<PageCache>| cache.purge_with_successors(&selectors(call), call.is_soft);
    let purged = cache.map_or(0, purge);
    let completion = Completion { id, part: Part::Number(purged as u64) };
    // A worker that has ended does not wait for it.
    let complete = move || requester.send(&completion).unwrap_or_default();
    match cache.filter(|cache| cache.has_shared_tier()).cloned() {
        None => complete(),
        Some(cache) => spawn(async move {
            cache.settle().await;
            complete();
        }),
    }
}

fn selectors(call: &PurgeCall<'_>) -> Vec<Selector> {
    let mut selectors = Vec::with_capacity(call.selected.len() + 1);
    let mut tags = Vec::new();
    for selected in &call.selected {
        match *selected {
            Selected::Url(url) => selectors.extend(both_schemes(url, Selector::url)),
            Selected::Prefix(url) => selectors.extend(both_schemes(url, Selector::prefix)),
            Selected::Tag(tag) => tags.push(tag),
            Selected::All => selectors.push(Selector::All),
        }
    }
    if !tags.is_empty() {
        selectors.push(Selector::tags(tags));
    }
    selectors
}

/// An application may not know whether its visitors use TLS, which a proxy can decide.
fn both_schemes(url: &[u8], select: impl Fn(&[u8]) -> Selector) -> Vec<Selector> {
    let after = |scheme: &[u8]| url.strip_prefix(scheme);
    match after(b"https://").or(after(b"http://")) {
        Some(rest) => {
            [&b"http://"[..], b"https://"].map(|scheme| select(&[scheme, rest].concat())).into()
        }
        None => vec![select(url)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_purged_by_both_schemes_and_tags_together() {
        let selected = vec![
            Selected::Tag(b"a"),
            Selected::Url(b"https://a.test/1"),
            Selected::Prefix(b"/2"),
            Selected::Tag(b"b"),
        ];
        let expected = [
            Selector::url(b"http://a.test/1"),
            Selector::url(b"https://a.test/1"),
            Selector::prefix(b"/2"),
            Selector::tags([&b"a"[..], b"b"]),
        ];
        assert_eq!(selectors(&PurgeCall { is_soft: false, selected }), expected);
    }
}
