//! A visitor of one site: keeps the connection and the cookies, follows redirects when asked.

use crate::{Connection, Request, Response};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A visitor; cookies are kept by name alone, which is enough for one host.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    host: String,
    connection: Option<Connection>,
    cookies: BTreeMap<String, String>,
}

impl Client {
    /// A visitor without cookies.
    pub fn new(address: SocketAddr) -> Client {
        Client { address, host: address.to_string(), connection: None, cookies: BTreeMap::new() }
    }

    /// Reaches the site under this name instead of its address.
    pub(crate) fn named(mut self, host: &str) -> Client {
        self.host = host.to_owned();
        self
    }

    /// Sends a request with the cookies so far and returns the answer, redirects included.
    #[track_caller]
    pub fn send(&mut self, request: &Request) -> Response {
        let request = self.with_cookies(request);
        let bytes = request.to_bytes(&self.host);
        let response = match self.exchange(&bytes, &request.method) {
            Ok(response) => response,
            Err(error) => panic!("{} {}: {error}", request.method, request.target),
        };
        self.keep_cookies(&response);
        response
    }

    /// Sends a request and follows redirects within the site, at most ten.
    #[track_caller]
    pub fn follow(&mut self, request: &Request) -> Response {
        let mut response = self.send(request);
        for _ in 0..10 {
            let Some(target) = self.redirect_of(&response) else { return response };
            response = self.send(&Request::get(&target));
        }
        panic!("{} redirects without end", request.target);
    }

    /// Gets a page, following redirects.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> Response {
        self.follow(&Request::get(target))
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    /// All cookies, by name.
    pub fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cookies.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The absolute URL of a target on this site.
    pub fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.host)
    }

    /// The path on this site that a redirect leads to, if it is one.
    pub(crate) fn redirect_of(&self, response: &Response) -> Option<String> {
        if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let location = response.header("location")?;
        let origin = format!("http://{}", self.host);
        let path = location.strip_prefix(&origin).unwrap_or(location);
        let path = path.split('#').next().unwrap_or(path);
        path.starts_with('/').then(|| path.to_owned())
    }

    fn exchange(&mut self, bytes: &[u8], method: &str) -> std::io::Result<Response> {
        if let Some(mut connection) = self.connection.take() {
            // A kept connection may have been closed meanwhile (RFC 9112, section 9.3.1): try anew.
            let answer = connection.send(bytes).and_then(|()| connection.response_to(method));
            if let Ok(response) = answer {
                self.keep(connection, &response);
                return Ok(response);
            }
        }
        let mut connection = Connection::open(self.address);
        // A server may answer and close before it has read a body that it does not want.
        let sent = connection.send(bytes);
        let response =
            connection.response_to(method).map_err(|error| sent.err().unwrap_or(error))?;
        self.keep(connection, &response);
        Ok(response)
    }

    fn keep(&mut self, connection: Connection, response: &Response) {
        let closes = response.all("connection").any(|value| value.eq_ignore_ascii_case("close"));
        if !closes && response.framing != crate::Framing::Close {
            self.connection = Some(connection);
        }
    }

    fn with_cookies(&self, request: &Request) -> Request {
        if self.cookies.is_empty() || request.has("cookie") {
            return request.clone();
        }
        let pairs: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        request.clone().header("Cookie", &pairs.join("; "))
    }

    fn keep_cookies(&mut self, response: &Response) {
        for cookie in response.all("set-cookie") {
            let pair = cookie.split(';').next().unwrap_or_default();
            let Some((name, value)) = pair.split_once('=') else { continue };
            let gone = value.is_empty() || value == "deleted" || cookie.contains("Max-Age=0");
            if gone || value == "%20" || value == "+" {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }
}
