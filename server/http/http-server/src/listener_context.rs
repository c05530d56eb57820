//! [`ListenerContext`]: the settings of a listener that its connections use.

use crate::census::ListenerLimits;
use crate::connections::counted_as;
use crate::peer::PeerInfo;
use outboard_config::{Admission, Forwarding, Peers};
use outboard_reactor::Peer;
use outboard_tls::{Issued, ServerSettings};
use std::net::IpAddr;
use std::sync::Arc;

/// The purpose of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The apps.
    Apps,
    /// The entity store.
    Entities,
    /// Status, reload, metrics.
    Admin,
    /// Metrics only, for a collector.
    Metrics,
    /// The dashboard, for users with a password.
    Dashboard,
    /// Raw connections of an app.
    Streams,
}

impl Role {
    /// Whether clients use it, rather than the operator.
    pub(crate) fn is_for_clients(self) -> bool {
        matches!(self, Self::Apps | Self::Entities | Self::Streams | Self::Dashboard)
    }
}

/// See the module.
#[derive(Debug)]
pub struct ListenerContext {
    /// The purpose.
    pub role: Role,
    /// Trusted proxies and their headers.
    pub forwarding: Forwarding,
    /// Proxies whose connections start with a header of the PROXY protocol.
    pub proxy_protocol: Peers,
    /// The addresses whose connections are accepted.
    pub admission: Admission,
    /// Limits of its connections, in addition to the server's.
    pub limits: Option<ListenerLimits>,
    /// The certificates, if it uses TLS.
    pub tls: Option<Arc<ServerSettings>>,
    /// Responds to authorities that check names of this server.
    pub issued: Option<Arc<Issued>>,
    /// Whether its clients are redirected to a listener with TLS.
    pub redirects_to_https: bool,
    /// Whether it serves HTTP/3 too, on the same port of UDP.
    pub http3: bool,
    /// For raw connections: whose they are.
    pub stream: Option<StreamPort>,
}

/// The receiver of raw connections or of datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPort {
    /// The app.
    pub app: String,
    /// The index of the port among those of the app's program.
    pub port: u16,
}

impl ListenerContext {
    /// A listener without TLS and without trusted proxies.
    pub fn plain(role: Role) -> Self {
        Self {
            role,
            forwarding: Forwarding::default(),
            admission: Admission::default(),
            limits: None,
            proxy_protocol: Peers::default(),
            tls: None,
            issued: None,
            redirects_to_https: false,
            http3: false,
            stream: None,
        }
    }

    /// Whether the connections of a peer start with a header of the PROXY protocol.
    pub(crate) fn expects_proxy_header(&self, peer: &PeerInfo) -> bool {
        self.proxy_protocol.contains(peer.ip())
    }

    /// The address whose connections are limited; `None` for a trusted proxy, which has many clients.
    pub(crate) fn limited_address(&self, peer: Peer) -> Option<IpAddr> {
        let ip = match peer {
            Peer::Tcp(address) => Some(address.ip().to_canonical()),
            Peer::Unix => None,
        };
        if self.role.is_for_clients() && !self.forwarding.trusts(ip) {
            counted_as(peer)
        } else {
            None
        }
    }
}
