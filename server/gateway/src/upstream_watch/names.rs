//! The addresses of servers that are named: resolved at start, and again at an interval.
//!
//! Started by [`super::watch`], a task for each name. Invariants: a lookup runs on a thread of its own, one at
//! a time for each name; a name that has no address any more keeps those that it had, which is logged once.

use crate::gateway::Gateway;
use outboard_balancer::Group;
use outboard_log::Level;
use outboard_reactor::{blocking, sleep};
use outboard_upstream::ScopedTask;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;

/// Starts the lookups of a group's names.
pub(super) fn start(gateway: &Rc<Gateway>, group: &Arc<Group>) -> Vec<ScopedTask> {
    let servers = group.rules().servers.iter().enumerate();
    let named = servers.filter(|(_, server)| server.socket.is_none());
    let named = named.filter_map(|(number, server)| Some((number, name(&server.origin)?)));
    let lookups = named.map(|(number, name)| {
        let (gateway, group, name) = (gateway.clone(), group.clone(), name.to_owned());
        ScopedTask::spawn(resolve_regularly(gateway, group, number, name))
    });
    lookups.collect()
}

/// The host of an origin, unless it is an address.
fn name(origin: &str) -> Option<&str> {
    let (_, authority) = origin.split_once("://")?;
    let is_address = authority.starts_with('[');
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    (!is_address && host.parse::<IpAddr>().is_err()).then_some(host)
}

async fn resolve_regularly(gateway: Rc<Gateway>, group: Arc<Group>, number: usize, name: String) {
    let mut is_missing = false;
    loop {
        let host = name.clone();
        let found = blocking(move || lookup(&host)).await;
        let log = gateway.generation().logs.error.clone();
        let upstream = &group.rules().name;
        match found {
            Ok(addresses) => {
                let is_new = group.set_addresses(number, &addresses);
                if is_new || is_missing {
                    let text = format!("upstream {upstream}: {name} has addresses {addresses:?}");
                    log.note(Level::Info, &text);
                }
                is_missing = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut is_missing, true) {
                    let text = format!(
                        "upstream {upstream}: {name} has no address, those known remain: {error}"
                    );
                    log.note(Level::Error, &text);
                }
            }
        }
        sleep(group.rules().resolve_interval_ms).await;
    }
}

fn lookup(host: &str) -> io::Result<Vec<IpAddr>> {
    let addresses = (host, 0).to_socket_addrs()?;
    let mut addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    match addresses.is_empty() {
        true => Err(io::Error::other("the list is empty")),
        false => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_resolved() {
        let names = ["http://a.test:81", "https://a.test", "http://10.0.0.1", "http://[::1]:80"];
        assert_eq!(names.map(name), [Some("a.test"), Some("a.test"), None, None]);
    }
}
