//! [`NetworkSet`]: the addresses of many networks.
//!
//! Created from the lists of the configuration. Invariant: the ranges are sorted and disjoint, so that a
//! lookup is one binary search, however many networks there are.

use crate::network::{Network, mask_v4, mask_v6};
use std::net::IpAddr;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSet {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

impl NetworkSet {
    /// Whether it contains no address.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Whether `address` is in one of the networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => is_in(&self.v4, address.to_bits()),
            IpAddr::V6(address) => is_in(&self.v6, address.to_bits()),
        }
    }
}

impl FromIterator<Network> for NetworkSet {
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            let bits = network.prefix_bits;
            match network.address {
                IpAddr::V4(address) => {
                    let (address, mask) = (address.to_bits(), mask_v4(bits));
                    v4.push((address & mask, address | !mask));
                }
                IpAddr::V6(address) => {
                    let (address, mask) = (address.to_bits(), mask_v6(bits));
                    v6.push((address & mask, address | !mask));
                }
            }
        }
        Self { v4: merged(v4), v6: merged(v6) }
    }
}

/// Two networks are disjoint, or one contains the other.
fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Box<[(T, T)]> {
    ranges.sort_unstable_by_key(|(first, last)| (*first, std::cmp::Reverse(*last)));
    ranges.dedup_by(|inner, outer| inner.1 <= outer.1);
    ranges.into()
}

fn is_in<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= address);
    after > 0 && address <= ranges[after - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_contains_what_one_of_its_networks_contains(
            written in prop::collection::vec((any::<u32>(), 0u8..=32, any::<bool>()), 0..40),
            addresses in prop::collection::vec(any::<u32>(), 0..40),
        ) {
            let networks: Vec<Network> = written
                .iter()
                .map(|(bits, prefix, is_v6)| match is_v6 {
                    false => Network::new(IpAddr::V4((*bits).into()), *prefix),
                    true => Network::new(IpAddr::V6((u128::from(*bits) << 96).into()), *prefix),
                })
                .collect();
            let set: NetworkSet = networks.iter().copied().collect();
            let of_networks = written.iter().map(|(bits, _, _)| *bits);
            for bits in addresses.into_iter().chain(of_networks) {
                for address in [IpAddr::V4(bits.into()), IpAddr::V6((u128::from(bits) << 96).into())] {
                    let expected = networks.iter().any(|network| network.contains(address));
                    prop_assert_eq!(set.contains(address), expected, "{}", address);
                }
            }
        }
    }

    #[test]
    fn the_whole_address_space_is_a_set() {
        let all: NetworkSet = ["0.0.0.0/0", "::/0", "10.0.0.0/8"]
            .map(|text| text.parse().unwrap())
            .into_iter()
            .collect();
        assert!(all.contains("255.255.255.255".parse().unwrap()));
        assert!(
            all.contains("::ffff:1.2.3.4".parse().unwrap()) && all.contains("::".parse().unwrap())
        );
        assert!(NetworkSet::default().is_empty() && !all.is_empty());
    }
}
