//! `outboard status`: prints the status of a running server.

use crate::admin;
use crate::admin::AdminArguments;
use crate::terminal::Terminal;
use crate::upstreams;
use outboard_admin_api::status::{
    Get, Latency, MemoryAccount, Pool, Process, Route, Snapshot, SnapshotScript, Status, Tasks,
    Wait,
};
use std::fmt::{self, Write as _};
use std::process::ExitCode;

pub(crate) fn run(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    admin::run(arguments, terminal, &Get {}, |page, status| write(page, status, terminal))
}

/// The page about one server.
pub(crate) fn write(page: &mut String, status: &Status, terminal: &Terminal) -> fmt::Result {
    write_server(page, status, terminal)?;
    status.pools.iter().try_for_each(|pool| write_pool(page, pool, terminal))?;
    write_snapshots(page, &status.snapshots, terminal)?;
    status.tasks.iter().try_for_each(|tasks| write_tasks(page, tasks, terminal))?;
    write_processes(page, &status.processes, terminal)?;
    upstreams::write(page, &status.upstreams)
}

fn write_server(page: &mut String, status: &Status, terminal: &Terminal) -> fmt::Result {
    let state = state(status);
    // An older server does not say.
    let gathered = match status.active_threads {
        active if active > 0 && active < status.threads => format!(" ({active} active)"),
        _ => String::new(),
    };
    writeln!(
        page,
        "{} {}  pid {}  up {}  generation {}  threads {}{gathered}",
        terminal.bold(&format!("outboard {}", status.version)),
        terminal.bold(state),
        status.pid,
        duration(status.uptime_s),
        status.generation,
        status.threads
    )?;
    writeln!(page, "listening    {}", status.listeners.join(", "))?;
    writeln!(page, "connections  {} open, {} accepted", status.connections, status.accepted)?;
    let responses: Vec<String> =
        status.responses.iter().map(|(class, count)| format!("{class} {count}")).collect();
    let responses = responses.join(", ");
    let responses = if responses.is_empty() { responses } else { format!(" ({responses})") };
    writeln!(page, "requests     {}{responses}", status.requests)?;
    for reason in &status.reasons {
        writeln!(page, "  {:>8} × {} ({})", reason.count, reason.reason, reason.status)?;
    }
    write_latencies(page, &status.latencies)?;
    write_memory(page, &status.memory)?;
    for cache in &status.unshared_page_caches {
        let (app, why) = (&cache.app, &cache.why);
        writeln!(page, "page cache   of {app} not shared: {why}")?;
    }
    Ok(())
}

/// Quantiles of the durations of requests, by app and kind.
fn write_latencies(page: &mut String, latencies: &[Latency]) -> fmt::Result {
    if latencies.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "  {:<24} {:>10} {:>11} {:>11} {:>11}",
        "APP, KIND", "REQUESTS", "P50", "P90", "P99"
    )?;
    for row in latencies {
        let name = match row.kind.as_str() {
            "all" => row.app.clone(),
            kind => format!("  {kind}"),
        };
        let [p50, p90, p99] = [row.p50_us, row.p90_us, row.p99_us].map(milliseconds);
        writeln!(page, "  {name:<24} {:>10} {p50:>11} {p90:>11} {p99:>11}", row.count)?;
    }
    Ok(())
}

fn milliseconds(us: u64) -> String {
    format!("{}.{:02} ms", us / 1_000, us % 1_000 / 10)
}

/// The memory accounts; those of an app only if they were used.
fn write_memory(page: &mut String, accounts: &[MemoryAccount]) -> fmt::Result {
    for account in accounts {
        let of_app = account.app.as_deref();
        if of_app.is_some() && account.refused == 0 {
            continue;
        }
        let kind = account.kind.replace('_', " ");
        let name = match (kind.as_str(), of_app) {
            ("all", _) => "memory      ".to_owned(),
            (kind, None) => format!("  {kind:<15}"),
            (kind, Some(app)) => format!("  {kind} of {app}"),
        };
        writeln!(
            page,
            "{name} {} KiB held, {} KiB at most, of {} MiB; {} refused",
            account.held_bytes >> 10,
            account.peak_bytes >> 10,
            account.limit_bytes >> 20,
            account.refused
        )?;
    }
    Ok(())
}

fn write_pool(page: &mut String, pool: &Pool, terminal: &Terminal) -> fmt::Result {
    writeln!(page)?;
    writeln!(
        page,
        "{} {}  {}  PHP {}  zygote {}  {} to {} workers, {} in flight, {} waiting",
        terminal.bold(&format!("app {}", pool.app)),
        pool.phase,
        mode(pool),
        pool.php_version,
        pool.zygote_pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string()),
        pool.min,
        pool.max,
        pool.in_flight,
        pool.queue_length
    )?;
    writeln!(
        page,
        "  requests {}, queued {}, rejected {}, crashes {}, deadlines {}, recycled {}",
        pool.requests, pool.queued, pool.rejected, pool.crashes, pool.deadlines, pool.recycled
    )?;
    if pool.direct_connections > 0 || pool.direct_requests > 0 {
        writeln!(
            page,
            "  direct: {} connections with workers, {} requests answered, {} adopted",
            pool.direct_connections, pool.direct_requests, pool.adopted_requests
        )?;
    }
    if let Some(failure) = &pool.start_failure {
        writeln!(page, "  PHP does not start: {failure}")?;
    }
    write_snapshot(page, pool.snapshot.as_ref())?;
    write_isolation(page, pool)?;
    writeln!(page, "  {}", terminal.dim(&pool.sizing))?;
    writeln!(
        page,
        "  {:>8}  {:<8} {:>9} {:>9} {:>9} {:>9}  REQUEST",
        "PID", "STATE", "FOR", "IN FLIGHT", "SERVED", "MEMORY"
    )?;
    for worker in &pool.workers {
        writeln!(
            page,
            "  {:>8}  {:<8} {:>6} ms {:>9} {:>9} {:>5} MiB  {}",
            worker.pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string()),
            worker.state,
            worker.for_ms,
            format!("{}/{}", worker.in_flight, pool.concurrency),
            worker.served,
            worker.memory_bytes >> 20,
            worker.request.as_deref().unwrap_or_default()
        )?;
    }
    write_waits(page, &pool.waits)?;
    write_routes(page, &pool.routes)
}

fn write_snapshot(page: &mut String, snapshot: Option<&Snapshot>) -> fmt::Result {
    let Some(snapshot) = snapshot else { return Ok(()) };
    write!(page, "  snapshot of {} files", snapshot.files)?;
    if snapshot.compared_files > 0 {
        write!(page, " ({} compared every two seconds)", snapshot.compared_files)?;
    }
    write!(page, ", retired {} times", snapshot.retired)?;
    if let Some(cause) = &snapshot.last_cause {
        write!(page, ", last because of {cause}")?;
    }
    if snapshot.failures > 0 {
        write!(page, "; {} starts failed", snapshot.failures)?;
    }
    if snapshot.held > 0 {
        write!(page, "; {} requests wait for the next", snapshot.held)?;
    }
    writeln!(page)
}

fn write_tasks(page: &mut String, tasks: &Tasks, terminal: &Terminal) -> fmt::Result {
    writeln!(
        page,
        "\n{} {} waiting, {} running, {} KiB; {} taken, {} refused, {} done, {} tried again, \
         {} lost with a worker, {} given up",
        terminal.bold(&format!("tasks of {}", tasks.app)),
        tasks.waiting,
        tasks.running,
        tasks.bytes >> 10,
        tasks.accepted,
        tasks.refused,
        tasks.done,
        tasks.retried,
        tasks.lost,
        tasks.given_up
    )
}

fn write_processes(page: &mut String, all: &[Process], terminal: &Terminal) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n{}", terminal.bold("processes"))?;
    writeln!(
        page,
        "  {:<28} {:>8}  {:<8} {:>9} {:>6} {:>9}  LAST END",
        "APP, PROCESS", "PID", "STATE", "FOR", "STARTS", "MEMORY"
    )?;
    for one in all {
        writeln!(
            page,
            "  {:<28} {:>8}  {:<8} {:>9} {:>6} {:>5} MiB  {}",
            format!("{} {}/{}", one.app, one.name, one.instance),
            one.pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string()),
            one.state,
            duration(one.for_ms / 1000),
            one.starts,
            one.memory_bytes >> 20,
            one.last_end.as_deref().unwrap_or_default()
        )?;
    }
    Ok(())
}

/// "worker ×8", "worker, rewind by write protection", "classic".
fn mode(pool: &Pool) -> String {
    let mode = &pool.mode;
    match (pool.isolation.as_deref(), pool.concurrency) {
        (Some("rewind"), _) => match &pool.rewind {
            Some(rewind) => format!("{mode}, rewind by {}", rewind.writes_by),
            None => format!("{mode}, rewind is impossible here: fork"),
        },
        (_, concurrency) if concurrency > 1 => format!("{mode} ×{concurrency}"),
        _ => mode.clone(),
    }
}

/// Scripts in classic mode that are booted once, or why they are not.
fn write_snapshots(
    page: &mut String,
    scripts: &[SnapshotScript],
    terminal: &Terminal,
) -> fmt::Result {
    for script in scripts {
        let title = terminal.bold(&format!("snapshots of {} {}", script.app, script.script));
        match &script.refused_because {
            Some(why) => writeln!(page, "\n{title} none: {why}")?,
            None => writeln!(page, "\n{title} {}", script.snapshots)?,
        }
        for read in &script.reads {
            writeln!(page, "  reads {} in {}:{}", read.name, read.file, read.line)?;
        }
    }
    Ok(())
}

/// What isolation costs: a rewind or a fork for each request.
fn write_isolation(page: &mut String, pool: &Pool) -> fmt::Result {
    let fork = milliseconds(pool.mean_start_us);
    match (pool.isolation.as_deref(), &pool.rewind, &pool.rewind_refused) {
        (Some("rewind"), Some(rewind), _) => writeln!(
            page,
            "  rewinds {}, {} µs and {} pages each, of {} MiB; a worker is ready after {fork}",
            rewind.rewinds,
            rewind.mean_us,
            rewind.mean_pages,
            rewind.snapshot_bytes >> 20
        ),
        (Some("rewind"), None, Some(why)) => {
            writeln!(page, "  no rewind: {why}; a fork for each request is ready after {fork}")
        }
        _ => Ok(()),
    }
}

fn write_waits(page: &mut String, waits: &[Wait]) -> fmt::Result {
    if waits.is_empty() {
        return Ok(());
    }
    writeln!(page, "  {:<8} {:>10} {:>10} {:>13}", "WAITS", "SUSPENDED", "BLOCKED", "BLOCKED FOR")?;
    for wait in waits {
        writeln!(
            page,
            "  {:<8} {:>10} {:>10} {:>10} ms",
            wait.call, wait.suspended, wait.blocked, wait.blocked_ms
        )?;
    }
    Ok(())
}

/// Those with the highest peaks.
fn write_routes(page: &mut String, routes: &[Route]) -> fmt::Result {
    if routes.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "  {:>9} {:>13} {:>13} {:>13}  ROUTE",
        "REQUESTS", "MEAN PEAK", "HIGHEST PEAK", "GROWTH"
    )?;
    for route in routes.iter().take(MOST_ROUTES_SHOWN) {
        writeln!(
            page,
            "  {:>9} {:>9} KiB {:>9} KiB {:>9} KiB  {}",
            route.requests,
            route.mean_peak_bytes / 1024,
            route.max_peak_bytes / 1024,
            route.growth_bytes / 1024,
            route.route
        )?;
    }
    if routes.len() > MOST_ROUTES_SHOWN {
        writeln!(page, "  … and {} more, with --json", routes.len() - MOST_ROUTES_SHOWN)?;
    }
    Ok(())
}

/// Routes on the screen.
const MOST_ROUTES_SHOWN: usize = 10;

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// `RUNNING`, or the next state of the server.
pub(crate) fn state(status: &Status) -> &'static str {
    match (status.draining, status.ready) {
        (true, _) => "STOPPING",
        (_, false) => "STARTING",
        _ => "RUNNING",
    }
}
