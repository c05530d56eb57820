//! [`Url`]: an `http` or `https` URL, checked and normalised (RFC 3986, RFC 9110 4.2).
//!
//! Parsed from the application, the configuration and redirects. Invariants: the host is a DNS name or
//! an address; credentials are refused, since they would appear in logs; the request target is visible
//! ASCII.

use crate::error::{Error, Kind};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

/// Longer ones are refused.
const URL_MAX_BYTES: usize = 32 * 1024;

/// A URL without a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    text: String,
    https: bool,
    host: Range<usize>,
    port: u16,
    /// The start of the request target (path and query).
    target: usize,
}

impl Url {
    /// Reads an absolute URL.
    ///
    /// # Errors
    /// [`Kind::BadCall`] with the fault.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let bad = |why: &str| Error::new(Kind::BadCall, format!("{why}: {}", shown(text)));
        if text.len() > URL_MAX_BYTES {
            return Err(Error::new(Kind::BadCall, "the URL is longer than 32 KiB"));
        }
        let text_without_fragment = text.split(|&byte| byte == b'#').next().unwrap_or_default();
        let (https, rest) = scheme(text_without_fragment)
            .ok_or_else(|| bad("a URL starts with http:// or https://"))?;
        let authority_len =
            rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(authority_len);
        if authority.contains(&b'@') {
            return Err(bad("credentials in a URL end up in logs; send an Authorization header"));
        }
        let (host, port) = host_and_port(authority).ok_or_else(|| bad("the host is not valid"))?;
        let default_port = if https { 443 } else { 80 };
        let port = port.unwrap_or(default_port);

        let mut url = String::with_capacity(text.len() + 8);
        url.push_str(if https { "https://" } else { "http://" });
        let start = url.len();
        url.push_str(host);
        url[start..].make_ascii_lowercase();
        let host = start..url.len();
        if port != default_port {
            url.push(':');
            url.push_str(&port.to_string());
        }
        let target_at = url.len();
        push_target(&mut url, target).ok_or_else(|| bad("a control byte in the URL"))?;
        Ok(Self { text: url, https, host, port, target: target_at })
    }

    /// Resolves a reference against this URL (RFC 3986 5.2), such as a `Location` header.
    ///
    /// # Errors
    /// [`Kind::BadCall`] if the result is not a URL.
    ///
    /// # Examples
    ///
    /// ```
    /// use outboard_upstream::{Error, Url};
    ///
    /// let page = Url::parse(b"https://example.org/docs/guide?lang=en")?;
    /// assert_eq!(page.join(b"../img/a.png")?, Url::parse(b"https://example.org/img/a.png")?);
    /// assert!(page.join(b"ftp://example.org/").is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn join(&self, reference: &[u8]) -> Result<Self, Error> {
        let reference = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
        if scheme(reference).is_some() || has_other_scheme(reference) {
            return Self::parse(reference);
        }
        let origin = self.origin().as_bytes();
        let (path, query) = split_query(self.target().as_bytes());
        let joined = match reference {
            [] => [origin, path, query].concat(),
            [b'/', b'/', ..] => {
                let scheme: &[u8] = if self.https { b"https:" } else { b"http:" };
                [scheme, reference].concat()
            }
            [b'/', ..] => [origin, &without_dots(reference)].concat(),
            [b'?', ..] => [origin, path, reference].concat(),
            _ => {
                let folder = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
                let merged = [&path[..folder], reference].concat();
                [origin, &without_dots(&merged)].concat()
            }
        };
        Self::parse(&joined)
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port, the latter unless it is the scheme's own.
    pub fn origin(&self) -> &str {
        &self.text[..self.target]
    }

    /// `host[:port]`, as in the Host field.
    pub fn authority(&self) -> &str {
        &self.text[self.host.start..self.target]
    }

    /// Path and query; a slash at least.
    pub fn target(&self) -> &str {
        &self.text[self.target..]
    }

    /// Whether it is `https`.
    pub fn is_https(&self) -> bool {
        self.https
    }

    /// The host's name, or its address without brackets.
    pub(crate) fn host(&self) -> &str {
        self.text[self.host.clone()].trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// An excerpt of bounded length, for messages.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(200)]).escape_debug().to_string()
}

fn scheme(text: &[u8]) -> Option<(bool, &[u8])> {
    let after = |prefix: &[u8]| {
        let (head, rest) = text.split_at_checked(prefix.len())?;
        head.eq_ignore_ascii_case(prefix).then_some(rest)
    };
    after(b"http://")
        .map(|rest| (false, rest))
        .or_else(|| after(b"https://").map(|rest| (true, rest)))
}

/// Whether a reference has a scheme (RFC 3986 4.2), which is then not a supported one.
fn has_other_scheme(reference: &[u8]) -> bool {
    let end = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'));
    end.is_some_and(|end| reference[end] == b':')
}

fn host_and_port(authority: &[u8]) -> Option<(&str, Option<u16>)> {
    let authority = str::from_utf8(authority).ok()?;
    let (host, port) = match authority.strip_prefix('[') {
        Some(literal) => {
            let (address, rest) = literal.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (&authority[..address.len() + 2], rest)
        }
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            let (host, rest) = authority.split_at(end);
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if host.is_empty() || !host.bytes().all(is_name) {
                return None;
            }
            (host, rest)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        None => return None,
        Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port > 0)?)
        }
        Some(_) => return None,
    };
    Some((host, port))
}

/// Appends path and query for a request line. Bytes that people type unencoded are encoded; control
/// bytes give `None`.
fn push_target(url: &mut String, target: &[u8]) -> Option<()> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if !target.starts_with(b"/") {
        url.push('/');
    }
    for &byte in target {
        match byte {
            0x21..=0x7e => url.push(char::from(byte)),
            b' ' | 0x80.. => {
                url.push('%');
                url.push(char::from(HEX[usize::from(byte >> 4)]));
                url.push(char::from(HEX[usize::from(byte & 15)]));
            }
            _ => return None,
        }
    }
    Some(())
}

/// A target's path and its query, the latter with the question mark.
fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    let at = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    target.split_at(at)
}

/// RFC 3986 5.2.4, for a path that starts with a slash; the query is unchanged.
fn without_dots(reference: &[u8]) -> Vec<u8> {
    let (path, query) = split_query(reference);
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|&byte| byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                if segment == b".." {
                    kept.pop();
                }
                if is_last {
                    kept.push(b"");
                }
            }
            segment => kept.push(segment),
        }
    }
    let mut out = Vec::with_capacity(reference.len());
    for segment in kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    out.extend_from_slice(query);
    out
}

/// The address of a host that is a literal address.
pub(crate) fn literal_address(host: &str) -> Option<IpAddr> {
    host.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Url {
        Url::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_url_is_normalised_and_taken_apart() {
        let url = parse("HTTP://Example.ORG:80/a b?c=\u{e4}#part");
        assert_eq!(url.as_str(), "http://example.org/a%20b?c=%C3%A4");
        assert_eq!((url.origin(), url.authority()), ("http://example.org", "example.org"));
        assert_eq!((url.host(), url.port(), url.is_https()), ("example.org", 80, false));
        let url = parse("https://[::1]:8443?q");
        assert_eq!((url.host(), url.port(), url.target()), ("::1", 8443, "/?q"));
        assert_eq!(url.authority(), "[::1]:8443");
    }

    #[test]
    fn an_unsupported_url_is_rejected() {
        for text in [
            "",
            "/path",
            "ftp://a/",
            "file:///etc/passwd",
            "http://",
            "http:///x",
            "http://user:secret@host/",
            "http://a:99999/",
            "http://a:0/",
            "http://a:b/",
            "http://[::1/",
            "http://[x]/",
            "http://a b/",
            "http://\u{e4}.example/",
            "http://a/\r\nX: y",
            "http://a%2eb/",
            "http://a\\@b/",
        ] {
            let error = Url::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind, Kind::BadCall, "{text:?}");
        }
    }

    #[test]
    fn references_are_followed_as_the_rfc_says() {
        let base = parse("http://a/b/c/d?q");
        for (reference, expected) in [
            ("g", "http://a/b/c/g"),
            ("./g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g/x", "http://g/x"),
            ("?y", "http://a/b/c/d?y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("", "http://a/b/c/d?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../../../g", "http://a/g"),
            ("https://h:443/i#j", "https://h/i"),
        ] {
            assert_eq!(base.join(reference.as_bytes()).unwrap().as_str(), expected, "{reference}");
        }
        assert!(base.join(b"javascript:alert(1)").is_err());
        assert!(base.join(b"file:///etc/passwd").is_err());
    }
}
