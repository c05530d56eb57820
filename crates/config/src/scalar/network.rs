//! Networks of trusted peers.

use super::{Fault, Scalar, Written};
use std::net::IpAddr;

/// An IP network such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The network's first address.
    pub address: IpAddr,
    /// Prefix length: at most 32 or 128.
    pub prefix_bits: u8,
}

/// A peer that may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Network(Network),
    /// Any peer on a Unix socket.
    Unix,
}

impl Network {
    /// Whether `address` is in the network. An IPv4 address that arrives in its IPv6 form
    /// (`::ffff:10.1.2.3`) is treated as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_bits)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_bits)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl Scalar for Peer {
    const NAME: &'static str = "network";
    const EXPECTED: &'static str = "a network such as \"10.0.0.0/8\", an IP address or \"unix\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        if text == "unix" {
            return Ok(Peer::Unix);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let bad = || Fault::new(format!("`{text}` is not a network")).hint(Self::EXPECTED);
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => widest,
            Some(bits) if bits.starts_with('+') => return Err(bad()),
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|bits| *bits <= widest)
                .ok_or_else(|| bad().hint(format!("the prefix length is 0 to {widest}")))?,
        };
        Ok(Peer::Network(Network { address, prefix_bits }))
    }

    fn write(&self) -> String {
        match self {
            Peer::Unix => "unix".to_owned(),
            Peer::Network(network) => format!("{}/{}", network.address, network.prefix_bits),
        }
    }
}
