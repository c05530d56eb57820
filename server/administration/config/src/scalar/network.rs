//! Networks of peers.

use super::kind::{Fault, Scalar, Written};
use outboard_access::{InvalidNetwork, Network};

/// Peers of a network, or on Unix sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Network(Network),
    /// Any peer on a Unix socket.
    Unix,
}

impl Scalar for Peer {
    const NAME: &'static str = "network";
    const EXPECTED: &'static str = "a network such as \"10.0.0.0/8\", an IP address or \"unix\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        if text == "unix" {
            return Ok(Peer::Unix);
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
            Peer::Network(network) => format!("{}/{}", network.address, network.prefix_bits),
        }
    }
}
