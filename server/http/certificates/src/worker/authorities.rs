//! The authorities for a name, and when they accept orders.

use super::Worker;
use crate::authority::Account;
use crate::name::Name;
use crate::plan::Time;
use outboard_config::{Acme, Authority, is_local_name};
use std::rc::Rc;

/// The authorities in their order; first the one that has an open order.
pub(crate) fn authorities(config: &Acme, name: &Name) -> Vec<Authority> {
    if is_local_name(&name.text) {
        return vec![Authority::Local];
    }
    let mut all = config.authorities.clone();
    let record = name.record.borrow();
    let open = record.order.as_ref().map(|order| Authority::Acme(order.authority.clone()));
    all.sort_by_key(|authority| Some(authority) != open.as_ref());
    all
}

/// The times from which the authorities accept an order for the name.
pub(crate) fn usable_times(worker: &Worker, config: &Acme, name: &Name) -> Vec<Time> {
    let usable = |authority: &Authority| match authority {
        Authority::Local => 0,
        // What cannot be read is reported by the attempt.
        Authority::Acme(url) => {
            worker.account(url).map_or(0, |account| usable_s(worker, name, &account))
        }
    };
    authorities(config, name).iter().map(usable).collect()
}

/// The time from which an authority accepts an order for the name.
pub(crate) fn usable_s(worker: &Worker, name: &Name, account: &Rc<Account>) -> Time {
    let has_open_order =
        name.record.borrow().order.as_ref().is_some_and(|order| order.authority == account.url);
    let paused_s = name.record.borrow().paused_s(&account.url);
    match has_open_order {
        // It does not count again; but the authority may be down.
        true => account.responding_s().max(paused_s),
        false => account.usable_s(worker.limits()).max(paused_s),
    }
}
