//! `outboard opcache`: status and reset of OPcache in a running server.
//!
//! A reset is a reload: a new PHP is started and replaces the current one, so that no request is lost,
//! and none meets a cache that is being emptied.

use crate::admin;
use crate::admin::AdminArguments;
use crate::reload;
use crate::terminal::Terminal;
use clap::Subcommand;
use outboard_admin_api::opcache::{Cache, Get, Report};
use std::fmt::{self, Write as _};
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub(crate) enum OpcacheAction {
    /// Memory, scripts and restarts of each app's OPcache.
    Status(AdminArguments),
    /// Restart PHP with an empty OPcache; no request is lost.
    Reset(AdminArguments),
}

const MIB: u64 = 1 << 20;

pub(crate) fn run(action: &OpcacheAction, terminal: &Terminal) -> ExitCode {
    match action {
        OpcacheAction::Status(arguments) => {
            admin::run(arguments, terminal, &Get {}, |page, caches| {
                caches.apps.iter().try_for_each(|(app, cache)| match cache {
                    Cache::Failed(failure) => writeln!(page, "{app}  {}", failure.error),
                    Cache::Report(report) => write_report(page, app, report),
                })
            })
        }
        OpcacheAction::Reset(arguments) => reload::run(arguments, terminal),
    }
}

fn write_report(page: &mut String, app: &str, report: &Report) -> fmt::Result {
    let (memory, strings) = (&report.memory_usage, &report.interned_strings_usage);
    let counts = &report.opcache_statistics;
    let total = memory.used_memory + memory.free_memory + memory.wasted_memory;
    writeln!(
        page,
        "{app}  {} of {} MiB, {} wasted{}",
        memory.used_memory / MIB,
        total / MIB,
        memory.wasted_memory / MIB,
        if report.cache_full { "; full: raise opcache.memory_consumption" } else { "" }
    )?;
    writeln!(
        page,
        "  scripts   {} cached, {} keys of {}; {} hits, {} misses",
        counts.num_cached_scripts,
        counts.num_cached_keys,
        counts.max_cached_keys,
        counts.hits,
        counts.misses
    )?;
    writeln!(
        page,
        "  strings   {} of {} MiB",
        strings.used_memory / MIB,
        strings.buffer_size / MIB
    )?;
    writeln!(
        page,
        "  restarts  {} out of memory, {} hash full, {} manual",
        counts.oom_restarts, counts.hash_restarts, counts.manual_restarts
    )
}
