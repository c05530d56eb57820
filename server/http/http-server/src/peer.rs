//! [`PeerInfo`]: the peer of a connection, and [`Forwarded`]: the client that a trusted proxy names.
//!
//! Created per connection and, behind a trusted proxy, per request. Invariant: forwarding headers of
//! untrusted peers are ignored; they are forwarded neither to other servers nor to scripts behind
//! proxies.

use crate::proxy_protocol::Addresses;
use crate::transport::Transport;
use outboard_config::Forwarding;
use outboard_http1::{RequestHead, is_valid_authority, split_host_port};
use outboard_reactor::Peer;
use outboard_tls::{ClientCertificate, SessionFacts};
use std::cell::OnceCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// The addresses of a connection, in text for CGI variables and logs.
#[derive(Debug, Clone)]
pub struct PeerInfo {
    /// The peer.
    pub address: Peer,
    /// The peer's IP address in text, or `unix:`.
    pub text: Rc<str>,
    local: OnceCell<(Rc<str>, u16)>,
    /// What the TLS handshake has negotiated; `None` without TLS.
    pub tls: Option<Rc<SessionFacts>>,
}

impl PeerInfo {
    /// A peer.
    pub fn new(peer: Peer) -> Self {
        let text = match peer {
            Peer::Tcp(address) => address.ip().to_canonical().to_string().into(),
            Peer::Unix => "unix:".into(),
        };
        Self { address: peer, text, local: OnceCell::new(), tls: None }
    }

    /// The client of a proxy for TCP.
    pub(crate) fn behind_proxy(addresses: &Addresses) -> Self {
        let peer = Self::new(Peer::Tcp(addresses.source));
        let to = addresses.destination;
        let local = OnceCell::from((to.ip().to_canonical().to_string().into(), to.port()));
        Self { local, ..peer }
    }

    /// For another thread. What TLS has negotiated stays behind.
    pub(crate) fn into_moved(self) -> MovedPeer {
        let local = self.local.into_inner().map(|(address, port)| (address.as_ref().into(), port));
        MovedPeer { address: self.address, local }
    }

    /// Address and port that the client connected to.
    pub fn local(&self, transport: &Transport) -> (&str, u16) {
        let (address, port) = self.local.get_or_init(|| match transport.local_address() {
            Some(local) => (local.ip().to_canonical().to_string().into(), local.port()),
            None => ("".into(), 0),
        });
        (address, *port)
    }

    /// The peer's port; 0 on a Unix socket.
    pub fn port(&self) -> u16 {
        match self.address {
            Peer::Tcp(address) => address.port(),
            Peer::Unix => 0,
        }
    }

    /// The peer's IP address; `None` on a Unix socket.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.address {
            Peer::Tcp(address) => Some(address.ip().to_canonical()),
            Peer::Unix => None,
        }
    }

    /// Whether the peer has authenticated itself by a certificate.
    pub fn has_valid_certificate(&self) -> bool {
        self.tls.as_ref().is_some_and(|facts| facts.client == ClientCertificate::Valid)
    }

    /// Whether the peer is a trusted proxy.
    pub fn is_trusted(&self, forwarding: &Forwarding) -> bool {
        forwarding.trusts(self.ip())
    }

    /// The peer's address if it is on this machine, so that it could be one of our own workers.
    pub fn local_peer(&self, transport: &Transport) -> Option<SocketAddr> {
        let Peer::Tcp(address) = self.address else { return None };
        let ip = address.ip().to_canonical();
        let same = ip.is_loopback() || *self.text == *self.local(transport).0;
        same.then_some(SocketAddr::new(ip, address.port()))
    }
}

/// The addresses of a connection without TLS, on the way to another thread.
#[derive(Debug)]
pub(crate) struct MovedPeer {
    address: Peer,
    local: Option<(Box<str>, u16)>,
}

impl MovedPeer {
    /// The same on the thread where it has arrived.
    pub(crate) fn into_info(self) -> PeerInfo {
        let local = self.local.map(|(address, port)| (Rc::from(address), port));
        PeerInfo {
            local: local.map_or_else(OnceCell::new, OnceCell::from),
            ..PeerInfo::new(self.address)
        }
    }
}

/// Properties of the request that a trusted proxy reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// The client's IP address.
    pub client: Option<Box<str>>,
    /// Whether the client used TLS.
    pub https: bool,
    /// The host that the client requested.
    pub host: Option<Vec<u8>>,
    /// The port that the client connected to.
    pub port: Option<u16>,
    /// The reported host is invalid: the request is refused, as for an invalid Host.
    pub has_bad_host: bool,
}

impl Forwarded {
    /// Reads the headers that `forwarding` trusts from this peer.
    pub fn read(
        forwarding: &Forwarding,
        ends: &PeerInfo,
        head: &RequestHead,
        input: &[u8],
    ) -> Self {
        if !forwarding.trusts(ends.ip()) {
            return Self::default();
        }
        // The nearest proxy appends: the last value of the last line is its own.
        let believed = |wanted: bool, name: &[u8]| {
            let lines = head.headers(input).filter(|(theirs, _)| theirs.eq_ignore_ascii_case(name));
            let said = lines.filter(|_| wanted).last()?.1.rsplit(|&byte| byte == b',').next()?;
            Some(said.trim_ascii()).filter(|said| !said.is_empty())
        };
        let chain: Vec<&[u8]> = if forwarding.client_address {
            head.headers(input)
                .filter(|(name, _)| name.eq_ignore_ascii_case(b"x-forwarded-for"))
                .flat_map(|(_, value)| value.split(|&byte| byte == b','))
                .collect()
        } else {
            Vec::new()
        };
        let host = believed(forwarding.host, b"x-forwarded-host");
        let scheme = believed(forwarding.scheme, b"x-forwarded-proto");
        let https = scheme.is_some_and(|value| value.eq_ignore_ascii_case(b"https"));
        // A proxy that does not set the port passes on what the client claims, as for the host.
        let port = believed(forwarding.host, b"x-forwarded-port");
        let port = port.and_then(|port| std::str::from_utf8(port).ok()?.parse().ok());
        let port = port.filter(|port| *port > 0).or_else(|| split_host_port(host?).1);
        Self {
            client: rightmost_untrusted(forwarding, &chain),
            https,
            port: port.or_else(|| scheme.map(|_| if https { 443 } else { 80 })),
            has_bad_host: host.is_some_and(|host| !is_valid_authority(host)),
            host: host.map(<[u8]>::to_vec),
        }
    }
}

/// Each proxy appends its peer, so the chain is read from the right: the first address that is not a
/// trusted proxy is the client. An invalid entry ends the chain.
fn rightmost_untrusted(forwarding: &Forwarding, chain: &[&[u8]]) -> Option<Box<str>> {
    let mut client = None;
    for entry in chain.iter().rev() {
        let Some(ip) = parse_entry(entry) else { break };
        client = Some(ip.to_string().into());
        if !forwarding.trusts(Some(ip)) {
            break;
        }
    }
    client
}

fn parse_entry(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let address = text.parse::<SocketAddr>().map(|address| address.ip());
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    address.or_else(|_| bare.parse()).ok().map(|ip| ip.to_canonical())
}

/// Whether a header claims what only a proxy knows: the client's address, host or scheme.
pub fn is_claim(name: &[u8]) -> bool {
    let start = name.get(..X_FORWARDED.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(X_FORWARDED))
        || CLAIMS.iter().any(|claim| name.eq_ignore_ascii_case(claim))
}

const X_FORWARDED: &[u8] = b"x-forwarded-";

/// Other headers that proxies and CDNs set and frameworks read.
const CLAIMS: [&[u8]; 18] = [
    b"forwarded",
    b"x-real-ip",
    b"x-client-ip",
    b"client-ip",
    b"x-cluster-client-ip",
    b"true-client-ip",
    b"cf-connecting-ip",
    b"fastly-client-ip",
    b"x-original-forwarded-for",
    b"x-original-host",
    b"x-original-url",
    b"x-rewrite-url",
    b"x-host",
    b"x-scheme",
    b"x-url-scheme",
    b"front-end-https",
    b"cf-visitor",
    b"cloudfront-forwarded-proto",
];

/// Whether a header says that a request arrived in early data, which only a proxy knows (RFC 8470 5.1).
pub fn is_early_data(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"early-data")
}

/// Whether the name is ambiguous in CGI: `X_Real_IP` and `X-Real-IP` are both `HTTP_X_REAL_IP`. nginx
/// drops such headers as well.
pub fn is_ambiguous(name: &[u8]) -> bool {
    name.contains(&b'_')
}

#[cfg(test)]
mod tests;
