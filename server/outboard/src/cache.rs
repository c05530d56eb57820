//! `outboard cache`: shows and purges the page caches of a running server.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use clap::{Args, Subcommand};
use outboard_admin_api::cache::{
    AppStats, Audit, Audited, CacheStats, Details, Entry, Get, List, Purge, Purged, SharedStats,
    Stats,
};
use std::fmt::{self, Write as _};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheAction {
    /// Hit rate and memory of the cache.
    Stats(CacheSelector),
    /// Cached pages, at most 1000.
    List {
        #[command(flatten)]
        pick: CacheSelector,
        /// Only URLs or paths with this prefix.
        #[arg(long)]
        prefix: Option<String>,
    },
    /// All variants of a page, with their headers.
    Get {
        #[command(flatten)]
        pick: CacheSelector,
        /// The URL, or its path with the query.
        url: String,
    },
    /// Render pages of recent hits again, and report those that depend on the visitor.
    ///
    /// Exit code 0: none was found, 1: some were found, or the request failed.
    Audit {
        #[command(flatten)]
        pick: CacheSelector,
        /// Maximum number of pages.
        #[arg(long, value_name = "COUNT", default_value_t = 16)]
        sample: usize,
    },
    /// Purge pages; when this returns, none of them is served any more.
    Purge(PurgeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CacheSelector {
    /// The app [default: every app with a cache].
    #[arg(long, value_name = "NAME")]
    pub(crate) app: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArguments {
    /// A URL, or a path with its query string for every host.
    #[arg(required_unless_present_any = ["prefix", "tag", "all"])]
    pub(crate) url: Option<String>,
    /// All URLs or paths with this prefix.
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// All pages with this tag. May be given more than once.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// All pages.
    #[arg(long)]
    pub(crate) all: bool,
    /// Serve the old pages while new ones are rendered.
    #[arg(long)]
    pub(crate) soft: bool,
    #[command(flatten)]
    pub(crate) pick: CacheSelector,
}

pub(crate) fn run(action: &CacheAction, terminal: &Terminal) -> ExitCode {
    match action {
        CacheAction::Stats(pick) => {
            admin::run(&pick.admin, terminal, &Stats { app: pick.app.clone() }, write_stats)
        }
        CacheAction::List { pick, prefix } => {
            let list = List { app: pick.app.clone(), prefix: prefix.clone() };
            admin::run(&pick.admin, terminal, &list, |page, reply| {
                reply.entries.iter().try_for_each(|entry| write_entry(page, entry))
            })
        }
        CacheAction::Get { pick, url } => {
            let get = Get { app: pick.app.clone(), url: Some(url.clone()) };
            admin::run(&pick.admin, terminal, &get, write_details)
        }
        CacheAction::Audit { pick, sample } => {
            let audit = Audit { app: pick.app.clone(), sample: Some(*sample) };
            admin::run_checked(&pick.admin, terminal, &audit, |page, audited| {
                write_findings(page, audited)?;
                // A page that is unsafe to cache is a failure, so that a script can act on it.
                Ok(ExitCode::from(u8::from(!audited.unsafe_pages.is_empty())))
            })
        }
        CacheAction::Purge(purge) => {
            admin::run(&purge.pick.admin, terminal, &request(purge), write_purged)
        }
    }
}

fn request(purge: &PurgeArguments) -> Purge {
    Purge {
        app: purge.pick.app.clone(),
        url: purge.url.clone(),
        prefix: purge.prefix.clone(),
        tag: purge.tag.clone(),
        all: purge.all,
        soft: purge.soft,
    }
}

fn write_findings(page: &mut String, audited: &Audited) -> fmt::Result {
    for finding in &audited.unsafe_pages {
        writeln!(page, "unsafe  {}", finding.url)?;
        writeln!(page, "        {} makes a difference at \"{}\"", finding.by, finding.excerpt)?;
    }
    let count = audited.unsafe_pages.len();
    writeln!(page, "{} pages examined, {count} unsafe", audited.examined)
}

fn write_stats(page: &mut String, stats: &CacheStats) -> fmt::Result {
    stats.apps.iter().try_for_each(|(app, stats)| write_app(page, app, stats))
}

fn write_app(page: &mut String, app: &str, stats: &AppStats) -> fmt::Result {
    let from_cache = stats.hit + stats.stale;
    let requests = from_cache + stats.miss + stats.bypass;
    let percent = from_cache * 100 / requests.max(1);
    writeln!(page, "{app}  {percent} % of {requests} responses from the cache")?;
    writeln!(
        page,
        "  responses {} hit, {} stale, {} miss, {} bypass; {} waiting",
        stats.hit, stats.stale, stats.miss, stats.bypass, stats.waiting
    )?;
    writeln!(
        page,
        "  entries   {} in {} of {} KiB; {} stored, {} evicted, {} purged",
        stats.entries,
        stats.used_bytes / 1024,
        stats.max_bytes / 1024,
        stats.stored,
        stats.evicted,
        stats.purged
    )?;
    if stats.disk_entries > 0 {
        writeln!(page, "  on disk   {} in {} KiB", stats.disk_entries, stats.disk_bytes / 1024)?;
    }
    if let Some(shared) = &stats.shared {
        write_shared(page, shared)?;
    }
    writeln!(page, "  presets   {}", stats.presets.join(", "))
}

fn write_shared(page: &mut String, shared: &SharedStats) -> fmt::Result {
    match &shared.away {
        Some(why) => writeln!(page, "  shared    not now: {why}")?,
        None => writeln!(page, "  shared    as {} by {}", shared.name, shared.server)?,
    }
    writeln!(
        page,
        "            {} hits, {} stores; purges: {} sent, {} received, {} not confirmed yet",
        shared.hits,
        shared.stores,
        shared.purges_sent,
        shared.purges_received,
        shared.purges_unconfirmed
    )
}

fn write_entry(page: &mut String, entry: &Entry) -> fmt::Result {
    writeln!(
        page,
        "{:>3}  {:>8} B  age {:>6} s  fresh for {:>6} s  {}",
        entry.status, entry.body_bytes, entry.age_s, entry.fresh_for_s, entry.url
    )
}

fn write_details(page: &mut String, details: &Details) -> fmt::Result {
    if details.entries.is_empty() {
        writeln!(page, "not cached")?;
    }
    for details in &details.entries {
        write_entry(page, &details.entry)?;
        writeln!(page, "lifetime from {}, for {}", details.lifetime_from, details.audience)?;
        for (name, value) in &details.headers {
            writeln!(page, "  {name}: {value}")?;
        }
    }
    Ok(())
}

fn write_purged(page: &mut String, purged: &Purged) -> fmt::Result {
    let others = match purged.confirmed {
        Some(false) => "; the shared server is away: other gateways follow once it is back",
        _ => "",
    };
    writeln!(page, "{} purged{others}", purged.purged)
}

#[cfg(test)]
mod tests;
