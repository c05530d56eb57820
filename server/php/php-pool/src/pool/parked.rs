//! [`DirectConnection`]: a client connection whose socket a worker has as well, as its task in the gateway has it.
//!
//! Created by the pool. Invariant: dropped before its last event, it takes the connection back.

use super::core::PoolCore;
use super::direct_event::{Client, DirectEvent};
use super::worker::Worker;
use crate::exchange::ExchangeSettings;
use crate::worker_id::WorkerId;
use outboard_ring::direct::Greeting;
use outboard_ring::frame::{FrameKind, Tag};
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::Poll;

/// The connection task's end of a direct connection. Dropped before its last event, it takes the connection back.
#[derive(Debug)]
pub struct DirectConnection {
    core: Rc<PoolCore>,
    worker: WorkerId,
    tag: Tag,
    client: Rc<Client>,
    has_ended: bool,
}

impl DirectConnection {
    /// The next event; the task is woken when there is one.
    pub fn poll_event(&mut self) -> Poll<DirectEvent> {
        match self.client.events.borrow_mut().pop_front() {
            Some(event) => {
                debug_assert!(!self.has_ended, "a connection comes back once");
                self.has_ended = event.is_last();
                Poll::Ready(event)
            }
            None => Poll::Pending,
        }
    }

    /// Has the connection come back, now or after the present request.
    pub fn take_back(&self) {
        let mut members = self.core.members.borrow_mut();
        if let Some(worker) = members.roster.find(self.worker)
            && let Some(tag) = worker.direct.present(self.tag)
        {
            worker.ends().take_back(tag);
            // Its request may have become one of the worker's exchanges.
            members.roster.update_room_list(self.worker.slot);
        }
    }
}

impl Drop for DirectConnection {
    fn drop(&mut self) {
        if !self.has_ended {
            self.take_back();
        }
    }
}

impl PoolCore {
    /// Gives a connection of the current task to the worker of this pool that has the fewest, with a request that the
    /// next ones may be like.
    pub(super) fn park(
        self: &Rc<Self>,
        template: &[u8],
        socket: BorrowedFd<'_>,
        greeting: Greeting,
        settings: ExchangeSettings,
    ) -> Option<DirectConnection> {
        let mut members = self.members.borrow_mut();
        let may_have = |worker: &&mut Worker| {
            worker.is_own && worker.is_ready() && !worker.is_reserve && worker.has_sent_all()
        };
        let workers = members.roster.all_mut().filter(may_have);
        let worker = workers.min_by_key(|worker| worker.direct.len())?;
        // One that breaks the protocol is found when its ring is polled.
        worker.send(FrameKind::Template, Tag::default(), template).ok()?;
        let id = worker.id;
        let client = Rc::new(Client {
            task: outboard_reactor::current_task(),
            settings,
            events: RefCell::default(),
        });
        let tag = worker.ends().park(socket, greeting, client.clone())?;
        Some(DirectConnection { core: self.clone(), worker: id, tag, client, has_ended: false })
    }
}
