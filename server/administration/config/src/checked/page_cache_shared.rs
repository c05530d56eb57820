//! The shared tier of the page cache.

use super::context::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, Secret};

/// A Redis or Valkey server with the pages and purges of several gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageCacheShared {
    /// Host name or IP address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// `None`: no TLS; otherwise whether the certificate is verified.
    pub tls_verified: Option<bool>,
    /// User name; empty: the server's default user.
    pub user: String,
    /// Password; empty: none.
    pub password: Secret,
    /// The number of the database.
    pub database: u32,
    /// Prefix of all keys.
    pub name: String,
    /// Maximum time to wait for the server.
    pub timeout_ms: u64,
}

/// The port of Redis.
const PORT: u16 = 6379;

pub(super) fn shared(
    raw: Option<&raw::PageCacheShared>,
    app: &str,
    place: &[&str],
    context: &mut Context<'_>,
) -> Option<PageCacheShared> {
    let raw = raw?;
    let name = raw.name.as_ref().map_or(app, |name| &name.0).to_owned();
    match read(&raw.server.0) {
        Ok(server) => Some(PageCacheShared {
            tls_verified: server.tls_verified.map(|_| raw.verify),
            name,
            timeout_ms: raw.timeout.0,
            ..server
        }),
        Err(fault) => {
            context.value(&[place, &["shared", "server"]].concat(), Kind::BadValue, fault);
            None
        }
    }
}

/// Reads the URL of a server.
pub(super) fn read(url: &str) -> Result<PageCacheShared, Fault> {
    let wrong = |why: &str| Fault::new(why).hint("write a URL such as \"redis://127.0.0.1:6379\"");
    let (scheme, rest) =
        url.split_once("://").ok_or_else(|| wrong("it does not start with redis://"))?;
    let is_tls = match scheme {
        "redis" | "valkey" => false,
        "rediss" | "valkeys" => true,
        _ => return Err(wrong("it starts with neither redis:// nor rediss://")),
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    // A password may have an @ in it, a host has none.
    let (credentials, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = credentials.split_once(':').unwrap_or(("", credentials));
    let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => {
            let (host, port) = address.split_once(':').unwrap_or((address, ""));
            (host, Some(port))
        }
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host) {
        return Err(wrong("the host is missing"));
    }
    let port = match port.unwrap_or_default() {
        "" => PORT,
        port => port.parse().map_err(|_| wrong("the port is invalid"))?,
    };
    let database = match database {
        "" => 0,
        number => number.parse().map_err(|_| wrong("the database is not a number"))?,
    };
    Ok(PageCacheShared {
        host: host.to_owned(),
        port,
        tls_verified: is_tls.then_some(true),
        user: user.to_owned(),
        password: Secret(password.to_owned()),
        database,
        name: String::new(),
        timeout_ms: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_url_needs_only_a_host() {
        let parsed = |url: &str| {
            let server = read(url).unwrap();
            let Secret(password) = server.password;
            (server.user, password, server.host, server.port, server.database)
        };
        let expected = |user: &str, password: &str, host: &str, port, database| {
            (user.to_owned(), password.to_owned(), host.to_owned(), port, database)
        };
        assert_eq!(parsed("redis://a"), expected("", "", "a", 6379, 0));
        assert_eq!(parsed("valkey://a.b:1/"), expected("", "", "a.b", 1, 0));
        assert_eq!(parsed("redis://:p@ss@a/3"), expected("", "p@ss", "a", 6379, 3));
        assert_eq!(parsed("rediss://u:p:q@[::1]:7/1"), expected("u", "p:q", "::1", 7, 1));
        assert_eq!(read("rediss://a").unwrap().tls_verified, Some(true));
        assert_eq!(read("redis://a").unwrap().tls_verified, None);
        for wrong in ["a:1", "http://a", "redis://", "redis://a:x", "redis://a/x", "redis://a b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(!format!("{:?}", read("redis://:hidden@a")).contains("hidden"));
    }
}
