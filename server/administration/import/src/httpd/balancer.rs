//! `<Proxy balancer://NAME>` of Apache httpd as `[upstream.NAME]`.
//!
//! Called for each `ProxyPass` to a balancer. Invariant: a member or an option that cannot be carried over is
//! listed.

use crate::directive::Directive;
use crate::draft::{Draft, text};
use toml::{Table, Value};

/// Whether a section describes a balancer.
pub(super) fn is_balancer(one: &Directive) -> bool {
    one.name == "<proxy" && one.argument(0).starts_with("balancer://")
}

/// What a route to `balancer://AUTHORITY` has as its `upstream`, without a path.
pub(super) fn target(
    pass: &Directive,
    authority: &str,
    statements: &[Directive],
    draft: &mut Draft,
) -> Option<String> {
    let is_named = |one: &&Directive| {
        let named = one.argument(0).strip_prefix("balancer://").unwrap_or_default();
        named.trim_end_matches('/').eq_ignore_ascii_case(authority)
    };
    let Some(section) = statements.iter().filter(|one| is_balancer(one)).find(is_named) else {
        draft.omit(pass, "there is no `<Proxy>` section with this balancer");
        return None;
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = authority.chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect();
    let mut group = Table::new();
    let mut servers = Vec::new();
    for one in &section.children {
        match one.name.as_str() {
            "balancermember" => servers.extend(member(one, &mut group, draft)),
            "proxyset" => options(one, &one.arguments, &mut group, draft),
            "require" | "order" | "allow" => {}
            _ => draft.omit(one, "see the keys of [upstream.NAME]"),
        }
    }
    options(pass, pass.arguments.get(2..).unwrap_or_default(), &mut group, draft);
    if servers.is_empty() || name.is_empty() {
        draft.omit(pass, "its balancer has no member");
        return None;
    }
    group.insert("servers".to_owned(), Value::Array(servers));
    let upstreams = draft.general.entry("upstream").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(upstreams) = upstreams {
        upstreams.insert(name.clone(), Value::Table(group));
    }
    Some(name)
}

/// The URL of a member, as a server of an upstream has it.
fn url(member: &str) -> Result<String, &'static str> {
    if let Some((path, _)) = member.strip_prefix("unix:").and_then(|rest| rest.split_once('|')) {
        return Ok(format!("unix:{path}"));
    }
    let Some((scheme, rest)) = member.split_once("://") else {
        return Err("a server has an http or https URL");
    };
    let scheme = match scheme {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        _ => return Err("a server has an http or https URL"),
    };
    match rest.trim_end_matches('/') {
        authority if authority.contains('/') => {
            Err("a server of an upstream has no path: write upstream = \"NAME/PATH\" in the route")
        }
        authority => Ok(format!("{scheme}://{authority}")),
    }
}

fn member(one: &Directive, group: &mut Table, draft: &mut Draft) -> Option<Value> {
    let url = match url(one.argument(0)) {
        Ok(url) => url,
        Err(reason) => {
            draft.omit(one, reason);
            return None;
        }
    };
    let mut table = Table::new();
    table.insert("url".to_owned(), text(&url));
    for option in &one.arguments[1..] {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name.to_ascii_lowercase().as_str() {
            "loadfactor" => match value.parse::<f64>() {
                // A hundredth is the smallest difference that httpd makes.
                Ok(factor) if factor.fract() == 0.0 && (1.0..=256.0).contains(&factor) => {
                    table.insert("weight".to_owned(), Value::Integer(factor as i64));
                }
                _ => draft.omit(one, "`weight` is a number from 1 to 256"),
            },
            "status" if value.contains(['D', 'd', 'S', 's']) => {
                draft.omit(one, "the server is down: run `outboard upstreams drain`");
                return None;
            }
            "status" if value.contains(['H', 'h']) => {
                table.insert("backup".to_owned(), true.into());
            }
            "retry" => {
                group.insert("fail_timeout".to_owned(), text(&seconds(value)));
            }
            "hcuri" => {
                set_check(group, "path", text(value));
            }
            "hcinterval" => set_check(group, "interval", text(&seconds(value))),
            "hcpasses" | "hcfails" | "hcmethod" | "hcexpr" | "hctemplate" | "max" | "lbset" => {
                draft.omit(one, format!("`{name}`: see the keys of [upstream.NAME]"));
            }
            // A cookie of the gateway names the server; connections are kept, and checked when they are used.
            "route" | "redirect" | "status" | "keepalive" | "ping" | "min" | "smax" | "ttl"
            | "acquire" | "disablereuse" | "flushpackets" | "flushwait" | "iobuffersize"
            | "connectiontimeout" | "timeout" | "responsefieldsize" => {}
            _ => draft.omit(one, format!("`{name}`: see the keys of [upstream.NAME]")),
        }
    }
    Some(if table.len() == 1 { text(&url) } else { Value::Table(table) })
}

fn set_check(group: &mut Table, key: &str, value: Value) {
    let check = group.entry("health_check").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(check) = check {
        check.insert(key.to_owned(), value);
    }
}

/// httpd takes a number without a unit as seconds.
fn seconds(value: &str) -> String {
    match value.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{value}s"),
        false => value.to_owned(),
    }
}

fn options(one: &Directive, all: &[String], group: &mut Table, draft: &mut Draft) {
    for option in all {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name.to_ascii_lowercase().as_str(), value.to_ascii_lowercase().as_str()) {
            ("lbmethod", "byrequests") => {}
            ("lbmethod", "bybusyness") => {
                group.insert("balance".to_owned(), text("least_connections"));
            }
            // The cookie is the gateway's own: that of the application does not name a server here.
            ("stickysession", _) => {
                group.insert("sticky".to_owned(), Value::Table(Table::new()));
            }
            ("maxattempts", number) => match number.parse::<i64>() {
                Ok(retries) => drop(group.insert("retries".to_owned(), retries.min(10).into())),
                Err(_) => draft.omit(one, "`retries` is a number"),
            },
            ("failonstatus", statuses) => {
                let statuses = statuses.split(',').map(text);
                group.insert("failure_status".to_owned(), Value::Array(statuses.collect()));
            }
            (
                "nofailover" | "growth" | "scolonpathdelim" | "timeout" | "keepalive" | "nocanon",
                _,
            ) => {}
            _ => draft.omit(one, format!("`{name}`: see the keys of [upstream.NAME]")),
        }
    }
}
