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
        "{} {}  PHP {}  {} to {} workers, {} waiting",
        terminal.bold(&format!("app {}", text(&pool["app"]))),
        text(&pool["phase"]),
        text(&pool["php_version"]),
        pool["min"],
        pool["max"],
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
        "  {:>8}  {:<8} {:>9} {:>9} {:>9}  REQUEST",
        "PID", "STATE", "FOR", "SERVED", "MEMORY"
    );
    for worker in list(&pool["workers"]) {
        println!(
            "  {:>8}  {:<8} {:>6} ms {:>9} {:>5} MiB  {}",
            text(&worker["pid"]),
            text(&worker["state"]),
            text(&worker["for_ms"]),
            text(&worker["served"]),
            worker["memory_bytes"].as_u64().unwrap_or(0) >> 20,
            worker["request"].as_str().unwrap_or("")
        );
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}
