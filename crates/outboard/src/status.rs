//! `outboard status`: one screen about a running server.

use crate::admin_client::{ask, default_socket};
use crate::cli::AdminArguments;
use crate::terminal::Terminal;
use serde_json::Value;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::process::ExitCode;

pub(crate) fn run(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    let socket = arguments.admin.clone().unwrap_or_else(default_socket);
    match ask(&socket, "GET", "/status") {
        Err(message) => terminal.fail(&message, 1),
        Ok(answer) if arguments.json => show(&format!("{:#}\n", answer.body)),
        Ok(answer) => {
            let mut page = String::new();
            // Writing to a String does not fail.
            let _ = put(&mut page, &answer.body, terminal);
            show(&page)
        }
    }
}

/// What a server says of itself.
pub(crate) fn put(page: &mut String, status: &Value, terminal: &Terminal) -> fmt::Result {
    put_server(page, status, terminal)?;
    list(&status["pools"]).iter().try_for_each(|pool| put_pool(page, pool, terminal))?;
    list(&status["tasks"]).iter().try_for_each(|tasks| put_tasks(page, tasks, terminal))
}

/// Prints it; a reader that has seen enough (`| head`) is no mistake.
pub(crate) fn show(page: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(page.as_bytes());
    ExitCode::SUCCESS
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn put_server(page: &mut String, status: &Value, terminal: &Terminal) -> fmt::Result {
    let state = match (&status["draining"], &status["ready"]) {
        (Value::Bool(true), _) => "STOPPING",
        (_, Value::Bool(false)) => "STARTING",
        _ => "RUNNING",
    };
    writeln!(
        page,
        "{} {}  pid {}  up {}  generation {}",
        terminal.bold(&format!("outboard {}", text(&status["version"]))),
        terminal.bold(state),
        status["pid"],
        duration(status["uptime_s"].as_u64().unwrap_or(0)),
        status["generation"]
    )?;
    let listeners: Vec<_> = list(&status["listeners"]).iter().map(text).collect();
    writeln!(page, "listening    {}", listeners.join(", "))?;
    writeln!(page, "connections  {} open, {} accepted", status["connections"], status["accepted"])?;
    let answers = status["answers"].as_object().map_or_else(String::new, |answers| {
        let each = answers.iter().map(|(class, count)| format!("{class} {count}"));
        each.collect::<Vec<_>>().join(", ")
    });
    let answers = if answers.is_empty() { answers } else { format!(" ({answers})") };
    writeln!(page, "requests     {}{answers}", status["requests"])?;
    for reason in list(&status["reasons"]) {
        writeln!(
            page,
            "  {:>8} × {} ({})",
            text(&reason["count"]),
            text(&reason["reason"]),
            reason["status"]
        )?;
    }
    put_memory(page, list(&status["memory"]))?;
    for cache in list(&status["unshared_page_caches"]) {
        let (app, why) = (text(&cache["app"]), text(&cache["why"]));
        writeln!(page, "page cache   of {app} not shared: {why}")?;
    }
    Ok(())
}

/// What is held in memory; an app's accounts when there is something to say of them.
fn put_memory(page: &mut String, accounts: &[Value]) -> fmt::Result {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    for account in accounts {
        let of_app = account["app"].as_str();
        if of_app.is_some() && number(&account["refused"]) == 0 {
            continue;
        }
        let kind = text(&account["kind"]).replace('_', " ");
        let name = match (kind.as_str(), of_app) {
            ("all", _) => "memory      ".to_owned(),
            (kind, None) => format!("  {kind:<15}"),
            (kind, Some(app)) => format!("  {kind} of {app}"),
        };
        writeln!(
            page,
            "{name} {} KiB held, {} KiB at most, of {} MiB; {} refused",
            number(&account["held_bytes"]) >> 10,
            number(&account["peak_bytes"]) >> 10,
            number(&account["limit_bytes"]) >> 20,
            number(&account["refused"])
        )?;
    }
    Ok(())
}

fn put_pool(page: &mut String, pool: &Value, terminal: &Terminal) -> fmt::Result {
    writeln!(page)?;
    writeln!(
        page,
        "{} {}  {}  PHP {}  zygote {}  {} to {} workers, {} in flight, {} waiting",
        terminal.bold(&format!("app {}", text(&pool["app"]))),
        text(&pool["phase"]),
        mode(pool),
        text(&pool["php_version"]),
        pool["zygote_pid"],
        pool["min"],
        pool["max"],
        pool["in_flight"],
        pool["queue_length"]
    )?;
    writeln!(
        page,
        "  requests {}, queued {}, rejected {}, crashes {}, deadlines {}, recycled {}",
        pool["requests"],
        pool["queued"],
        pool["rejected"],
        pool["crashes"],
        pool["deadlines"],
        pool["recycled"]
    )?;
    writeln!(page, "  {}", terminal.dim(&text(&pool["sizing"])))?;
    writeln!(
        page,
        "  {:>8}  {:<8} {:>9} {:>9} {:>9} {:>9}  REQUEST",
        "PID", "STATE", "FOR", "IN FLIGHT", "SERVED", "MEMORY"
    )?;
    for worker in list(&pool["workers"]) {
        writeln!(
            page,
            "  {:>8}  {:<8} {:>6} ms {:>9} {:>9} {:>5} MiB  {}",
            text(&worker["pid"]),
            text(&worker["state"]),
            text(&worker["for_ms"]),
            format!("{}/{}", worker["in_flight"], pool["concurrency"]),
            text(&worker["served"]),
            worker["memory_bytes"].as_u64().unwrap_or(0) >> 20,
            worker["request"].as_str().unwrap_or("")
        )?;
    }
    put_waits(page, list(&pool["waits"]))?;
    put_routes(page, list(&pool["routes"]))
}

fn put_tasks(page: &mut String, tasks: &Value, terminal: &Terminal) -> fmt::Result {
    writeln!(
        page,
        "\n{} {} waiting, {} running, {} KiB; {} taken, {} refused, {} done, {} tried again, \
         {} lost with a worker, {} given up",
        terminal.bold(&format!("tasks of {}", text(&tasks["app"]))),
        tasks["waiting"],
        tasks["running"],
        tasks["bytes"].as_u64().unwrap_or(0) >> 10,
        tasks["accepted"],
        tasks["refused"],
        tasks["done"],
        tasks["retried"],
        tasks["lost"],
        tasks["given_up"]
    )
}

/// "worker ×8", "worker, fork", "classic".
fn mode(pool: &Value) -> String {
    let mode = text(&pool["mode"]);
    match (pool["isolation"].as_str(), pool["concurrency"].as_u64()) {
        (Some("fork"), _) => format!("{mode}, fork"),
        (_, Some(concurrency)) if concurrency > 1 => format!("{mode} ×{concurrency}"),
        _ => mode,
    }
}

fn put_waits(page: &mut String, waits: &[Value]) -> fmt::Result {
    if waits.is_empty() {
        return Ok(());
    }
    writeln!(page, "  {:<8} {:>10} {:>10} {:>13}", "WAITS", "SUSPENDED", "BLOCKED", "BLOCKED FOR")?;
    for wait in waits {
        writeln!(
            page,
            "  {:<8} {:>10} {:>10} {:>10} ms",
            text(&wait["call"]),
            text(&wait["suspended"]),
            text(&wait["blocked"]),
            text(&wait["blocked_ms"])
        )?;
    }
    Ok(())
}

/// Those with the highest peaks.
fn put_routes(page: &mut String, routes: &[Value]) -> fmt::Result {
    if routes.is_empty() {
        return Ok(());
    }
    let kib = |value: &Value| value.as_i64().unwrap_or(0) / 1024;
    writeln!(
        page,
        "  {:>9} {:>13} {:>13} {:>13}  ROUTE",
        "REQUESTS", "MEAN PEAK", "HIGHEST PEAK", "GROWTH"
    )?;
    for route in routes.iter().take(MOST_ROUTES_SHOWN) {
        writeln!(
            page,
            "  {:>9} {:>9} KiB {:>9} KiB {:>9} KiB  {}",
            text(&route["requests"]),
            kib(&route["mean_peak_bytes"]),
            kib(&route["max_peak_bytes"]),
            kib(&route["growth_bytes"]),
            text(&route["route"])
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
