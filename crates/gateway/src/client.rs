//! Who asks: the peer of the connection, or whom a trusted proxy says that it speaks for.
//!
//! Called once a connection and, behind a trusted proxy, once a request. Invariants: forwarding
//! headers of untrusted peers are never looked at; other servers are not told them, nor are the
//! scripts of an app behind proxies.

use crate::wire::Wire;
use outboard_config::Forwarding;
use outboard_http1::{RequestHead, is_valid_authority};
use outboard_reactor::Peer;
use outboard_tls::Chosen;
use std::cell::OnceCell;
use std::net::{IpAddr, SocketAddr};

/// The two ends of a connection, spelled for the CGI variables and logs.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) peer: Peer,
    pub(crate) peer_text: Box<str>,
    local: OnceCell<(Box<str>, u16)>,
    /// The certificate that the client was shown for the name that it asked for.
    pub(crate) chosen: Option<Chosen>,
}

impl Ends {
    pub(crate) fn new(peer: Peer) -> Self {
        let peer_text = match peer {
            Peer::Tcp(address) => address.ip().to_canonical().to_string().into(),
            Peer::Unix => "unix:".into(),
        };
        Self { peer, peer_text, local: OnceCell::new(), chosen: None }
    }

    /// Address and port that the client connected to; asked for once.
    pub(crate) fn local(&self, wire: &Wire) -> (&str, u16) {
        let (address, port) = self.local.get_or_init(|| match wire.local_address() {
            Some(local) => (local.ip().to_canonical().to_string().into(), local.port()),
            None => ("".into(), 0),
        });
        (address, *port)
    }

    pub(crate) fn peer_port(&self) -> u16 {
        match self.peer {
            Peer::Tcp(address) => address.port(),
            Peer::Unix => 0,
        }
    }

    /// The peer's address; one on a Unix socket has none.
    pub(crate) fn peer_ip(&self) -> Option<IpAddr> {
        match self.peer {
            Peer::Tcp(address) => Some(address.ip().to_canonical()),
            Peer::Unix => None,
        }
    }

    /// Whether the peer is one whose word about the client is believed.
    pub(crate) fn is_trusted(&self, forwarding: &Forwarding) -> bool {
        forwarding.trusts(self.peer_ip())
    }

    /// The peer's address when it is on this machine and could be one of our own workers.
    pub(crate) fn local_peer(&self, wire: &Wire) -> Option<SocketAddr> {
        let Peer::Tcp(address) = self.peer else { return None };
        let ip = address.ip().to_canonical();
        let same = ip.is_loopback() || *self.peer_text == *self.local(wire).0;
        same.then_some(SocketAddr::new(ip, address.port()))
    }
}

/// What a trusted proxy said about the request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    pub(crate) client: Option<Box<str>>,
    pub(crate) https: bool,
    pub(crate) host: Option<Vec<u8>>,
    /// What it says of the host is none: the request is refused, as with such a Host field.
    pub(crate) has_bad_host: bool,
}

impl Forwarded {
    /// Reads the headers that `forwarding` believes from this peer.
    pub(crate) fn read(
        forwarding: &Forwarding,
        ends: &Ends,
        head: &RequestHead,
        input: &[u8],
    ) -> Self {
        if !forwarding.trusts(ends.peer_ip()) {
            return Self::default();
        }
        // What the nearest proxy said stands last, on the last line.
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
        Self {
            client: rightmost_untrusted(forwarding, &chain),
            https: believed(forwarding.scheme, b"x-forwarded-proto")
                .is_some_and(|value| value.eq_ignore_ascii_case(b"https")),
            has_bad_host: host.is_some_and(|host| !is_valid_authority(host)),
            host: host.map(<[u8]>::to_vec),
        }
    }
}

/// Each proxy appends whom it saw, so the truth is read from the right: the first address that is
/// not a trusted proxy is the client. An entry that is no address ends the chain of trust.
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

/// Whether the field says what only a proxy can know: who the client is, what it asked for and how.
/// A visitor who says so himself is not to be believed by anybody.
pub(crate) fn is_claim(name: &[u8]) -> bool {
    let start = name.get(..X_FORWARDED.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(X_FORWARDED))
        || CLAIMS.iter().any(|claim| name.eq_ignore_ascii_case(claim))
}

const X_FORWARDED: &[u8] = b"x-forwarded-";

/// What else proxies, balancers and networks set, and frameworks read.
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

/// Whether CGI would take the name for another's: `X_Real_IP` for `X-Real-IP`, since both are
/// `HTTP_X_REAL_IP`. nginx drops such fields as well.
pub(crate) fn is_ambiguous(name: &[u8]) -> bool {
    name.contains(&b'_')
}
