//! The page cache of an app.

use super::context::Context;
use super::forwarding::Forwarding;
use super::page_cache_shared::{PageCacheShared, shared};
use crate::diagnostic::Kind;
use crate::raw::{self, PageCacheEntry, PageCacheMode};
use crate::scalar::{Fault, PlainText};
use std::path::PathBuf;

/// The page cache of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCache {
    /// Memory for cached pages, index included.
    pub max_memory_bytes: u64,
    /// The disk tier; `None`: memory only.
    pub disk: Option<PageCacheDisk>,
    /// The shared tier; `None`: none.
    pub shared: Option<PageCacheShared>,
    /// Hits per million that are rendered again for verification.
    pub audit_ppm: u32,
    /// Lifetime of an anonymous response that sets none; 0: not cached.
    pub default_ttl_s: u32,
    /// Time for which an expired page is still served while it is rendered again.
    pub stale_while_revalidate_s: u32,
    /// Time for which an expired page is still served if rendering it fails.
    pub stale_if_error_s: u32,
    /// Maximum time a request waits for another one that renders the same page.
    pub lock_timeout_ms: u64,
    /// Maximum size of a cached body.
    pub max_body_bytes: u64,
    /// Whether text is also stored in content codings.
    pub compresses: bool,
    /// Whether cache directives of requests are honored.
    pub honors_client_cache_control: bool,
    /// Presets by name; `None`: detected by the files of the root.
    pub presets: Option<Vec<String>>,
    /// Additional patterns of cookies that mark a response as personal.
    pub login_cookies: Vec<String>,
    /// Additional patterns of cookies that do not affect a page.
    pub ignored_cookies: Vec<String>,
    /// Additional patterns of request headers that do not affect a page, in lower case.
    pub ignored_headers: Vec<String>,
    /// Additional patterns of paths that are never cached.
    pub bypass_paths: Vec<String>,
    /// Peers that may send `PURGE` requests.
    pub purge_from: Forwarding,
}

/// The disk tier of the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCacheDisk {
    /// Its directory; absolute, created if missing.
    pub path: PathBuf,
    /// Maximum disk space.
    pub max_bytes: u64,
}

/// The applications that have presets.
pub const PRESET_NAMES: [&str; 8] =
    ["wordpress", "woocommerce", "drupal", "mediawiki", "joomla", "laravel", "symfony", "phpbb"];

/// `None` when it is off.
pub(super) fn page_cache(
    raw: &PageCacheEntry,
    app: &str,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<PageCache> {
    let table = match raw {
        PageCacheEntry::Mode(mode) => &raw::PageCache { mode: *mode, ..raw::PageCache::default() },
        PageCacheEntry::Table(table) => &**table,
    };
    let presets = presets(&table.presets, &[place, &["presets"]].concat(), context);
    check_paths(&table.bypass_paths, &[place, &["bypass_paths"]].concat(), context);
    let default_ttl_ms = match (table.mode, &table.default_ttl) {
        (PageCacheMode::Off, _) => return None,
        (_, Some(ttl)) => ttl.0,
        (PageCacheMode::Auto, None) => 1_000,
        (PageCacheMode::On, None) => 60_000,
    };
    let disk = table
        .disk
        .as_ref()
        .map(|path| PageCacheDisk { path: context.absolute(path), max_bytes: table.max_disk.0 });
    let texts = |list: &[PlainText]| list.iter().map(|text| text.0.clone()).collect();
    let lower = |list: &[PlainText]| list.iter().map(|text| text.0.to_lowercase()).collect();
    let purge_from = context.peers(&[place, &["purge_from"]].concat(), &table.purge_from);
    Some(PageCache {
        max_memory_bytes: table.max_memory.0,
        disk,
        shared: shared(table.shared.as_ref(), app, place, context),
        audit_ppm: table.audit.0,
        default_ttl_s: seconds(default_ttl_ms),
        stale_while_revalidate_s: seconds(
            table.stale_while_revalidate.as_ref().map_or(default_ttl_ms, |period| period.0),
        ),
        stale_if_error_s: seconds(table.stale_if_error.0),
        lock_timeout_ms: table.lock_timeout.0,
        max_body_bytes: table.max_body.0,
        compresses: table.compress,
        honors_client_cache_control: table.honor_client_cache_control,
        presets,
        login_cookies: texts(&table.login_cookies),
        ignored_cookies: texts(&table.ignored_cookies),
        ignored_headers: lower(&table.ignored_headers),
        bypass_paths: texts(&table.bypass_paths),
        purge_from: Forwarding::new(&purge_from, &[]),
    })
}

/// Whole seconds, rounded up: HTTP lifetimes are in seconds.
fn seconds(ms: u64) -> u32 {
    u32::try_from(ms.div_ceil(1000)).unwrap_or(u32::MAX).min(1 << 31)
}

fn presets(names: &[PlainText], place: &[&str], context: &mut Context<'_>) -> Option<Vec<String>> {
    let mut chosen = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match name.0.as_str() {
            "auto" if names.len() == 1 => return None,
            "none" if names.len() == 1 => {}
            known if PRESET_NAMES.contains(&known) => chosen.push(known.to_owned()),
            other => {
                let step = index.to_string();
                let fault = Fault::new(format!("there is no preset `{other}`"))
                    .hint(format!("write \"auto\" or \"none\" alone, or some of {PRESET_NAMES:?}"));
                context.value(&[place, &[&step]].concat(), Kind::BadValue, fault);
            }
        }
    }
    Some(chosen)
}

fn check_paths(paths: &[PlainText], place: &[&str], context: &mut Context<'_>) {
    for (index, path) in paths.iter().enumerate() {
        if !path.0.starts_with(['/', '*']) {
            let step = index.to_string();
            let fault = Fault::new(format!("`{}` is not a path", path.0))
                .hint("write a path with a leading slash: bypass_paths = [\"/account/*\"]");
            context.value(&[place, &[&step]].concat(), Kind::BadValue, fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::checked::testing::{APP, assert_error, site};
    use crate::*;

    #[test]
    fn a_page_cache_is_a_mode_or_a_table() {
        assert_eq!(site("").page_cache, None);
        assert_eq!(site("page_cache = \"off\"\n").page_cache, None);
        let auto = site("page_cache = \"auto\"\n").page_cache.unwrap();
        assert_eq!((auto.default_ttl_s, auto.stale_while_revalidate_s), (1, 1));
        assert_eq!((auto.max_memory_bytes, &auto.presets), (64 << 20, &None));
        let text = "[app.site.page_cache]\nmode = \"on\"\ndefault_ttl = \"1500ms\"\n\
                    presets = [\"drupal\"]\npurge_from = [\"10.0.0.0/8\"]\n";
        let on = site(text).page_cache.unwrap();
        assert_eq!((on.default_ttl_s, on.presets), (2, Some(vec!["drupal".to_owned()])));
        assert!(on.purge_from.trusts(Some([10, 1, 2, 3].into())));
        assert!(!on.purge_from.trusts(Some([127, 0, 0, 1].into())));
        let none = site("page_cache = { presets = [\"none\"] }\n").page_cache.unwrap();
        assert_eq!((none.default_ttl_s, none.presets), (1, Some(Vec::new())));
    }

    #[test]
    fn unknown_presets_and_invalid_paths_are_errors() {
        for (key, words) in [
            ("presets = [\"typo\"]", "no preset `typo`"),
            ("presets = [\"drupal\", \"auto\"]", "alone"),
            ("bypass_paths = [\"account\"]", "leading slash"),
        ] {
            let text = format!("{APP}[app.site.page_cache]\n{key}\n");
            assert_error(&text, Kind::BadValue, 4, words);
        }
        assert_error(&format!("{APP}page_cache = \"full\"\n"), Kind::OutOfRange, 3, "auto");
    }
}
