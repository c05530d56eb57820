//! [`Templates`]: requests that the gateway has routed to the script, by host and path.
//!
//! Owned by [`super::Direct`]. Another request for the same host and path has the same route: only its method, query,
//! fields and body differ, by which no route of such an app is decided. Invariants: a template is used for
//! [`TEMPLATE_MS`] and then the gateway decides again, since a file may have come; they are few.

use outboard_http1::RequestHead;
use outboard_ring::direct::{Greeting, TEMPLATE_MS};
use outboard_ring::request::{Field, Fixed, RequestParts, RequestView, encode};
use std::collections::HashMap;

/// Templates at a time.
const MAX_TEMPLATES: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Templates {
    /// By host and path as received, with a space between them.
    by_target: HashMap<Vec<u8>, Template>,
    key: Vec<u8>,
}

#[derive(Debug)]
struct Template {
    frame: Vec<u8>,
    until_us: u64,
}

fn path(target: &[u8]) -> &[u8] {
    target.split(|&byte| byte == b'?').next().unwrap_or_default()
}

/// Sixteen hexadecimal digits, as the gateway writes ids.
fn hex(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    std::array::from_fn(|at| DIGITS[(number >> (60 - 4 * at)) as usize & 15])
}

impl Templates {
    /// Learns from a request of the gateway, which has come now.
    pub(crate) fn learn(&mut self, frame: &[u8], now_us: u64) {
        let Ok(view) = RequestView::decode(frame) else { return };
        let is_host = |name: &[u8]| name.eq_ignore_ascii_case(b"host");
        let mut hosts = view.headers().filter(|(name, _)| is_host(name));
        let (Some((_, host)), None) = (hosts.next(), hosts.next()) else { return };
        let key = [host, b" ", path(view.field(Field::Uri))].concat();
        if self.by_target.len() >= MAX_TEMPLATES && !self.by_target.contains_key(&key) {
            self.by_target.clear();
        }
        let until_us = now_us + TEMPLATE_MS * 1_000;
        self.by_target.insert(key, Template { frame: frame.to_vec(), until_us });
    }

    /// Encodes the frame of a request of a direct connection, if there is a template.
    pub(super) fn apply(
        &mut self,
        (head, input): (&RequestHead, &[u8]),
        client: &Greeting,
        now_us: u64,
        frame: &mut Vec<u8>,
    ) -> bool {
        let Some(host) = head.host(input) else { return false };
        self.key.clear();
        self.key.extend_from_slice(host);
        self.key.push(b' ');
        self.key.extend_from_slice(head.path(input));
        let Some(template) = self.by_target.get(&self.key) else { return false };
        if template.until_us < now_us {
            self.by_target.remove(&self.key);
            return false;
        }
        let Ok(view) = RequestView::decode(&template.frame) else { return false };
        let request_id = hex(client.request_id);
        let mut fields = view.fields();
        for (field, value) in [
            (Field::Method, head.method(input)),
            (Field::Uri, head.target(input)),
            (Field::Query, head.query(input).unwrap_or_default()),
            (Field::Protocol, b"HTTP/1.1"),
            (Field::ContentType, head.header(input, b"content-type").unwrap_or_default()),
            (Field::RemoteAddr, client.remote_addr.as_bytes()),
            (Field::ServerAddr, client.server_addr.as_bytes()),
            (Field::RequestId, &request_id),
        ] {
            fields[field as usize] = value;
        }
        let content_length = match head.body() {
            outboard_http1::BodyFraming::Length(bytes) => Some(bytes),
            _ => None,
        };
        let fixed = Fixed {
            content_length,
            received_us: now_us,
            remote_port: client.remote_port,
            server_port: client.server_port,
            ..Fixed::default()
        };
        frame.clear();
        let (headers, params) = (head.headers(input), view.params());
        encode(RequestParts { fixed, fields, headers, params }, frame);
        true
    }
}
