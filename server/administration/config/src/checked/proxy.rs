//! Routes that are proxied to another server.

use super::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, PathPattern};

/// A route that is proxied to another server.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Paths to proxy, below the app's prefix.
    pub path: PathPattern,
    /// Where its requests are sent.
    pub upstream: ProxyTarget,
    /// Whether the route is reachable only through `X-Accel-Redirect`.
    pub is_internal: bool,
    /// Whether the client's `Host` header is sent to the server.
    pub preserves_host: bool,
    /// Maximum time to connect.
    pub connect_timeout_ms: u64,
    /// Maximum time between two reads from the server.
    pub timeout_ms: u64,
    /// Whether the request body is read completely before the server is contacted.
    pub buffers_request: bool,
    /// Whether a response is buffered for a slow client.
    pub buffers_response: bool,
    /// Maximum idle time of a WebSocket connection.
    pub tunnel_timeout_ms: u64,
    /// Whether the certificate of an `https` server is verified.
    pub verifies: bool,
    /// Where copies of its requests are sent.
    pub mirror: Option<Mirror>,
}

/// Where the requests of a route are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyTarget {
    /// The URL that is prepended to the request's path: scheme, host, port and an optional path,
    /// without a trailing slash.
    Url(String),
    /// The servers of a group.
    Group {
        /// Its name.
        name: String,
        /// The path that is prepended, without a trailing slash.
        path: String,
    },
}

/// Where copies of requests are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// The URL that is prepended to the request's path.
    pub upstream: String,
    /// The share of requests in percent.
    pub percent: u32,
    /// Maximum copies in progress for each thread.
    pub max_requests: u32,
    /// Maximum time of a copy.
    pub timeout_ms: u64,
}

pub(super) fn proxies(raw: &raw::App, place: &[&str], context: &mut Context<'_>) -> Vec<Proxy> {
    let mut all = Vec::new();
    for (index, one) in raw.proxy.iter().enumerate() {
        let index = index.to_string();
        let at = [place, &["proxy", &index]].concat();
        let target = target(&one.upstream.0).unwrap_or_else(|fault| {
            context.value(&[&at[..], &["upstream"]].concat(), Kind::BadValue, fault);
            ProxyTarget::Url(String::new())
        });
        let mirror = one.mirror.as_ref().map(|mirror| {
            if let Err(fault) = check_url(&mirror.upstream.0) {
                let at = [&at[..], &["mirror", "upstream"]].concat();
                context.value(&at, Kind::BadValue, fault);
            }
            Mirror {
                upstream: mirror.upstream.0.trim_end_matches('/').to_owned(),
                percent: mirror.share.0,
                max_requests: mirror.max_requests,
                timeout_ms: mirror.timeout.0,
            }
        });
        all.push(Proxy {
            path: one.path.clone(),
            upstream: target,
            is_internal: one.internal,
            preserves_host: one.preserve_host,
            connect_timeout_ms: one.connect_timeout.0,
            timeout_ms: one.timeout.0,
            buffers_request: one.request_buffering,
            buffers_response: one.response_buffering,
            tunnel_timeout_ms: one.tunnel_timeout.0,
            verifies: one.verify,
            mirror,
        });
    }
    all
}

/// A URL, or the name of a group with a path.
pub(super) fn target(text: &str) -> Result<ProxyTarget, Fault> {
    let (name, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.bytes().all(is_name) {
        check_url(&format!("http://{text}"))?;
        let path = path.trim_end_matches('/').to_owned();
        return Ok(ProxyTarget::Group { name: name.to_owned(), path });
    }
    check_url(text)?;
    Ok(ProxyTarget::Url(text.trim_end_matches('/').to_owned()))
}

/// Checks the URL of a server.
pub(super) fn check_url(upstream: &str) -> Result<(), Fault> {
    const HINT: &str = "write a URL such as \"http://127.0.0.1:3000\"";
    let rest = upstream.strip_prefix("http://").or(upstream.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(Fault::new("it starts with neither http:// nor https://").hint(HINT));
    };
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return Err(Fault::new("the host is missing, or the URL contains credentials").hint(HINT));
    }
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#{}\\\"<>^`|".contains(&byte);
    if !rest.bytes().all(is_plain) {
        return Err(Fault::new("it has a query, a fragment or invalid characters").hint(HINT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_url_or_a_name_with_a_path() {
        let url = |text: &str| Ok(ProxyTarget::Url(text.to_owned()));
        let group = |name: &str, path: &str| {
            Ok(ProxyTarget::Group { name: name.to_owned(), path: path.to_owned() })
        };
        assert_eq!(target("http://a:80/b/"), url("http://a:80/b"));
        assert_eq!(target("api"), group("api", ""));
        assert_eq!(target("api-2/v1/"), group("api-2", "/v1"));
        for bad in ["", "/v1", "a:80", "a.example", "unix:/run/a.sock", "api/?q"] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_upstream_is_a_scheme_a_host_and_an_optional_path() {
        for good in
            ["http://a", "https://a.example:8443/", "http://[::1]:80/base/x", "http://a/%20"]
        {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in [
            "a:80",
            "ftp://a",
            "http://",
            "http:///x",
            "http://u:p@a",
            "http://a/?q",
            "http://a/ b",
        ] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }
}
