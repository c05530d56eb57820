//! [`Network`]: an IP network such as `10.0.0.0/8`.
//!
//! Read from the configuration and from commands. Invariant: a parsed network is canonical: an IPv4
//! network in its IPv6 form is an IPv4 network, and the bits beyond the prefix are zero, so that equal
//! networks are equal values.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    /// The network's first address.
    pub address: IpAddr,
    /// Prefix length: at most 32 or 128.
    pub prefix_bits: u8,
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidNetwork {
    /// It is not an address, or its prefix length is not a number.
    Syntax,
    /// The prefix is longer than an address.
    Prefix {
        /// The bits of an address.
        widest: u8,
    },
}

/// The bits of an IPv4 address in its IPv6 form that precede it (RFC 4291 2.5.5.2).
const MAPPED_BITS: u8 = 96;

impl Network {
    /// The network of an address with a prefix of this length, or of the whole address if that is shorter.
    pub fn new(address: IpAddr, prefix_bits: u8) -> Self {
        let (address, prefix_bits) = match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(mapped)) if prefix_bits >= MAPPED_BITS => {
                (IpAddr::V4(mapped), prefix_bits - MAPPED_BITS)
            }
            _ => (address, prefix_bits),
        };
        match address {
            IpAddr::V4(address) => {
                let prefix_bits = prefix_bits.min(32);
                let first = Ipv4Addr::from_bits(address.to_bits() & mask_v4(prefix_bits));
                Self { address: first.into(), prefix_bits }
            }
            IpAddr::V6(address) => {
                let prefix_bits = prefix_bits.min(128);
                let first = Ipv6Addr::from_bits(address.to_bits() & mask_v6(prefix_bits));
                Self { address: first.into(), prefix_bits }
            }
        }
    }

    /// The network of one address.
    pub fn of_address(address: IpAddr) -> Self {
        Self::new(address, if address.is_ipv4() { 32 } else { 128 })
    }

    /// Whether `address` is in the network. An IPv4 address that arrives in its IPv6 form
    /// (`::ffff:10.1.2.3`) is treated as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = mask_v4(self.prefix_bits);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = mask_v6(self.prefix_bits);
                own.to_bits() & mask == other.to_bits() & mask
            }
            _ => false,
        }
    }
}

pub(crate) fn mask_v4(prefix_bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix_bits)).unwrap_or(0)
}

pub(crate) fn mask_v6(prefix_bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix_bits)).unwrap_or(0)
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork::Syntax)?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        let Some(bits) = bits else { return Ok(Self::new(address, widest)) };
        if bits.is_empty() || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidNetwork::Syntax);
        }
        let bits: Option<u8> = bits.parse().ok().filter(|bits| *bits <= widest);
        Ok(Self::new(address, bits.ok_or(InvalidNetwork::Prefix { widest })?))
    }
}

/// As users write it: an address alone if that is the whole network.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = if self.address.is_ipv4() { 32 } else { 128 };
        match self.prefix_bits == widest {
            true => write!(f, "{}", self.address),
            false => write!(f, "{}/{}", self.address, self.prefix_bits),
        }
    }
}

impl fmt::Display for InvalidNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax => f.write_str("not an IP address or a network such as 10.0.0.0/8"),
            Self::Prefix { widest } => write!(f, "the prefix length is 0 to {widest}"),
        }
    }
}

impl std::error::Error for InvalidNetwork {}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_contains_its_addresses_in_every_form() {
        let ten = network("10.0.0.0/8");
        assert!(ten.contains(ip("10.255.0.1")) && ten.contains(ip("::ffff:10.1.2.3")));
        assert!(!ten.contains(ip("11.0.0.1")) && !ten.contains(ip("a00::1")));
        let any = network("0.0.0.0/0");
        assert!(any.contains(ip("255.1.1.1")) && !any.contains(ip("::1")));
        assert!(network("::/0").contains(ip("2001:db8::1")));
        assert!(network("2001:db8::/32").contains(ip("2001:db8:ffff::1")));
        assert!(!network("2001:db8::/32").contains(ip("2001:db9::1")));
    }

    #[test]
    fn equal_networks_are_equal_values() {
        assert_eq!(network("10.1.2.3/8"), network("10.0.0.0/8"));
        assert_eq!(network("::ffff:10.1.2.3"), network("10.1.2.3"));
        assert_eq!(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
        assert_eq!(network("2001:db8::1/64"), network("2001:db8::/64"));
        assert_eq!(network("10.0.0.0/8").to_string(), "10.0.0.0/8");
        assert_eq!(network("::ffff:10.1.2.3").to_string(), "10.1.2.3");
    }

    #[test]
    fn what_is_not_a_network_is_rejected() {
        for text in ["", "a", "10.0.0", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/-1", "1.2.3.4/8/8"] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork::Syntax), "{text}");
        }
        for text in ["10.0.0.0/33", "10.0.0.0/999"] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork::Prefix { widest: 32 }));
        }
        assert_eq!("::/129".parse::<Network>(), Err(InvalidNetwork::Prefix { widest: 128 }));
    }
}
