//! [`Peers`]: clients and proxies by their networks.
//!
//! Made from the lists of a section, whose names [`super::networks`] has replaced.

use crate::scalar::Peer;
use outboard_access::NetworkSet;
use std::net::IpAddr;

/// Peers by network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers {
    networks: NetworkSet,
    unix: bool,
}

impl Peers {
    pub(super) fn new(written: &[Peer]) -> Self {
        let network = |peer: &Peer| match peer {
            Peer::Network(network) => Some(*network),
            Peer::Unix | Peer::Named(_) => None,
        };
        let networks: NetworkSet = written.iter().filter_map(network).collect::<NetworkSet>();
        Self { networks, unix: written.contains(&Peer::Unix) }
    }

    /// Whether they are none.
    pub(super) fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.unix
    }

    /// Whether it has a peer; one on a Unix socket has no address.
    pub fn contains(&self, peer: Option<IpAddr>) -> bool {
        peer.map_or(self.unix, |address| self.networks.contains(address))
    }
}
