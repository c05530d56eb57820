//! What an endpoint does in an upgrade, while another process has the socket too.
//!
//! Invariant: a datagram goes towards its process only, so that none goes round: one of the successor's from
//! the socket to it; any other from the successor to the predecessor; from the predecessor nowhere.

use super::Shared;
use crate::member::Owner;
use crate::passed_on::PassedOn;
use crate::relay::{Ended, Relay};
use outboard_reactor::spend;
use std::cell::RefCell;
use std::rc::Rc;

/// The work for a datagram in addition to its bytes, as bytes moved.
const RELAYED_WEIGHT: usize = 2 << 10;

impl Shared {
    /// Whether the socket is the successor's.
    pub(super) fn is_left(&self) -> bool {
        self.is_stopped() && self.successor.borrow().is_some()
    }

    /// Handles a datagram of this thread, and passes on those of others.
    pub(super) fn sort(self: &Rc<Self>, one: PassedOn, buffer: &mut Vec<u8>) {
        match self.mailboxes.owner(&one.datagram) {
            Owner::Ours => self.handle(one, buffer),
            Owner::Thread(thread) => self.mailboxes.pass_on(thread, one),
            Owner::Process(epoch) if epoch == self.mailboxes.epoch.wrapping_add(1) => {
                self.pass_on(&self.successor, one, buffer);
            }
            Owner::Process(_) => self.pass_on(&self.predecessor, one, buffer),
        }
    }

    /// Without that process, its connection is not known: its client learns that here.
    fn pass_on(self: &Rc<Self>, to: &RefCell<Option<Relay>>, one: PassedOn, buffer: &mut Vec<u8>) {
        if let Some(relay) = &*to.borrow() {
            return relay.send(&one);
        }
        self.handle(one, buffer);
    }

    /// Handles what the other processes have received.
    pub(super) fn receive_relayed(self: &Rc<Self>, buffer: &mut Vec<u8>) {
        self.receive_from(&self.successor, buffer, |shared, one, buffer| {
            match shared.mailboxes.owner(&one.datagram) {
                Owner::Process(_) => {
                    if let Some(relay) = &*shared.predecessor.borrow() {
                        relay.send(&one);
                    }
                }
                Owner::Thread(_) | Owner::Ours => shared.sort(one, buffer),
            }
        });
        self.receive_from(&self.predecessor, buffer, |shared, one, buffer| {
            if !matches!(shared.mailboxes.owner(&one.datagram), Owner::Process(_)) {
                shared.sort(one, buffer);
            }
        });
    }

    fn receive_from(
        self: &Rc<Self>,
        from: &RefCell<Option<Relay>>,
        buffer: &mut Vec<u8>,
        deliver: impl Fn(&Rc<Self>, PassedOn, &mut Vec<u8>),
    ) {
        // Without budget nothing has arrived, and the task is woken in the next turn.
        loop {
            let received = match &mut *from.borrow_mut() {
                None => return,
                Some(relay) => match relay.receive() {
                    Ok(None) if !relay.has_more() => return,
                    received => received,
                },
            };
            match received {
                Ok(Some(one)) => {
                    spend(one.datagram.len() + RELAYED_WEIGHT);
                    deliver(self, one, buffer);
                    self.drive_ready();
                }
                Ok(None) => spend(RELAYED_WEIGHT),
                Err(Ended) => drop(from.take()),
            }
        }
    }
}
