//! Trusted proxies, and other peers that may do more than clients.

use crate::raw::ForwardedHeader;
use crate::scalar::{Network, Peer};
use std::net::IpAddr;

/// Trusted proxies and the `X-Forwarded-*` headers accepted from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// Networks of trusted proxies.
    pub trusted_proxies: Vec<Network>,
    /// Whether peers on a Unix socket are trusted.
    pub trust_unix_peers: bool,
    /// Whether `X-Forwarded-For` is accepted.
    pub client_address: bool,
    /// Whether `X-Forwarded-Proto` is accepted.
    pub scheme: bool,
    /// Whether `X-Forwarded-Host` is accepted.
    pub host: bool,
}

impl Forwarding {
    pub(super) fn new(proxies: &[Peer], headers: &[ForwardedHeader]) -> Self {
        let network = |peer: &Peer| match peer {
            Peer::Network(network) => Some(*network),
            Peer::Unix | Peer::Named(_) => None,
        };
        Self {
            trusted_proxies: proxies.iter().filter_map(network).collect(),
            trust_unix_peers: proxies.contains(&Peer::Unix),
            client_address: headers.contains(&ForwardedHeader::For),
            scheme: headers.contains(&ForwardedHeader::Proto),
            host: headers.contains(&ForwardedHeader::Host),
        }
    }

    /// Whether any peer is trusted.
    pub fn has_proxies(&self) -> bool {
        !self.trusted_proxies.is_empty() || self.trust_unix_peers
    }

    /// Whether the peer is a trusted proxy; a peer on a Unix socket has no address.
    pub fn trusts(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            Some(peer) => self.trusted_proxies.iter().any(|network| network.contains(peer)),
            None => self.trust_unix_peers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::{Scalar, Written};

    #[test]
    fn listed_peers_are_trusted_with_listed_headers() {
        let peers = ["10.0.0.0/8", "unix"].map(|text| Peer::read(Written::Text(text)).unwrap());
        let forwarding = Forwarding::new(&peers, &[ForwardedHeader::For]);
        assert!(forwarding.has_proxies() && forwarding.trusts(None));
        assert!(forwarding.trusts(Some([10, 1, 1, 1].into())));
        assert!(!forwarding.trusts(Some([192, 0, 2, 1].into())));
        assert!(forwarding.client_address && !forwarding.scheme && !forwarding.host);
        assert!(!Forwarding::new(&[], &[]).has_proxies());
    }
}
