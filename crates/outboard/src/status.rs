//! `outboard status`: one screen about a running server.

use crate::admin_client::{ask, default_socket};
use crate::cli::AdminArguments;
use crate::terminal::Terminal;
use serde_json::Value;
use std::process::ExitCode;

pub(crate) fn run(arguments: &AdminArguments, terminal: &Terminal) -> ExitCode {
    let socket = arguments.admin.clone().unwrap_or_else(default_socket);
    match ask(&socket, "GET", "/status") {
        Err(message) => terminal.fail(&message, 1),
        Ok(answer) if arguments.json => {
            println!("{:#}", answer.body);
            ExitCode::SUCCESS
        }
        Ok(answer) => {
            print_server(&answer.body, terminal);
            for pool in list(&answer.body["pools"]) {
                print_pool(pool, terminal);
            }
            ExitCode::SUCCESS
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn print_server(status: &Value, terminal: &Terminal) {
    let state = if status["draining"] == true { "STOPPING" } else { "RUNNING" };
    println!(
        "{} {}  pid {}  up {}  generation {}",
        terminal.bold(&format!("outboard {}", text(&status["version"]))),
        terminal.bold(state),
        status["pid"],
        duration(status["uptime_s"].as_u64().unwrap_or(0)),
        status["generation"]
    );
    let listeners: Vec<_> = list(&status["listeners"]).iter().map(text).collect();
    println!("listening    {}", listeners.join(", "));
    println!("connections  {} open, {} accepted", status["connections"], status["accepted"]);
    let answers = status["answers"].as_object().map_or_else(String::new, |answers| {
        let each = answers.iter().map(|(class, count)| format!("{class} {count}"));
        each.collect::<Vec<_>>().join(", ")
    });
    println!("requests     {} ({answers})", status["requests"]);
    for reason in list(&status["reasons"]) {
        println!(
            "  {:>8} × {} ({})",
            text(&reason["count"]),
            text(&reason["reason"]),
            reason["status"]
        );
    }
}

fn print_pool(pool: &Value, terminal: &Terminal) {
    println!();
    println!(
        "{} {}  {}  PHP {}  {} to {} workers, {} in flight, {} waiting",
        terminal.bold(&format!("app {}", text(&pool["app"]))),
        text(&pool["phase"]),
        mode(pool),
        text(&pool["php_version"]),
        pool["min"],
        pool["max"],
        pool["in_flight"],
        pool["queue_length"]
    );
    println!(
        "  requests {}, queued {}, rejected {}, crashes {}, deadlines {}, recycled {}",
        pool["requests"],
        pool["queued"],
        pool["rejected"],
        pool["crashes"],
        pool["deadlines"],
        pool["recycled"]
    );
    println!("  {}", terminal.dim(&text(&pool["sizing"])));
    println!(
        "  {:>8}  {:<8} {:>9} {:>9} {:>9} {:>9}  REQUEST",
        "PID", "STATE", "FOR", "IN FLIGHT", "SERVED", "MEMORY"
    );
    for worker in list(&pool["workers"]) {
        println!(
            "  {:>8}  {:<8} {:>6} ms {:>9} {:>9} {:>5} MiB  {}",
            text(&worker["pid"]),
            text(&worker["state"]),
            text(&worker["for_ms"]),
            format!("{}/{}", worker["in_flight"], pool["concurrency"]),
            text(&worker["served"]),
            worker["memory_bytes"].as_u64().unwrap_or(0) >> 20,
            worker["request"].as_str().unwrap_or("")
        );
    }
    print_waits(list(&pool["waits"]));
    print_routes(list(&pool["routes"]));
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

fn print_waits(waits: &[Value]) {
    if waits.is_empty() {
        return;
    }
    println!("  {:<8} {:>10} {:>10} {:>13}", "WAITS", "SUSPENDED", "BLOCKED", "BLOCKED FOR");
    for wait in waits {
        println!(
            "  {:<8} {:>10} {:>10} {:>10} ms",
            text(&wait["call"]),
            text(&wait["suspended"]),
            text(&wait["blocked"]),
            text(&wait["blocked_ms"])
        );
    }
}

/// Those with the highest peaks.
fn print_routes(routes: &[Value]) {
    if routes.is_empty() {
        return;
    }
    let kib = |value: &Value| value.as_i64().unwrap_or(0) / 1024;
    println!(
        "  {:>9} {:>13} {:>13} {:>13}  ROUTE",
        "REQUESTS", "MEAN PEAK", "HIGHEST PEAK", "GROWTH"
    );
    for route in routes.iter().take(MOST_ROUTES_SHOWN) {
        println!(
            "  {:>9} {:>9} KiB {:>9} KiB {:>9} KiB  {}",
            text(&route["requests"]),
            kib(&route["mean_peak_bytes"]),
            kib(&route["max_peak_bytes"]),
            kib(&route["growth_bytes"]),
            text(&route["route"])
        );
    }
    if routes.len() > MOST_ROUTES_SHOWN {
        println!("  … and {} more, with --json", routes.len() - MOST_ROUTES_SHOWN);
    }
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
