//! `upstream` blocks of nginx as `[upstream.NAME]`.
//!
//! Called for each `proxy_pass` that names a block. A block with a single TCP server and nothing else is that
//! server's URL.

use crate::directive::Directive;
use crate::draft::{Draft, text};
use toml::{Table, Value};

/// What a route to this block has as its `upstream`.
pub(super) fn target(block: &Directive, scheme: &str, draft: &mut Draft) -> Option<String> {
    let servers: Vec<&Directive> = block.all("server").collect();
    let is_plain =
        |one: &Directive| one.arguments.len() == 1 && !one.argument(0).starts_with("unix:");
    if let [only] = servers[..]
        && is_plain(only)
    {
        return Some(format!("{scheme}://{}", only.argument(0)));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String =
        block.argument(0).chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect();
    let mut group = Table::new();
    let servers = servers.into_iter().filter_map(|one| server(one, scheme, &mut group, draft));
    let servers: Vec<Value> = servers.collect();
    if servers.is_empty() || name.is_empty() {
        return None;
    }
    group.insert("servers".to_owned(), Value::Array(servers));
    for one in block.children.iter().filter(|one| one.name != "server") {
        option(one, &mut group, draft);
    }
    let upstreams = draft.general.entry("upstream").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(upstreams) = upstreams {
        upstreams.insert(name.clone(), Value::Table(group));
    }
    Some(name)
}

fn server(one: &Directive, scheme: &str, group: &mut Table, draft: &mut Draft) -> Option<Value> {
    let address = one.argument(0);
    let url = match address.starts_with("unix:") {
        true if scheme == "https" => {
            draft.omit(one, "a server with a Unix socket does not use TLS");
            return None;
        }
        true => address.trim_end_matches(':').to_owned(),
        false => format!("{scheme}://{address}"),
    };
    let mut table = Table::new();
    table.insert("url".to_owned(), text(&url));
    for option in one.arguments.iter().skip(1) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let number = value.parse::<i64>();
        match (name, number) {
            ("weight", Ok(weight)) => drop(table.insert("weight".to_owned(), weight.into())),
            ("max_conns", Ok(most)) => {
                drop(table.insert("max_connections".to_owned(), most.into()))
            }
            ("backup", _) => drop(table.insert("backup".to_owned(), true.into())),
            ("max_fails", Ok(most)) => drop(group.insert("max_fails".to_owned(), most.into())),
            ("fail_timeout", _) => {
                for key in ["fail_timeout", "fail_window"] {
                    group.insert(key.to_owned(), text(&duration(value)));
                }
            }
            ("slow_start", _) => {
                group.insert("slow_start".to_owned(), text(&duration(value)));
            }
            ("resolve", _) => {}
            ("down", _) => {
                draft.omit(one, "the server is down: run `outboard upstreams drain`");
                return None;
            }
            _ => draft.omit(one, format!("`{name}`: see the keys of [upstream.NAME]")),
        }
    }
    Some(if table.len() == 1 { text(&url) } else { Value::Table(table) })
}

/// nginx takes a number without a unit as seconds, as a text.
fn duration(value: &str) -> String {
    match value.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{value}s"),
        false => value.to_owned(),
    }
}

fn option(one: &Directive, group: &mut Table, draft: &mut Draft) {
    let mut balance = |balance: &str, key: &str| {
        group.insert("balance".to_owned(), text(balance));
        if !key.is_empty() {
            group.insert("hash_key".to_owned(), text(key));
        }
    };
    match one.name.as_str() {
        "least_conn" => balance("least_connections", ""),
        "ip_hash" => balance("hash", "client"),
        "hash" => match one.argument(0) {
            "$remote_addr" | "$binary_remote_addr" => balance("hash", "client"),
            "$request_uri" => balance("hash", "uri"),
            "$uri" => balance("hash", "path"),
            key => match (key.strip_prefix("$http_"), key.strip_prefix("$cookie_")) {
                (Some(header), _) => {
                    balance("hash", &format!("header:{}", header.replace('_', "-")))
                }
                (_, Some(cookie)) => balance("hash", &format!("cookie:{cookie}")),
                _ => draft.omit(one, "the key is none of hash_key of [upstream.NAME]"),
            },
        },
        // Connections are kept without it; the state is shared by all threads.
        "keepalive" | "keepalive_timeout" | "keepalive_requests" | "keepalive_time" | "zone" => {}
        _ => draft.omit(one, "see the keys of [upstream.NAME]"),
    }
}
