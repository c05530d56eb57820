//! Blocking exchanges of one request each, for checks and for the WordPress installer.
//!
//! Load is not sent from here but by [`crate::generator`].

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use outboard_http1::Method;
use outboard_http1::client::Client;

use crate::error::{Result, ResultExt};
use crate::request_spec::{HOST, RequestSpec};

/// A response with its decoded body.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The body without chunk framing.
    pub body: Vec<u8>,
}

impl Response {
    /// Where the body first differs from another; `None` when they are equal.
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let same = self.body.iter().zip(&other.body).take_while(|(a, b)| a == b).count();
        (self.body != other.body).then_some(same)
    }

    /// The surroundings of a position in the body, for an error message.
    pub fn around(&self, at: usize) -> String {
        let range = at.saturating_sub(40)..self.body.len().min(at + 80);
        let text = String::from_utf8_lossy(&self.body[range]).into_owned();
        format!("; around byte {at}: {text:?}")
    }

    /// Status, length and the beginning of the body, for an error message.
    pub fn summary(&self) -> String {
        let start = String::from_utf8_lossy(&self.body[..self.body.len().min(80)]).into_owned();
        format!("{} with {} bytes: {start:?}", self.status, self.body.len())
    }
}

/// Requests a path on a connection of its own.
pub fn get(address: SocketAddr, path: &str) -> Result<Response> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes())
}

/// Sends a request on a connection of its own.
pub fn send(address: SocketAddr, request: &RequestSpec) -> Result<Response> {
    exchange(address, &request.clone().header("Connection: close").bytes())
}

/// Sends a request on a connection of its own; returns the response and its raw head.
pub fn send_with_head(address: SocketAddr, request: &RequestSpec) -> Result<(Response, String)> {
    exchange_with_head(address, &request.clone().header("Connection: close").bytes())
}

/// The value of a header field; names are case-insensitive.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// Sends form fields to a path, on a connection of its own.
pub fn post(address: SocketAddr, path: &str, fields: &[(&str, &str)]) -> Result<Response> {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", percent_encode(value));
    let body: Vec<String> = fields.iter().map(pair).collect();
    let body = body.join("&");
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
        body.len()
    );
    exchange(address, request.as_bytes())
}

/// Sends a raw request on a connection of its own.
pub fn exchange(address: SocketAddr, request: &[u8]) -> Result<Response> {
    Ok(exchange_with_head(address, request)?.0)
}

fn exchange_with_head(address: SocketAddr, request: &[u8]) -> Result<(Response, String)> {
    let context = || format!("send a request to {address}");
    let stream = TcpStream::connect(address).context(context)?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).context(context)?;
    let mut client = Client::new(stream);
    let (head, mut incoming) = client.send(&[request], Method::Get).context(context)?;
    let mut body = Vec::new();
    incoming.read_to_end(&mut body).context(context)?;
    let text = String::from_utf8_lossy(&head.bytes).into_owned();
    Ok((Response { status: head.status, body }, text))
}

fn percent_encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
