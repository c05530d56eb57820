//! [`Request`]: a request to an upstream, and its encoding.
//!
//! Built by the caller; the client renders its head for each attempt and each redirect. Invariant: the
//! client alone decides framing and connection fields, whatever the caller's headers (RFC 9110 7.6.1); no
//! header can end a line.

use crate::account::Account;
use crate::endpoint::{self, Endpoint};
use crate::error::{Error, Kind};
use crate::interim::Interims;
use crate::url::Url;
use outboard_http1::{
    Method, write_content_length, write_head_end, write_header, write_request_line,
};
use std::rc::Rc;
use std::sync::Arc;

/// A request and its bounds.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET` and so on; a token.
    pub method: Vec<u8>,
    /// The target.
    pub url: Url,
    /// The caller's header fields.
    pub headers: RequestHeaders,
    /// The body.
    pub body: Vec<u8>,
    /// Longest time for name resolution, connection and TLS.
    pub connect_timeout_ms: u64,
    /// Longest time for the whole exchange.
    pub timeout_ms: u64,
    /// Largest body of the response, after decoding.
    pub max_body_bytes: u64,
    /// The most redirects that are followed; with 0 a redirect is an ordinary response.
    pub max_redirects: u16,
    /// Further attempts of an idempotent request whose connection failed.
    pub retries: u8,
    /// Check the server's certificate.
    pub verify: bool,
    /// Decode gzip, deflate, br and zstd bodies, unless the caller sends an `Accept-Encoding` itself.
    pub decompress: bool,
    /// Offer HTTP/2 to `https` servers.
    pub http2: bool,
    /// The protocol that the connection is to be switched to (RFC 9110 7.8); `101` is a final response then.
    pub switch_to: Option<Vec<u8>>,
    /// Add `User-Agent` and `Accept` if the caller has none.
    pub introduces_itself: bool,
    /// Receives interim responses; `None` discards them.
    pub interims: Option<Rc<Interims>>,
    /// The account that the request counts for.
    pub account: Option<Arc<Account>>,
    /// The server; `None`: the one of the URL.
    pub endpoint: Option<Arc<Endpoint>>,
    /// Bytes at the start of the connection, which is then not used for another request.
    pub preface: Vec<u8>,
    /// Whether the request has a connection of its own.
    pub is_alone: bool,
    /// The only ports that it may lead to, by redirects as well; `None`: all.
    pub ports: Option<Arc<[u16]>>,
}

/// The framing of a streamed body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// This number of bytes will be written.
    Known(u64),
    /// Chunks.
    Chunked,
}

impl Request {
    /// # Errors
    /// [`Kind::BadCall`]: the URL has a port that the request may not lead to.
    pub(crate) fn check_port(&self) -> Result<(), Error> {
        let port = self.url.port();
        match &self.ports {
            Some(ports) if !ports.contains(&port) => {
                let message = format!(
                    "the sandbox of the app permits no connection to port {port}: add it to `connect_ports`"
                );
                Err(Error::new(Kind::BadCall, message))
            }
            _ => Ok(()),
        }
    }

    /// A GET with default bounds.
    pub fn get(url: Url) -> Self {
        Self {
            method: b"GET".to_vec(),
            url,
            headers: RequestHeaders::default(),
            body: Vec::new(),
            connect_timeout_ms: 5_000,
            timeout_ms: 30_000,
            max_body_bytes: 16 << 20,
            max_redirects: 5,
            retries: 1,
            verify: true,
            decompress: true,
            http2: true,
            switch_to: None,
            introduces_itself: true,
            interims: None,
            account: None,
            endpoint: None,
            preface: Vec::new(),
            ports: None,
            is_alone: false,
        }
    }

    /// The name of the server.
    pub(crate) fn server(&self) -> &str {
        endpoint::name(self.endpoint.as_deref(), &self.url)
    }

    /// Whether other requests may use its connection.
    pub(crate) fn shares_connection(&self) -> bool {
        self.preface.is_empty() && !self.is_alone
    }

    /// Whether it may be sent twice (RFC 9110 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(&self.method[..], b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE" | b"TRACE")
    }

    pub(crate) fn method_kind(&self) -> Method {
        Method::of(&self.method)
    }

    /// Whether the body is decoded, which a caller with an `Accept-Encoding` does not expect.
    pub(crate) fn decodes(&self) -> bool {
        self.decompress && !self.headers.has(b"accept-encoding")
    }

    /// Appends the HTTP/1.1 head; `streamed` if the body is not in the request.
    pub(crate) fn write_head(
        &self,
        out: &mut Vec<u8>,
        streamed: Option<BodyLength>,
    ) -> Result<(), Error> {
        let method = &self.method[..];
        write_request_line(out, method, self.url.target().as_bytes())
            .map_err(|invalid| Error::new(Kind::BadCall, invalid.to_string()).because(invalid))?;
        if !self.headers.has(b"host") {
            out.extend_from_slice(b"Host: ");
            out.extend_from_slice(self.url.authority().as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&self.headers.lines);
        for (name, value) in self.own_headers() {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(protocol) = &self.switch_to {
            write_header(out, b"Connection", b"upgrade")
                .and_then(|()| write_header(out, b"Upgrade", protocol))
                .map_err(|invalid| {
                    Error::new(Kind::BadCall, invalid.to_string()).because(invalid)
                })?;
        }
        // RFC 9110 8.6: a method with a meaning for content states that it is empty.
        let says_none = matches!(method, b"POST" | b"PUT" | b"PATCH");
        match streamed {
            Some(BodyLength::Chunked) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Some(BodyLength::Known(length)) => write_content_length(out, length),
            None if self.body.is_empty() && !says_none => {}
            None => write_content_length(out, self.body.len() as u64),
        }
        write_head_end(out);
        Ok(())
    }

    /// Default fields of every request.
    pub(crate) fn own_headers(&self) -> impl Iterator<Item = (&'static [u8], &'static [u8])> {
        const AGENT: &[u8] = concat!("outboard/", env!("CARGO_PKG_VERSION")).as_bytes();
        const CODINGS: &[u8] = b"gzip, deflate, br, zstd";
        let fields: [(&[u8], &[u8]); 2] = [(b"User-Agent", AGENT), (b"Accept", b"*/*")];
        let own = fields.into_iter();
        let own = own.filter(|(name, _)| self.introduces_itself && !self.headers.has(name));
        let codings: (&[u8], &[u8]) = (b"Accept-Encoding", CODINGS);
        own.chain(self.decodes().then_some(codings))
    }

    /// Changes the request for a redirect with this status to `url` (RFC 9110 15.4).
    pub(crate) fn redirect(&mut self, status: u16, url: Url) {
        let becomes_get = match status {
            303 => self.method != b"HEAD",
            301 | 302 => self.method == b"POST",
            _ => false,
        };
        if becomes_get {
            self.method = b"GET".to_vec();
            self.body = Vec::new();
            self.headers.remove(|name| name[..name.len().min(8)].eq_ignore_ascii_case(b"content-"));
        }
        if url.origin() != self.url.origin() {
            self.headers.remove(is_bound_to_origin);
        }
        self.url = url;
    }
}

/// Credentials and the Host of the first request.
fn is_bound_to_origin(name: &[u8]) -> bool {
    const BOUND: [&[u8]; 4] = [b"authorization", b"cookie", b"proxy-authorization", b"host"];
    BOUND.iter().any(|bound| name.eq_ignore_ascii_case(bound))
}

/// Header fields of a request, validated.
#[derive(Debug, Clone, Default)]
pub struct RequestHeaders {
    lines: Vec<u8>,
}

impl RequestHeaders {
    /// Reads lines `Name: value`, each ended by a newline.
    ///
    /// # Errors
    /// [`Kind::BadCall`] for an invalid header field.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let mut headers = Self { lines: Vec::with_capacity(text.len() + 16) };
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let Some(colon) = line.iter().position(|&byte| byte == b':') else {
                let shown = line.escape_ascii();
                return Err(Error::new(Kind::BadCall, format!("not a header: {shown}")));
            };
            headers.add(&line[..colon], line[colon + 1..].trim_ascii())?;
        }
        Ok(headers)
    }

    /// Adds a field; connection fields are ignored.
    ///
    /// # Errors
    /// [`Kind::BadCall`] for an invalid header field.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
        if is_of_the_connection(name) {
            return Ok(());
        }
        write_header(&mut self.lines, name, value).map_err(|invalid| {
            Error::new(Kind::BadCall, format!("{invalid}: {}", name.escape_ascii()))
                .because(invalid)
        })
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines.split(|&byte| byte == b'\n').filter_map(split_line)
    }

    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.iter().any(|(theirs, _)| theirs.eq_ignore_ascii_case(name))
    }

    /// Removes the fields whose names are `unwanted`.
    pub fn remove(&mut self, unwanted: impl Fn(&[u8]) -> bool) {
        let lines = self.lines.split_inclusive(|&byte| byte == b'\n');
        let kept = lines.filter(|line| !split_line(line).is_some_and(|(name, _)| unwanted(name)));
        self.lines = kept.collect::<Vec<_>>().concat();
    }
}

fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Whether a Connection field with this value names the field (RFC 9110 7.6.1).
pub(crate) fn is_nominated(connection: &[u8], name: &[u8]) -> bool {
    let mut names = connection.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    names.any(|nominated| nominated.eq_ignore_ascii_case(name))
}

/// Framing and hop-by-hop fields (RFC 9110 7.6.1).
pub(crate) fn is_of_the_connection(name: &[u8]) -> bool {
    let candidates: &[&[u8]] = match name.len() {
        2 => &[b"te"],
        6 => &[b"expect"],
        7 => &[b"trailer", b"upgrade"],
        10 => &[b"connection", b"keep-alive"],
        14 => &[b"content-length"],
        16 => &[b"proxy-connection"],
        17 => &[b"transfer-encoding"],
        _ => &[],
    };
    candidates.iter().any(|candidate| name.eq_ignore_ascii_case(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, headers: &[u8]) -> Request {
        let mut request = Request::get(Url::parse(url.as_bytes()).unwrap());
        request.headers = RequestHeaders::parse(headers).unwrap();
        request
    }

    fn head(request: &Request) -> String {
        let mut out = Vec::new();
        request.write_head(&mut out, None).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_head_has_the_caller_s_fields_and_what_is_missing() {
        let mut redirected =
            request("http://a:81/x?y", b"X-A: 1\nAccept: text/html\nContent-Length: 9\n");
        assert_eq!(
            head(&redirected),
            "GET /x?y HTTP/1.1\r\nHost: a:81\r\nX-A: 1\r\nAccept: text/html\r\n\
             User-Agent: outboard/0.1.0\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\r\n"
        );
        redirected.method = b"POST".to_vec();
        redirected.decompress = false;
        assert!(head(&redirected).ends_with("outboard/0.1.0\r\nContent-Length: 0\r\n\r\n"));
    }

    #[test]
    fn a_call_cannot_split_the_request() {
        for headers in [&b"X: a\rb\n"[..], b"no colon\n", b"Bad Name: x\n", b": x\n", b"X: a\0\n"] {
            assert_eq!(RequestHeaders::parse(headers).unwrap_err().kind, Kind::BadCall);
        }
        let mut redirected = request("http://a/", b"");
        redirected.method = b"GET / HTTP/1.1\r\nX:".to_vec();
        assert_eq!(redirected.write_head(&mut Vec::new(), None).unwrap_err().kind, Kind::BadCall);
    }

    #[test]
    fn a_redirect_to_another_origin_takes_no_credentials_along() {
        let headers = b"Authorization: Bearer x\nCookie: a=b\nHost: other\nX-A: 1\n";
        for (to, kept) in [
            ("http://a/there", &["authorization", "cookie", "host", "x-a"][..]),
            ("http://a:81/", &["x-a"]),
            ("https://a/", &["x-a"]),
            ("http://b/", &["x-a"]),
        ] {
            let mut redirected = request("http://a/", headers);
            redirected.redirect(302, Url::parse(to.as_bytes()).unwrap());
            for name in ["authorization", "cookie", "host", "x-a"] {
                assert_eq!(
                    redirected.headers.has(name.as_bytes()),
                    kept.contains(&name),
                    "{to} {name}"
                );
            }
        }
    }

    #[test]
    fn a_redirect_rewrites_methods_as_the_rfc_says() {
        for (status, method, after) in [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (302, "PUT", "PUT"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (307, "POST", "POST"),
            (308, "POST", "POST"),
        ] {
            let mut redirected = request("http://a/", b"Content-Type: text/plain\nX-A: 1\n");
            redirected.method = method.into();
            redirected.body = b"body".to_vec();
            redirected.redirect(status, Url::parse(b"http://a/b").unwrap());
            assert_eq!(redirected.method, after.as_bytes(), "{status} {method}");
            let dropped = method != after;
            assert_eq!(redirected.body.is_empty(), dropped);
            assert_eq!(redirected.headers.has(b"content-type"), !dropped);
            assert!(redirected.headers.has(b"x-a"));
        }
    }
}
