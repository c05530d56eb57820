//! `outboard opcache`: the opcode caches of a running server.
//!
//! A reset is a reload: PHP is started anew beside the present one and swapped in, so that no request
//! is lost, and none finds a cache that is being emptied.

use crate::admin_client::{ask, default_socket};
use crate::cli::{AdminArguments, OpcacheAction};
use crate::reload;
use crate::terminal::Terminal;
use serde_json::Value;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::process::ExitCode;

const MIB: u64 = 1 << 20;

pub(crate) fn run(action: &OpcacheAction, terminal: &Terminal) -> ExitCode {
    match action {
        OpcacheAction::Status(admin) => status(admin, terminal),
        OpcacheAction::Reset(admin) => reload::run(admin, terminal),
    }
}

fn status(admin: &AdminArguments, terminal: &Terminal) -> ExitCode {
    let socket = admin.admin.clone().unwrap_or_else(default_socket);
    let answer = match ask(&socket, "GET", "/opcache") {
        Err(message) => return terminal.fail(&message, 1),
        Ok(answer) => answer,
    };
    let page = match admin.json {
        true => format!("{:#}\n", answer.body),
        false => told(&answer.body).unwrap_or_default(),
    };
    // A reader that has seen enough (`| head`) is no mistake.
    let _ = std::io::stdout().write_all(page.as_bytes());
    ExitCode::from(u8::from(answer.status >= 300))
}

fn told(body: &Value) -> Result<String, fmt::Error> {
    let mut page = String::new();
    for (app, state) in body["apps"].as_object().into_iter().flatten() {
        match state["error"].as_str() {
            Some(error) => writeln!(page, "{app}  {error}")?,
            None => page.push_str(&told_of(app, state)?),
        }
    }
    Ok(page)
}

fn told_of(app: &str, state: &Value) -> Result<String, fmt::Error> {
    let mut page = String::new();
    let (memory, counts) = (&state["memory_usage"], &state["opcache_statistics"]);
    let strings = &state["interned_strings_usage"];
    let bytes = |of: &Value, name: &str| of[name].as_u64().unwrap_or(0);
    let used = bytes(memory, "used_memory");
    let (free, wasted) = (bytes(memory, "free_memory"), bytes(memory, "wasted_memory"));
    let count = |name: &str| counts[name].as_u64().unwrap_or(0);
    let is_full = state["cache_full"].as_bool().unwrap_or(false);
    writeln!(
        page,
        "{app}  {} of {} MiB, {} wasted{}",
        used / MIB,
        (used + free + wasted) / MIB,
        wasted / MIB,
        if is_full { "; full: raise opcache.memory_consumption" } else { "" }
    )?;
    writeln!(
        page,
        "  scripts   {} kept, {} keys of {}; {} hits, {} misses",
        count("num_cached_scripts"),
        count("num_cached_keys"),
        count("max_cached_keys"),
        count("hits"),
        count("misses")
    )?;
    writeln!(
        page,
        "  strings   {} of {} MiB",
        bytes(strings, "used_memory") / MIB,
        bytes(strings, "buffer_size") / MIB
    )?;
    let restarts = ["oom_restarts", "hash_restarts", "manual_restarts"].map(count);
    writeln!(
        page,
        "  restarts  {} for want of memory, {} of keys, {} asked for",
        restarts[0], restarts[1], restarts[2]
    )?;
    Ok(page)
}
