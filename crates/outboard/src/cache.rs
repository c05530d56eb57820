//! `outboard cache`: what the page caches of a running server hold, and purging them.

use crate::admin_client::{ask, default_socket};
use crate::cli::{AdminArguments, CacheAction, CachePick, PurgeArguments};
use crate::terminal::Terminal;
use serde_json::Value;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::process::ExitCode;

/// Puts a server's answer into words.
type Say = fn(&Value) -> Result<String, fmt::Error>;

pub(crate) fn run(action: &CacheAction, terminal: &Terminal) -> ExitCode {
    let (admin, method, query, say): (_, _, _, Say) = match action {
        CacheAction::Stats(pick) => (&pick.admin, "GET", query("stats", pick, &[]), stats),
        CacheAction::List { pick, prefix } => {
            let more = prefix.iter().map(|prefix| ("prefix", prefix.as_str()));
            (&pick.admin, "GET", query("list", pick, &more.collect::<Vec<_>>()), list)
        }
        CacheAction::Get { pick, url } => {
            (&pick.admin, "GET", query("get", pick, &[("url", url)]), get)
        }
        CacheAction::Audit { pick, sample } => {
            let sample = sample.to_string();
            let path = query("audit", pick, &[("sample", &sample)]);
            return audit(&pick.admin, terminal, &path);
        }
        CacheAction::Purge(purge) => (&purge.pick.admin, "POST", of_purge(purge), purged),
    };
    tell(admin, terminal, method, &query, say)
}

fn of_purge(purge: &PurgeArguments) -> String {
    let mut more: Vec<(&str, &str)> = Vec::new();
    more.extend(purge.url.iter().map(|url| ("url", url.as_str())));
    more.extend(purge.prefix.iter().map(|prefix| ("prefix", prefix.as_str())));
    more.extend(purge.tag.iter().map(|tag| ("tag", tag.as_str())));
    more.extend(purge.all.then_some(("all", "1")));
    more.extend(purge.soft.then_some(("soft", "1")));
    query("purge", &purge.pick, &more)
}

/// The path of an admin request.
fn query(verb: &str, pick: &CachePick, more: &[(&str, &str)]) -> String {
    let app = pick.app.iter().map(|app| ("app", app.as_str()));
    let pairs = app.chain(more.iter().copied());
    let pairs: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    format!("/cache/{verb}?{}", pairs.join("&"))
}

/// All but letters, digits and a few marks as `%XX`.
fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' => {
                text.push(char::from(byte));
            }
            // Writing to a String does not fail.
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

fn tell(
    admin: &AdminArguments,
    terminal: &Terminal,
    method: &str,
    path: &str,
    say: impl Fn(&Value) -> Result<String, fmt::Error>,
) -> ExitCode {
    let socket = admin.admin.clone().unwrap_or_else(default_socket);
    let answer = match ask(&socket, method, path) {
        Err(message) => return terminal.fail(&message, 1),
        Ok(answer) => answer,
    };
    if answer.status >= 300 && !admin.json {
        return terminal.fail(answer.body["error"].as_str().unwrap_or("it was refused"), 1);
    }
    let said = say(&answer.body).unwrap_or_default();
    let page = if admin.json { format!("{:#}\n", answer.body) } else { said };
    // A reader that has seen enough (`| head`) is no mistake.
    let _ = std::io::stdout().write_all(page.as_bytes());
    ExitCode::from(u8::from(answer.status >= 300))
}

/// Found pages are a failure, so that a script can act on it.
fn audit(admin: &AdminArguments, terminal: &Terminal, path: &str) -> ExitCode {
    let found = std::cell::Cell::new(false);
    let told = tell(admin, terminal, "POST", path, |body| {
        found.set(body["unsafe"].as_array().is_some_and(|pages| !pages.is_empty()));
        findings(body)
    });
    if found.get() { ExitCode::from(1) } else { told }
}

fn findings(body: &Value) -> Result<String, fmt::Error> {
    let mut page = String::new();
    for found in body["unsafe"].as_array().into_iter().flatten() {
        let text = |name: &str| found[name].as_str().unwrap_or_default();
        writeln!(page, "unsafe  {}", text("url"))?;
        writeln!(page, "        {} makes a difference at \"{}\"", text("by"), text("excerpt"))?;
    }
    let count = body["unsafe"].as_array().map_or(0, Vec::len);
    writeln!(page, "{} pages examined, {count} unsafe", body["examined"])?;
    Ok(page)
}

fn stats(body: &Value) -> Result<String, fmt::Error> {
    let mut page = String::new();
    for (app, stats) in body["apps"].as_object().into_iter().flatten() {
        let count = |name: &str| stats[name].as_u64().unwrap_or(0);
        let answers = count("hit") + count("stale") + count("miss") + count("bypass");
        let from_cache = (count("hit") + count("stale")) * 100 / answers.max(1);
        let presets: Vec<&str> =
            stats["presets"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        writeln!(page, "{app}  {from_cache} % of {answers} answers from the cache")?;
        writeln!(
            page,
            "  answers   {} hit, {} stale, {} miss, {} bypass; {} waiting",
            count("hit"),
            count("stale"),
            count("miss"),
            count("bypass"),
            count("waiting")
        )?;
        writeln!(
            page,
            "  entries   {} in {} of {} KiB; {} stored, {} evicted, {} purged",
            count("entries"),
            count("used_bytes") / 1024,
            count("budget_bytes") / 1024,
            count("stored"),
            count("evicted"),
            count("purged")
        )?;
        if count("disk_entries") > 0 {
            let (entries, bytes) = (count("disk_entries"), count("disk_bytes"));
            writeln!(page, "  on disk   {entries} in {} KiB", bytes / 1024)?;
        }
        if stats["shared"].is_object() {
            page.push_str(&shared(&stats["shared"])?);
        }
        writeln!(page, "  presets   {}", presets.join(", "))?;
    }
    Ok(page)
}

fn shared(shared: &Value) -> Result<String, fmt::Error> {
    let mut page = String::new();
    let text = |name: &str| shared[name].as_str().unwrap_or_default().to_owned();
    match shared["away"].as_str() {
        Some(why) => writeln!(page, "  shared    not now: {why}")?,
        None => writeln!(page, "  shared    as {} by {}", text("name"), text("server"))?,
    }
    writeln!(
        page,
        "            {} pages taken, {} put; purges: {} sent, {} heard, {} not confirmed yet",
        shared["taken"],
        shared["put"],
        shared["purges_sent"],
        shared["purges_heard"],
        shared["purges_unconfirmed"]
    )?;
    Ok(page)
}

fn list(body: &Value) -> Result<String, fmt::Error> {
    let mut page = String::new();
    for entry in body["entries"].as_array().into_iter().flatten() {
        writeln!(
            page,
            "{:>3}  {:>8} B  age {:>6} s  fresh for {:>6} s  {}",
            entry["status"],
            entry["body_bytes"],
            entry["age_s"],
            entry["fresh_for_s"],
            entry["url"].as_str().unwrap_or_default()
        )?;
    }
    Ok(page)
}

fn get(body: &Value) -> Result<String, fmt::Error> {
    let mut page = list(body)?;
    if page.is_empty() {
        page.push_str("nothing is kept there\n");
    }
    for entry in body["entries"].as_array().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        writeln!(
            page,
            "lifetime from {}, for {}",
            text(&entry["lifetime_from"]),
            text(&entry["audience"])
        )?;
        for header in entry["headers"].as_array().into_iter().flatten() {
            writeln!(page, "  {}: {}", text(&header[0]), text(&header[1]))?;
        }
    }
    Ok(page)
}

fn purged(body: &Value) -> Result<String, fmt::Error> {
    let others = match body["others_told"].as_bool() {
        Some(false) => "; the shared server is away: others hear of it when it is back",
        _ => "",
    };
    Ok(format!("{} purged{others}\n", body["purged"]))
}
