//! Networks of peers.

use super::kind::{Fault, Scalar, Written};
use outboard_access::{InvalidNetwork, Network};

/// Peers of a network, or on Unix sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Network(Network),
    /// Any peer on a Unix socket.
    Unix,
    /// Those of the networks with this name.
    Named(String),
}

impl Scalar for Peer {
    const NAME: &'static str = "network";
    const EXPECTED: &'static str =
        "a network such as \"10.0.0.0/8\", an IP address, the name of networks or \"unix\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        if text == "unix" {
            return Ok(Peer::Unix);
        }
        if is_name(text) {
            return Ok(Peer::Named(text.to_owned()));
        }
        if text == "*" {
            let fault = Fault::new("`*` is not a network");
            return Err(fault
                .hint("name the networks, such as \"10.0.0.0/8\", \"private\" or \"cloudflare\""));
        }
        let fault = |error| {
            let fault = Fault::new(format!("`{text}` is not a network"));
            match error {
                InvalidNetwork::Syntax => fault.hint(Self::EXPECTED),
                prefix @ InvalidNetwork::Prefix { .. } => fault.hint(prefix.to_string()),
            }
        };
        text.parse().map(Peer::Network).map_err(fault)
    }

    fn write(&self) -> String {
        match self {
            Peer::Unix => "unix".to_owned(),
            Peer::Named(name) => name.clone(),
            Peer::Network(network) => format!("{}/{}", network.address, network.prefix_bits),
        }
    }
}

/// A letter first: no address begins like this and has no dot or colon.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}
