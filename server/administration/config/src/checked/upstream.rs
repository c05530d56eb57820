//! Servers that share the requests of proxied routes.

use super::upstream_health::health_check;
use super::{App, AuthService, Context, HealthCheck, ProxyTarget, Secret, StatusSet, proxy};
use crate::diagnostic::Kind;
use crate::raw;
pub use crate::raw::{Balance, SameSite, SendProxy};
use crate::scalar::{Fault, StatusClass};
use std::path::PathBuf;

/// More servers would make each choice slow.
const MAX_SERVERS: usize = 64;
const HINT: &str =
    "write \"http://HOST:PORT\", \"https://HOST:PORT\", \"HOST:PORT\" or \"unix:/PATH\"";

/// A group of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamGroup {
    /// Its name.
    pub name: String,
    /// The servers, at least one.
    pub servers: Vec<UpstreamServer>,
    /// Which server gets a request.
    pub balance: Balance,
    /// What the hash is computed from.
    pub hash_key: HashKey,
    /// The cookie that binds a client to a server.
    pub sticky: Option<Sticky>,
    /// Maximum requests of all servers.
    pub max_requests: Option<u32>,
    /// Failures within `fail_window_ms` after which a server is ejected; `None`: never.
    pub max_fails: Option<u32>,
    /// The time in which failures are counted.
    pub fail_window_ms: u64,
    /// How long a server is ejected.
    pub fail_timeout_ms: u64,
    /// Statuses that are failures.
    pub failure_status: StatusSet,
    /// Time in which the share of a recovered server grows.
    pub slow_start_ms: u64,
    /// Maximum further attempts of a request.
    pub retries: u32,
    /// Retries in percent of requests.
    pub retry_percent: u32,
    /// Maximum time of an attempt that can be retried.
    pub try_timeout_ms: Option<u64>,
    /// When requests are refused at once.
    pub breaker: Option<Breaker>,
    /// How servers are checked.
    pub health_check: Option<HealthCheck>,
    /// How often names are resolved.
    pub resolve_interval_ms: u64,
    /// The header at the start of a connection.
    pub proxy_protocol: SendProxy,
}

/// A server of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamServer {
    /// Scheme, host and port, as the URL of a request begins; for a Unix socket `http://localhost`.
    pub origin: String,
    /// Its Unix socket.
    pub socket: Option<PathBuf>,
    /// Its share of the requests.
    pub weight: u32,
    /// Whether it gets requests only while no other server is up.
    pub is_backup: bool,
    /// Maximum requests at a time.
    pub max_connections: Option<u32>,
}

/// What the hash of a request is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address.
    Client,
    /// Path and query.
    Uri,
    /// The path.
    Path,
    /// A header field.
    Header(String),
    /// A cookie.
    Cookie(String),
}

/// A cookie that binds a client to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sticky {
    /// Its name.
    pub cookie: String,
    /// The key of its values.
    pub secret: Secret,
    /// The attribute `SameSite`.
    pub same_site: SameSite,
    /// Its lifetime.
    pub max_age_s: Option<u64>,
}

/// When requests are refused because too many fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// The share of failures in percent, at least 1.
    pub failure_percent: u32,
    /// The time in which attempts are counted.
    pub window_ms: u64,
    /// The fewest attempts.
    pub min_requests: u32,
    /// How long requests are refused.
    pub open_ms: u64,
}

pub(super) fn groups(raw: &raw::Upstream, context: &mut Context<'_>) -> Vec<UpstreamGroup> {
    raw.named.iter().map(|(name, group)| of(name, group, context)).collect()
}

fn of(name: &str, raw: &raw::UpstreamGroup, context: &mut Context<'_>) -> UpstreamGroup {
    let place = ["upstream", name];
    UpstreamGroup {
        name: name.to_owned(),
        servers: servers(raw, &place, context),
        balance: raw.balance,
        hash_key: hash_key(&raw.hash_key.0).unwrap_or_else(|fault| {
            context.value(&[&place[..], &["hash_key"]].concat(), Kind::BadValue, fault);
            HashKey::Client
        }),
        sticky: raw.sticky.as_ref().map(|sticky| self::sticky(sticky, &place, context)),
        max_requests: limit(raw.max_requests),
        max_fails: limit(raw.max_fails),
        fail_window_ms: raw.fail_window.0,
        fail_timeout_ms: raw.fail_timeout.0,
        failure_status: StatusSet::of(raw.failure_status.iter().map(|StatusClass(text)| &text[..])),
        slow_start_ms: raw.slow_start.0,
        retries: raw.retries,
        retry_percent: raw.retry_budget.0,
        try_timeout_ms: raw.try_timeout.as_ref().map(|period| period.0),
        breaker: raw.breaker.as_ref().map(|breaker| Breaker {
            failure_percent: breaker.failure_rate.0,
            window_ms: breaker.window.0,
            min_requests: breaker.min_requests,
            open_ms: breaker.open.0,
        }),
        health_check: raw.health_check.as_ref().map(|check| health_check(check, &place, context)),
        resolve_interval_ms: raw.resolve_interval.0,
        proxy_protocol: raw.proxy_protocol,
    }
}

fn limit(number: u32) -> Option<u32> {
    (number > 0).then_some(number)
}

fn servers(
    raw: &raw::UpstreamGroup,
    place: &[&str; 2],
    context: &mut Context<'_>,
) -> Vec<UpstreamServer> {
    let mut all: Vec<UpstreamServer> = Vec::new();
    for (index, entry) in raw.servers.iter().enumerate() {
        let (url, weight, is_backup, most) = match entry {
            raw::ServerEntry::Url(url) => (url, 1, false, 0),
            raw::ServerEntry::Table(table) => {
                (&table.url, table.weight, table.backup, table.max_connections)
            }
        };
        let index = index.to_string();
        let at = [&place[..], &["servers", &index]].concat();
        match server(&url.0) {
            Ok((origin, socket)) => {
                let is_same =
                    |other: &UpstreamServer| (&other.origin, &other.socket) == (&origin, &socket);
                if all.iter().any(is_same) {
                    let fault = Fault::new(format!("the server `{}` is named twice", url.0))
                        .hint("give it a `weight`");
                    context.value(&at, Kind::Conflict, fault);
                }
                let max_connections = limit(most);
                all.push(UpstreamServer { origin, socket, weight, is_backup, max_connections });
            }
            Err(fault) => context.value(&at, Kind::BadValue, fault),
        }
    }
    if raw.servers.is_empty() {
        let fault = Fault::new("the upstream has no server")
            .hint("add servers = [\"http://127.0.0.1:3000\", \"http://127.0.0.1:3001\"]");
        context.key(place, Kind::MissingKey, fault);
    } else if raw.servers.len() > MAX_SERVERS {
        let fault = Fault::new(format!("more than {MAX_SERVERS} servers"));
        context.value(&[&place[..], &["servers"]].concat(), Kind::OutOfRange, fault);
    }
    all
}

/// Its origin and its socket.
fn server(text: &str) -> Result<(String, Option<PathBuf>), Fault> {
    if let Some(path) = text.strip_prefix("unix:") {
        let is_usable = path.starts_with('/') && path.len() <= 107;
        let fault = || Fault::new("the path of a socket is absolute, of at most 107 bytes");
        return match is_usable {
            true => Ok(("http://localhost".to_owned(), Some(path.into()))),
            false => Err(fault().hint(HINT)),
        };
    }
    let url = match text.contains("://") {
        true => text.trim_end_matches('/').to_owned(),
        false => format!("http://{text}"),
    };
    proxy::check_url(&url).map_err(|fault| Fault::new(fault.message).hint(HINT))?;
    match url.splitn(4, '/').nth(3) {
        None => Ok((url, None)),
        Some(_) => Err(Fault::new("a server of an upstream has no path")
            .hint("the path is in the route: upstream = \"NAME/PATH\"")),
    }
}

fn hash_key(text: &str) -> Result<HashKey, Fault> {
    let is_token = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    Ok(match text.split_once(':') {
        None if text == "client" => HashKey::Client,
        None if text == "uri" => HashKey::Uri,
        None if text == "path" => HashKey::Path,
        Some(("header", name)) if is_token(name) => HashKey::Header(name.to_owned()),
        Some(("cookie", name)) if is_token(name) => HashKey::Cookie(name.to_owned()),
        _ => {
            return Err(Fault::new(format!("`{text}` is not a key of a request"))
                .hint("\"client\", \"uri\", \"path\", \"header:NAME\" or \"cookie:NAME\""));
        }
    })
}

fn sticky(raw: &raw::Sticky, place: &[&str; 2], context: &mut Context<'_>) -> Sticky {
    let cookie = &raw.cookie.0;
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if cookie.is_empty() || !cookie.bytes().all(is_token) {
        let fault = Fault::new(format!("`{cookie}` is not the name of a cookie"));
        context.value(&[&place[..], &["sticky", "cookie"]].concat(), Kind::BadValue, fault);
    }
    Sticky {
        cookie: cookie.clone(),
        secret: Secret(raw.secret.0.clone()),
        same_site: raw.same_site,
        max_age_s: raw.max_age.as_ref().map(|age| age.0 / 1000),
    }
}

/// Groups that routes refer to must exist.
pub(super) fn check_routes(apps: &[App], groups: &[UpstreamGroup], context: &mut Context<'_>) {
    let mut check = |target: &ProxyTarget, at: &[&str]| {
        let ProxyTarget::Group { name, .. } = target else { return };
        if !groups.iter().any(|group| group.name == *name) {
            let fault = Fault::new(format!("there is no upstream `{name}`")).hint(format!(
                "add [upstream.{name}] with servers = [\"http://127.0.0.1:3000\"], or write a URL"
            ));
            context.value(at, Kind::Conflict, fault);
        }
    };
    for app in apps {
        for (index, route) in app.proxies.iter().enumerate() {
            let index = index.to_string();
            check(&route.upstream, &["app", &app.name, "proxy", &index, "upstream"]);
        }
        for (index, rule) in app.access.rules.iter().enumerate() {
            let index = index.to_string();
            if let Some(AuthService::Upstream { to, .. }) =
                rule.forward_auth.as_ref().map(|auth| &auth.service)
            {
                check(to, &["app", &app.name, "access", &index, "forward_auth", "upstream"]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_origin_or_a_socket() {
        let origin = |text: &str| server(text).unwrap().0;
        assert_eq!(origin("10.0.0.1:80"), "http://10.0.0.1:80");
        assert_eq!(origin("https://a.example/"), "https://a.example");
        assert_eq!(server("unix:/run/a.sock").unwrap().1, Some("/run/a.sock".into()));
        for bad in ["", "unix:a.sock", "ftp://a", "http://a/path", "http://u@a", "a b", "http://"] {
            assert!(server(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_name_the_key_and_what_to_write() {
        let errors = |text: &str| {
            let text = format!("{text}\n[app.site]\nroot = \"/tmp\"\n");
            let path = std::path::Path::new("/tmp/outboard.toml");
            crate::Config::parse(&text, path).unwrap_err().to_string()
        };
        for (text, said) in [
            ("[upstream]\nrequest = 5", ["unknown key `request`", "requests"]),
            ("[upstream.api]\nserver = [\"a:1\"]", ["unknown key `server`", "servers"]),
            ("[upstream.api]\nbalance = \"hash\"", ["has no server", "servers = ["]),
            ("[upstream.\"a b\"]\nservers = [\"a:1\"]", ["`a b`", "letters, digits"]),
            ("[upstream.api]\nservers = [\"a:1\", \"http://a:1\"]", ["named twice", "weight"]),
            ("[upstream.api]\nservers = [\"http://a/x\"]", ["has no path", "NAME/PATH"]),
            (
                "[[app.a.proxy]]\npath = \"/**\"\nupstream = \"api\"\n[app.a]\nroot = \"/tmp\"\n\
                 hosts = [\"a.test\"]",
                ["there is no upstream `api`", "add [upstream.api]"],
            ),
        ] {
            let errors = errors(text);
            assert!(said.iter().all(|part| errors.contains(part)), "{text}: {errors}");
        }
    }

    #[test]
    fn a_hash_key_names_a_part_of_the_request() {
        assert_eq!(hash_key("header:X-User"), Ok(HashKey::Header("X-User".to_owned())));
        assert_eq!(hash_key("cookie:sid"), Ok(HashKey::Cookie("sid".to_owned())));
        for bad in ["", "host", "header:", "cookie:a b", "client:1"] {
            assert!(hash_key(bad).is_err(), "{bad}");
        }
    }
}
