//! [`NameBudget`]: how many names without a certificate the clients of a network may request.
//!
//! Owned by [`crate::issued`]. Each name may cost a question to the application and an order of the authority.
//! Invariants: its memory is bounded; a network for which there is no room has no budget.

use std::collections::HashMap;
use std::net::IpAddr;

/// New names per network and minute.
const MAX_NAMES: u32 = 30;
/// Networks that are counted in a minute.
const MAX_NETWORKS: usize = 4096;
const MINUTE_MS: u64 = 60_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct NameBudget {
    /// The minute of the last name, and the names in it.
    spent: HashMap<u64, (u64, u32)>,
}

impl NameBudget {
    /// Whether this client may request one more name. `None`: it has no address.
    pub(crate) fn spend(&mut self, client: Option<IpAddr>, now_ms: u64) -> bool {
        let (network, minute) = (network_of(client), now_ms / MINUTE_MS);
        if self.spent.len() >= MAX_NETWORKS && !self.spent.contains_key(&network) {
            self.spent.retain(|_, (last, _)| *last == minute);
            if self.spent.len() >= MAX_NETWORKS {
                return false;
            }
        }
        let (last, names) = self.spent.entry(network).or_default();
        if *last != minute {
            (*last, *names) = (minute, 0);
        }
        *names = names.saturating_add(1);
        *names <= MAX_NAMES
    }
}

/// An address of version 4, or the 64 bits of one of version 6 that a client does not choose.
fn network_of(client: Option<IpAddr>) -> u64 {
    match client.map(|address| address.to_canonical()) {
        None => 0,
        Some(IpAddr::V4(address)) => address.to_bits().into(),
        Some(IpAddr::V6(address)) => (address.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_a_budget_for_each_minute() {
        let mut budget = NameBudget::default();
        let client = |text: &str| Some(text.parse::<IpAddr>().unwrap());
        let mut spend = |text, times: u32, now_ms| {
            (0..times).filter(|_| budget.spend(client(text), now_ms)).count() as u32
        };
        assert_eq!(spend("192.0.2.1", 100, 0), MAX_NAMES);
        assert_eq!(spend("::ffff:192.0.2.1", 1, MINUTE_MS - 1), 0);
        assert_eq!(spend("192.0.2.2", 1, 0), 1);
        assert_eq!(spend("192.0.2.1", 100, MINUTE_MS), MAX_NAMES);
        assert_eq!(spend("2001:db8::1", 20, 0) + spend("2001:db8::2", 20, 0), MAX_NAMES);
    }

    #[test]
    fn networks_without_a_place_have_no_budget() {
        let mut budget = NameBudget::default();
        let client = |at: u32| Some(IpAddr::V4(at.into()));
        assert!((1..=MAX_NETWORKS as u32).all(|at| budget.spend(client(at), 0)));
        assert!(!budget.spend(client(u32::MAX), 0) && budget.spend(client(1), 0));
        assert!(budget.spend(client(u32::MAX), MINUTE_MS));
        assert_eq!(budget.spent.len(), 1);
    }
}
