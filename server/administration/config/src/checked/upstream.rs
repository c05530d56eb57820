//! Servers that share the requests of proxied routes.

use super::app::App;
use super::authentication::AuthService;
use super::context::Context;
use super::{proxy, upstream_health};
use crate::diagnostic::Kind;
use crate::raw::{HashKey, ProxyTarget, Sticky, UpstreamGroup, UpstreamServer};
use crate::scalar::Fault;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// More servers would make each choice slow.
const MAX_SERVERS: usize = 64;
const HINT: &str =
    "write \"http://HOST:PORT\", \"https://HOST:PORT\", \"HOST:PORT\" or \"unix:/PATH\"";

pub(super) fn groups(
    named: BTreeMap<String, UpstreamGroup>,
    context: &mut Context<'_>,
) -> Vec<UpstreamGroup> {
    named.into_iter().map(|(name, group)| checked(name, group, context)).collect()
}

fn checked(name: String, mut group: UpstreamGroup, context: &mut Context<'_>) -> UpstreamGroup {
    let place = ["upstream", &name];
    group.servers = servers(&group, &place, context);
    match hash_key(&group.written_hash_key) {
        Ok(key) => group.hash_key = key,
        Err(fault) => {
            context.value(&[&place[..], &["hash_key"]].concat(), Kind::BadValue, fault);
        }
    }
    if let Some(sticky) = &group.sticky {
        check_sticky(sticky, &place, context);
    }
    if let Some(check) = &mut group.health_check {
        upstream_health::check(check, &place, context);
    }
    group.name = name;
    group
}

fn servers(
    group: &UpstreamGroup,
    place: &[&str; 2],
    context: &mut Context<'_>,
) -> Vec<UpstreamServer> {
    let mut all: Vec<UpstreamServer> = Vec::new();
    for (index, entry) in group.written_servers.iter().enumerate() {
        let table = entry.table();
        let index = index.to_string();
        let at = [&place[..], &["servers", &index]].concat();
        match server(&table.url) {
            Ok((origin, socket)) => {
                let is_same =
                    |other: &UpstreamServer| (&other.origin, &other.socket) == (&origin, &socket);
                if all.iter().any(is_same) {
                    let fault = Fault::new(format!("the server `{}` is named twice", table.url))
                        .hint("give it a `weight`");
                    context.value(&at, Kind::Conflict, fault);
                }
                all.push(UpstreamServer { origin, socket, ..table });
            }
            Err(fault) => context.value(&at, Kind::BadValue, fault),
        }
    }
    if group.written_servers.is_empty() {
        let fault = Fault::new("the upstream has no server")
            .hint("add servers = [\"http://127.0.0.1:3000\", \"http://127.0.0.1:3001\"]");
        context.key(place, Kind::MissingKey, fault);
    } else if group.written_servers.len() > MAX_SERVERS {
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

fn check_sticky(sticky: &Sticky, place: &[&str; 2], context: &mut Context<'_>) {
    let cookie = &sticky.cookie;
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    if cookie.is_empty() || !cookie.bytes().all(is_token) {
        let fault = Fault::new(format!("`{cookie}` is not the name of a cookie"));
        context.value(&[&place[..], &["sticky", "cookie"]].concat(), Kind::BadValue, fault);
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
