//! [`Endpoint`]: where the connections of a request lead, if its URL does not say it.
//!
//! Chosen by a caller that balances requests between servers. Invariant: endpoints with the same name
//! lead to the same server, since they share connections.

use crate::url::Url;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name among the pools of connections, and in messages.
    pub name: Box<str>,
    /// Its address.
    pub address: EndpointAddress,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointAddress {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// The name of the server that a request is sent to.
pub(crate) fn name<'a>(endpoint: Option<&'a Endpoint>, url: &'a Url) -> &'a str {
    endpoint.map_or(url.origin(), |endpoint| &endpoint.name)
}
