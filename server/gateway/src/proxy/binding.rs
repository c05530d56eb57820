//! What of a request and its client decides about the server: the hash key, the sticky cookie, and the
//! header of the PROXY protocol.
//!
//! Called by [`super`] for routes with a group of servers.

use super::outgoing::Outgoing;
use crate::request::Request;
use outboard_balancer::hash;
use outboard_config::{Balance, HashKey, SendProxy};

use outboard_http_server::proxy_protocol::{Addresses, write_v1, write_v2, write_without_client};
use outboard_http1::RequestHead;
use std::net::SocketAddr;

/// Binds a request with this target, path and query.
pub(super) fn bind(outgoing: &mut Outgoing, request: &Request<'_>, target: &[u8]) {
    let Some(group) = outgoing.group().cloned() else { return };
    let rules = group.rules();
    let key =
        (rules.balance == Balance::Hash).then(|| key(request, &rules.hash_key, target)).flatten();
    let (head, input) = request.head();
    let sticky = rules.sticky.as_ref();
    let sticky = sticky.and_then(|sticky| cookie(head, input, sticky.cookie.as_bytes()));
    outgoing.bind(key, sticky.map(<[u8]>::to_vec));
    if rules.proxy_protocol != SendProxy::Off {
        let addresses = addresses(request);
        let header = &mut outgoing.request.preface;
        match (addresses, rules.proxy_protocol) {
            (Some(addresses), SendProxy::V1) => write_v1(header, &addresses),
            (Some(addresses), _) => write_v2(header, &addresses),
            (None, version) => write_without_client(header, version == SendProxy::V2),
        }
    }
}

fn key(request: &Request<'_>, key: &HashKey, target: &[u8]) -> Option<u64> {
    if *key == HashKey::Client {
        return Some(hash(request.client_address().as_bytes()));
    }
    let (head, input) = request.head();
    let value = match key {
        HashKey::Client => None,
        HashKey::Uri => Some(target),
        HashKey::Path => target.split(|&byte| byte == b'?').next(),
        HashKey::Header(name) => head.header(input, name.to_ascii_lowercase().as_bytes()),
        HashKey::Cookie(name) => cookie(head, input, name.as_bytes()),
    };
    value.map(hash)
}

/// The value of a cookie.
fn cookie<'a>(head: &'a RequestHead, input: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let fields = head.headers(input).filter(|(field, _)| field.eq_ignore_ascii_case(b"cookie"));
    let mut pairs = fields.flat_map(|(_, value)| value.split(|&byte| byte == b';'));
    pairs.find_map(|pair| pair.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
}

/// The ends of the client's connection; `None` for a client on a Unix socket.
fn addresses(request: &Request<'_>) -> Option<Addresses> {
    let client = request.client_ip()?;
    let (local, port) = request.client.peer.local(&request.client.transport);
    let destination = SocketAddr::new(local.parse().ok()?, port);
    let is_forwarded = request.forwarded.client.is_some();
    let client_port = if is_forwarded { 0 } else { request.client.peer.port() };
    Some(Addresses { source: SocketAddr::new(client, client_port), destination })
}
