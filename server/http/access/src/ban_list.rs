//! [`BanList`]: networks whose clients are refused for a time.
//!
//! Filled by commands of the operator and by programs such as fail2ban; read for each connection and each
//! request by all threads. Invariants: the list is bounded; without bans a lookup is one load; a lookup
//! holds the lock for a hash lookup per prefix length in use, and never while anything waits.

use crate::network::Network;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// More are a list for a firewall.
const MAX_BANS: usize = 200_000;

/// A ban.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// The time at which it ends, in seconds since 1970; `None`: it does not.
    pub until_s: Option<u64>,
    /// Why, for the operator.
    pub reason: String,
}

/// There is no room for another ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BansFull;

/// See the module.
#[derive(Debug, Default)]
pub struct BanList {
    /// As in `bans`; written while that is locked.
    count: AtomicUsize,
    bans: RwLock<Bans>,
}

#[derive(Debug, Default)]
struct Bans {
    by_network: HashMap<Network, Ban>,
    /// How many bans have a prefix of this length, by family and length.
    lengths: HashMap<(bool, u8), usize>,
}

impl BanList {
    /// Whether clients of this address are refused.
    pub fn is_banned(&self, address: IpAddr, now_s: u64) -> bool {
        !self.is_empty() && self.read().is_banned(address.to_canonical(), now_s)
    }

    /// Whether there is no ban, not even one that has ended.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Refuses the clients of a network. An earlier ban of it is replaced.
    ///
    /// # Errors
    /// The list is full, even without the bans that have ended.
    pub fn ban(&self, network: Network, ban: Ban, now_s: u64) -> Result<(), BansFull> {
        let mut bans = self.write();
        if bans.by_network.len() >= MAX_BANS && !bans.by_network.contains_key(&network) {
            bans.remove_ended(now_s);
        }
        let fits = bans.by_network.len() < MAX_BANS || bans.by_network.contains_key(&network);
        if fits && bans.by_network.insert(network, ban).is_none() {
            *bans.lengths.entry(length(&network)).or_default() += 1;
        }
        self.count.store(bans.by_network.len(), Ordering::Relaxed);
        if fits { Ok(()) } else { Err(BansFull) }
    }

    /// Admits the clients of a network again; false if it was not banned.
    pub fn unban(&self, network: &Network) -> bool {
        let mut bans = self.write();
        let was_banned = bans.remove(network);
        self.count.store(bans.by_network.len(), Ordering::Relaxed);
        was_banned
    }

    /// The bans that have not ended, sorted by network.
    pub fn list(&self, now_s: u64) -> Vec<(Network, Ban)> {
        let bans = self.read();
        let open = bans.by_network.iter().filter(|(_, ban)| !ban.has_ended(now_s));
        let mut list: Vec<_> = open.map(|(network, ban)| (*network, ban.clone())).collect();
        list.sort_unstable_by_key(|(network, _)| *network);
        list
    }

    /// Removes the bans that have ended; how many they were.
    pub fn remove_ended(&self, now_s: u64) -> usize {
        let mut bans = self.write();
        let before = bans.by_network.len();
        bans.remove_ended(now_s);
        self.count.store(bans.by_network.len(), Ordering::Relaxed);
        before - bans.by_network.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Bans> {
        self.bans.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Bans> {
        self.bans.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bans {
    fn is_banned(&self, address: IpAddr, now_s: u64) -> bool {
        let own = self.lengths.keys().filter(|(is_v4, _)| *is_v4 == address.is_ipv4());
        let mut bans = own.map(|(_, bits)| self.by_network.get(&Network::new(address, *bits)));
        bans.any(|ban| ban.is_some_and(|ban| !ban.has_ended(now_s)))
    }

    fn remove(&mut self, network: &Network) -> bool {
        let was_banned = self.by_network.remove(network).is_some();
        let length = length(network);
        if was_banned && let Some(count) = self.lengths.get_mut(&length) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&length);
            }
        }
        was_banned
    }

    fn remove_ended(&mut self, now_s: u64) {
        let ended = self.by_network.iter().filter(|(_, ban)| ban.has_ended(now_s));
        let ended: Vec<Network> = ended.map(|(network, _)| *network).collect();
        for network in &ended {
            self.remove(network);
        }
    }
}

impl Ban {
    fn has_ended(&self, now_s: u64) -> bool {
        self.until_s.is_some_and(|until_s| until_s <= now_s)
    }
}

fn length(network: &Network) -> (bool, u8) {
    (network.address.is_ipv4(), network.prefix_bits)
}

impl fmt::Display for BansFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there are {MAX_BANS} bans: ban networks instead of addresses, or use a firewall")
    }
}

impl std::error::Error for BansFull {}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn ban(until_s: Option<u64>) -> Ban {
        Ban { until_s, reason: String::new() }
    }

    fn is_banned(list: &BanList, address: &str, now_s: u64) -> bool {
        list.is_banned(address.parse().unwrap(), now_s)
    }

    #[test]
    fn banned_networks_are_refused_in_every_form() {
        let list = BanList::default();
        assert!(!is_banned(&list, "10.1.2.3", 0));
        for text in ["10.1.0.0/16", "192.0.2.7", "2001:db8:1::/48"] {
            list.ban(network(text), ban(None), 0).unwrap();
        }
        for address in ["10.1.2.3", "::ffff:10.1.2.3", "192.0.2.7", "2001:db8:1:2::3"] {
            assert!(is_banned(&list, address, 0), "{address}");
        }
        for address in ["10.2.2.3", "192.0.2.8", "2001:db8:2::1", "::1"] {
            assert!(!is_banned(&list, address, 0), "{address}");
        }
    }

    #[test]
    fn a_ban_ends_at_its_time_and_others_remain() {
        let list = BanList::default();
        list.ban(network("10.0.0.0/8"), ban(Some(100)), 0).unwrap();
        list.ban(network("10.1.2.3"), ban(Some(200)), 0).unwrap();
        assert!(is_banned(&list, "10.9.9.9", 99) && !is_banned(&list, "10.9.9.9", 100));
        assert!(is_banned(&list, "10.1.2.3", 100));
        assert_eq!(list.list(100).len(), 1);
        assert_eq!((list.remove_ended(100), list.remove_ended(100)), (1, 0));
        assert!(is_banned(&list, "10.1.2.3", 199) && !is_banned(&list, "10.1.2.3", 200));
    }

    #[test]
    fn an_unbanned_network_is_admitted() {
        let list = BanList::default();
        list.ban(network("10.0.0.0/8"), ban(None), 0).unwrap();
        list.ban(network("10.0.0.1/8"), ban(Some(9)), 0).unwrap();
        assert_eq!(list.list(0), [(network("10.0.0.0/8"), ban(Some(9)))]);
        assert!(list.unban(&network("10.0.0.0/8")) && !list.unban(&network("10.0.0.0/8")));
        assert!(!is_banned(&list, "10.1.2.3", 0) && list.list(0).is_empty());
    }

    #[test]
    fn a_full_list_accepts_bans_in_place_of_ended_ones() {
        let list = BanList::default();
        for number in 0..MAX_BANS as u32 {
            let until_s = (number == 5).then_some(10);
            list.ban(Network::of_address(IpAddr::V4(number.into())), ban(until_s), 0).unwrap();
        }
        let another = network("255.0.0.1");
        assert_eq!(list.ban(another, ban(None), 9), Err(BansFull));
        assert_eq!(list.ban(network("0.0.0.7"), ban(Some(99)), 9), Ok(()));
        assert_eq!(list.ban(another, ban(None), 10), Ok(()));
        assert!(is_banned(&list, "255.0.0.1", 10) && !is_banned(&list, "0.0.0.5", 10));
    }
}
