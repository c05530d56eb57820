//! [`Target`]: address and protocol from a URL.
//!
//! ```text
//! http://host:port/path              HTTP/1.1
//! https://host/path                  TLS; HTTP/1.1, or HTTP/2 or HTTP/3 if requested
//! http+unix:/run/app.sock:/path      HTTP/1.1 over a Unix socket
//! fcgi://host:port/srv/www/index.php?query     FastCGI, the script by its path on the server
//! fcgi+unix:/run/php.sock:/srv/www/index.php
//! redis://host:port/argument/argument           RESP; the method is the command
//! redis+unix:/run/redis.sock:/argument
//! ```

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Where to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    Http1,
    /// HTTP/2 (RFC 9113), with prior knowledge unless there is TLS.
    Http2,
    /// HTTP/3 (RFC 9114), without an alternative if the server does not speak it.
    Http3,
    /// FastCGI, as a web server speaks it to php-fpm.
    FastCgi,
    /// RESP 2, as Redis and Valkey speak it.
    Redis,
}

impl Protocol {
    /// Whether a connection carries several requests at a time.
    pub(crate) fn has_streams(self) -> bool {
        matches!(self, Protocol::Http2 | Protocol::Http3)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Http1 => "HTTP/1.1",
            Protocol::Http2 => "HTTP/2",
            Protocol::Http3 => "HTTP/3",
            Protocol::FastCgi => "FastCGI",
            Protocol::Redis => "RESP",
        })
    }
}

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The URL as it was given.
    pub url: String,
    /// The address.
    pub address: Address,
    /// The protocol.
    pub protocol: Protocol,
    /// The name that the certificate must have; `None` without TLS.
    pub tls_name: Option<String>,
    /// The authority for the `Host` field.
    pub host: String,
    /// Path and query of the first request. For FastCGI below [`Self::document_root`].
    pub path: String,
    /// FastCGI: the directory that paths are relative to.
    pub document_root: String,
}

/// Why a URL is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidTarget {
    url: String,
    why: String,
}

impl fmt::Display for InvalidTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.url, self.why)
    }
}

impl std::error::Error for InvalidTarget {}

impl Target {
    /// Parses `url` and resolves names.
    pub fn parse(url: &str) -> Result<Self, InvalidTarget> {
        Self::read(url).map_err(|why| InvalidTarget { url: url.to_owned(), why })
    }

    fn read(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        let (protocol, tls) = match scheme.trim_end_matches("+unix") {
            "http" => (Protocol::Http1, false),
            "https" => (Protocol::Http1, true),
            "fcgi" => (Protocol::FastCgi, false),
            "redis" => (Protocol::Redis, false),
            _ => {
                return Err("a URL begins with http://, https://, http+unix:, fcgi://, \
                            fcgi+unix:, redis:// or redis+unix:"
                    .to_owned());
            }
        };
        let mut target = if scheme.ends_with("+unix") {
            over_unix(rest)?
        } else {
            over_tcp(rest, protocol, tls)?
        };
        url.clone_into(&mut target.url);
        target.protocol = protocol;
        if protocol == Protocol::FastCgi {
            target.split_script()?;
        }
        Ok(target)
    }

    /// FastCGI needs both directory and script name.
    fn split_script(&mut self) -> Result<(), String> {
        let end = self.path.find('?').unwrap_or(self.path.len());
        let name = self.path[..end].rfind('/').unwrap_or(0);
        if end <= name + 1 {
            return Err(
                "the script is missing, as in fcgi://127.0.0.1:9000/srv/www/index.php".to_owned()
            );
        }
        self.document_root = self.path[..name].to_owned();
        self.path.drain(..name);
        Ok(())
    }
}

fn over_tcp(rest: &str, protocol: Protocol, tls: bool) -> Result<Target, String> {
    let rest = rest.strip_prefix("//").ok_or("// and a host follow the scheme")?;
    let rest = rest.split('#').next().unwrap_or_default();
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = split_port(authority)?;
    let port = match (port, protocol, tls) {
        (Some(port), ..) => port,
        (None, Protocol::FastCgi, _) => 9000,
        (None, Protocol::Redis, _) => 6379,
        (None, _, true) => 443,
        (None, _, false) => 80,
    };
    let found = (name, port).to_socket_addrs().map_err(|error| format!("{name}: {error}"))?;
    let address = found.into_iter().next().ok_or_else(|| format!("{name} has no address"))?;
    Ok(Target {
        url: String::new(),
        address: Address::Tcp(address),
        protocol,
        tls_name: tls.then(|| name.to_owned()),
        host: authority.to_owned(),
        path: with_slash(path),
        document_root: String::new(),
    })
}

/// The name without brackets, and the port, if any.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (name, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => match authority.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, None),
        },
    };
    if name.is_empty() {
        return Err("the host is missing".to_owned());
    }
    let port = port.map(|port| port.parse().map_err(|_| format!("{port} is no port")));
    Ok((name, port.transpose()?))
}

fn over_unix(rest: &str) -> Result<Target, String> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (socket, path) = rest.split_once(':').unwrap_or((rest, "/"));
    if !socket.starts_with('/') {
        return Err("the path of the socket begins with /".to_owned());
    }
    Ok(Target {
        url: String::new(),
        address: Address::Unix(socket.into()),
        protocol: Protocol::Http1,
        tls_name: None,
        host: "localhost".to_owned(),
        path: with_slash(path),
        document_root: String::new(),
    })
}

fn with_slash(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Target {
        Target::parse(url).expect("the URL is one")
    }

    #[test]
    fn a_url_names_address_host_and_path() {
        let target = parse("http://127.0.0.1:8080/a?b=c#d");
        assert_eq!(target.address, Address::Tcp(([127, 0, 0, 1], 8080).into()));
        assert_eq!((target.host.as_str(), target.path.as_str()), ("127.0.0.1:8080", "/a?b=c"));
        assert_eq!(target.tls_name, None);
        assert_eq!(parse("http://127.0.0.1").path, "/");
        assert_eq!(parse("http://127.0.0.1?x").path, "/?x");
    }

    #[test]
    fn ports_and_names_follow_the_scheme() {
        let target = parse("https://[::1]/");
        assert_eq!(target.address, Address::Tcp("[::1]:443".parse().expect("an address")));
        assert_eq!(target.tls_name.as_deref(), Some("::1"));
        assert_eq!(parse("fcgi://127.0.0.1/x.php").address.to_string(), "127.0.0.1:9000");
        assert_eq!(parse("redis://127.0.0.1/key").address.to_string(), "127.0.0.1:6379");
    }

    #[test]
    fn unix_sockets_and_scripts_are_separated() {
        let target = parse("http+unix:/run/a.sock:/x");
        assert_eq!(
            (target.address.to_string().as_str(), target.path.as_str()),
            ("unix:/run/a.sock", "/x")
        );
        let target = parse("fcgi+unix:/run/php.sock:/srv/www/index.php?a=/b");
        assert_eq!(target.protocol, Protocol::FastCgi);
        assert_eq!(target.document_root, "/srv/www");
        assert_eq!(target.path, "/index.php?a=/b");
    }

    #[test]
    fn an_invalid_url_says_what_is_missing() {
        for (url, why) in [
            ("127.0.0.1:80", "begins with http://"),
            ("http:/x", "// and a host"),
            ("http://:80/", "host is missing"),
            ("http://127.0.0.1:99999/", "no port"),
            ("fcgi://127.0.0.1:9000/", "script is missing"),
            ("http+unix:a.sock", "begins with /"),
        ] {
            let error = Target::parse(url).expect_err("it is refused").to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
