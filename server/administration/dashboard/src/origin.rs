//! [`Source`]: from which page and under which name a request came.
//!
//! Checked before anything else. A page of another site can have a browser send requests to a local address:
//! directly, or by a name of its own that it lets resolve to this address (DNS rebinding). Invariant: neither
//! gets data, nor changes anything.

use std::net::IpAddr;

/// See the module. The fields are those of the request's head.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    /// Host.
    pub host: &'a [u8],
    /// Origin (RFC 6454).
    pub origin: Option<&'a [u8]>,
    /// Sec-Fetch-Site (Fetch Metadata), which scripts cannot set.
    pub fetch_site: Option<&'a [u8]>,
    /// Sec-Fetch-Mode.
    pub fetch_mode: Option<&'a [u8]>,
    /// Whether the method is GET or HEAD.
    pub is_read: bool,
}

impl Source<'_> {
    /// Whether a browser has sent it. Others may leave out all of these fields.
    pub fn is_browser(&self) -> bool {
        self.origin.is_some() || self.fetch_site.is_some()
    }

    /// Whether it was sent to this server by name, and by no other site's page. A link of another page may
    /// open the dashboard: what it shows does not get to that page.
    pub fn is_own(&self, names: &[String]) -> bool {
        let is_opened = self.is_read && self.fetch_mode == Some(b"navigate");
        is_own_host(self.host, names) && (is_opened || self.is_of_own_page())
    }

    fn is_of_own_page(&self) -> bool {
        let is_own = |origin: &[u8]| {
            let rest = origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://"));
            rest.is_some_and(|authority| authority.eq_ignore_ascii_case(self.host))
        };
        let site = self.fetch_site;
        self.origin.is_none_or(is_own)
            && site.is_none_or(|site| site == b"same-origin" || site == b"none")
    }
}

/// Whether a Host field names this server: by an address, as `localhost`, or by a configured name. Names that
/// an attacker owns are neither.
fn is_own_host(host: &[u8], names: &[String]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let has_port = port.strip_prefix(':').is_some_and(is_port);
        return (port.is_empty() || has_port) && address.parse::<IpAddr>().is_ok();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let is_own = name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|own| own.eq_ignore_ascii_case(name));
    is_own && is_port(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_refused() {
        let names = ["ops.example".to_owned()];
        for host in [
            "127.0.0.1:80",
            "[::1]:8080",
            "[::1]",
            "localhost",
            "LOCALHOST:1",
            "ops.example:9",
            "10.0.0.1",
        ] {
            assert!(is_own_host(host.as_bytes(), &names), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "a:b:c",
            "[::1]evil.example",
            "[evil.example]",
            "[::1",
            "127.0.0.1:80@evil.example",
            "xops.example",
        ] {
            assert!(!is_own_host(host.as_bytes(), &names), "{host}");
        }
        assert!(!is_own_host(b"\xff", &names));
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let program = Source { host: b"127.0.0.1:80", is_read: true, ..Source::default() };
        assert!(program.is_own(&[]) && !program.is_browser());
        let of = |origin, fetch_site| Source { origin, fetch_site, ..program };
        assert!(of(Some(b"http://127.0.0.1:80"), Some(b"same-origin")).is_own(&[]));
        assert!(of(None, Some(b"none")).is_own(&[]), "an address that was typed");
        for (origin, site) in [
            (Some(&b"http://127.0.0.1:81"[..]), None),
            (Some(&b"null"[..]), None),
            (Some(&b"http://evil.example"[..]), Some(&b"same-origin"[..])),
            (None, Some(&b"cross-site"[..])),
            (None, Some(&b"same-site"[..])),
        ] {
            let source = of(origin, site);
            assert!(source.is_browser() && !source.is_own(&[]), "{origin:?} {site:?}");
        }
    }

    #[test]
    fn a_link_of_another_site_opens_the_page_and_posts_nothing() {
        let link = Source {
            host: b"localhost:80",
            fetch_site: Some(b"cross-site"),
            fetch_mode: Some(b"navigate"),
            is_read: true,
            ..Source::default()
        };
        assert!(link.is_own(&[]));
        assert!(!Source { is_read: false, ..link }.is_own(&[]));
        assert!(!Source { host: b"evil.example", ..link }.is_own(&[]), "by a name of its own");
    }
}
