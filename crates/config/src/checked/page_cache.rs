//! Answers that are kept.

use super::Context;
use super::Forwarding;
use super::listen;
use super::page_cache_shared::{PageCacheShared, shared};
use crate::diagnostic::Kind;
use crate::raw::{self, PageCacheEntry, PageCacheMode};
use crate::scalar::{Fault, PlainText};
use std::path::PathBuf;

/// How an app's answers are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCache {
    /// Memory of all that is kept.
    pub max_memory_bytes: u64,
    /// Where it is kept as well; `None`: in memory alone.
    pub disk: Option<PageCacheDisk>,
    /// Where it is shared among machines; `None`: each gateway has its own.
    pub shared: Option<PageCacheShared>,
    /// How many of a million hits are examined by themselves.
    pub audit_ppm: u32,
    /// How long an anonymous answer is kept that says nothing; 0 for not at all.
    pub default_ttl_s: u32,
    /// How much longer an answer is used while a new one is made.
    pub stale_while_revalidate_s: u32,
    /// How much longer an answer is used when a new one cannot be made.
    pub stale_if_error_s: u32,
    /// How long a request waits for another that asks for the same.
    pub lock_timeout_ms: u64,
    /// The longest body that is kept.
    pub max_body_bytes: u64,
    /// Whether texts are kept in content codings too.
    pub compresses: bool,
    /// Whether the directives of requests count.
    pub honors_client_cache_control: bool,
    /// Which applications are known to be served; `None`: those whose files are there.
    pub presets: Option<Vec<String>>,
    /// Further patterns of cookies that make a page personal.
    pub login_cookies: Vec<String>,
    /// Further patterns of cookies that change nothing.
    pub ignored_cookies: Vec<String>,
    /// Patterns of further request fields that change nothing, in lower case.
    pub ignored_headers: Vec<String>,
    /// Further patterns of paths that are never kept.
    pub bypass_paths: Vec<String>,
    /// Whose `PURGE` requests are obeyed.
    pub purge_from: Forwarding,
}

/// A folder for what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCacheDisk {
    /// Absolute; made if it is not there.
    pub path: PathBuf,
    /// What it may hold.
    pub max_bytes: u64,
}

/// The applications that presets know.
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
    let silent_ms = match (table.mode, &table.default_ttl) {
        (PageCacheMode::Off, _) => return None,
        (_, Some(silent)) => silent.0,
        (PageCacheMode::Auto, None) => 1_000,
        (PageCacheMode::On, None) => 60_000,
    };
    let disk = table
        .disk
        .as_ref()
        .map(|path| PageCacheDisk { path: context.absolute(path), max_bytes: table.max_disk.0 });
    let texts = |list: &[PlainText]| list.iter().map(|text| text.0.clone()).collect();
    let lower = |list: &[PlainText]| list.iter().map(|text| text.0.to_lowercase()).collect();
    Some(PageCache {
        max_memory_bytes: table.max_memory.0,
        disk,
        shared: shared(table.shared.as_ref(), app, place, context),
        audit_ppm: table.audit.0,
        default_ttl_s: seconds(silent_ms),
        stale_while_revalidate_s: seconds(
            table.stale_while_revalidate.as_ref().map_or(silent_ms, |period| period.0),
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
        purge_from: listen::forwarding(&table.purge_from, &[]),
    })
}

/// Whole seconds, as lifetimes are counted in HTTP; a part of one is one.
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
                let fault = Fault::new(format!("no preset is called `{other}`"))
                    .hint(format!("\"auto\" or \"none\" alone, or some of {PRESET_NAMES:?}"));
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
            let fault = Fault::new(format!("`{}` is no path", path.0))
                .hint("paths start with a slash: bypass_paths = [\"/account/*\"]");
            context.value(&[place, &[&step]].concat(), Kind::BadValue, fault);
        }
    }
}
