//! [`DirectConnections`]: the connections that a worker has, and [`Ends`], what happens to them.
//!
//! Owned by the worker, of which [`Ends`] borrows what is concerned; a connection's task has
//! [`DirectConnection`](super::parked::DirectConnection). The worker responds to requests by itself and reports them. A
//! request whose response the gateway has to send, or that takes long, is adopted: it becomes an exchange like any
//! other. Invariants: a connection is with one worker, and comes back once; nothing that the worker has read is lost,
//! unless the worker is; a slot is used again once its last request has ended; a request is adopted with what was
//! reported of it, and no other one; what a worker reports of the time decides nothing in its favour.

use super::direct_event::{Client, DirectEvent};
use crate::exchange::Exchange;
use crate::pool::leases::{Leases, Timing};
use crate::worker_id::WorkerId;
use outboard_log::Wall;
use outboard_reactor::now_ms;
use outboard_ring::channel::{DIRECT_CONNECTIONS, LEASES, TakenBack};
use outboard_ring::direct::{Answered, Greeting, Returned, Taken};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::spsc::Corrupt;
use outboard_supervisor::worker::WorkerProcess;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// While requests come, the ring is read this often, and workers need not wake the gateway.
pub(super) const WATCH_MS: u64 = 25;
/// A request that takes longer is adopted.
const LONG_MS: u64 = 4;
/// The longest that an answered request waits for its accounts, after others of its worker.
const ACCOUNTS_MS: u64 = 250;

const UNTAKEN: Corrupt = Corrupt { what: "an answer to a request that was not reported" };

#[derive(Debug)]
struct Slot {
    /// Of its last request that was reported; before one, of the connection.
    tag: Tag,
    /// The tag that it began with.
    first: Tag,
    client: Rc<Client>,
    taken: Option<TakenRequest>,
    /// Whether it is to come back as soon as that is possible.
    is_wanted: bool,
}

#[derive(Debug)]
struct TakenRequest {
    /// When it was reported.
    seen_ms: u64,
    request_id: u64,
    received_us: u64,
    bytes: Vec<u8>,
}

impl TakenRequest {
    /// How long the worker has had it: at least since it was reported.
    fn took_ms(&self, now_ms: u64) -> u64 {
        let received_ms = self.received_us / 1_000;
        let by_worker = (Wall::now().unix_us / 1_000).saturating_sub(received_ms);
        by_worker.max(now_ms.saturating_sub(self.seen_ms))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct DirectConnections {
    slots: Vec<Option<Slot>>,
    count: usize,
    last_generation: u32,
    last_frame_ms: u64,
    /// Those with requests that wait for their accounts, and since when.
    unaccounted: Vec<Rc<Client>>,
    unaccounted_since_ms: u64,
}

impl DirectConnections {
    pub(in crate::pool) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(in crate::pool) fn len(&self) -> usize {
        self.count
    }

    /// Whether the ring is read at intervals: requests come, or a connection is to come back.
    pub(in crate::pool) fn is_watched(&self, now_ms: u64) -> bool {
        !self.unaccounted.is_empty()
            || self.wanted().next().is_some()
            || self.count > 0 && now_ms < self.last_frame_ms + 2 * WATCH_MS
    }

    /// Has the task of a connection record the request that the worker has answered, later and with others.
    fn answered(&mut self, client: &Rc<Client>, event: DirectEvent, now_ms: u64) {
        if client.push(event) {
            if self.unaccounted.is_empty() {
                self.unaccounted_since_ms = now_ms;
            }
            self.unaccounted.push(client.clone());
        }
    }

    /// Has the tasks record the requests that have waited for long enough.
    pub(in crate::pool) fn account(&mut self, now_ms: u64) {
        if now_ms >= self.unaccounted_since_ms + ACCOUNTS_MS {
            self.unaccounted.drain(..).for_each(|client| client.account());
        }
    }

    fn find(&mut self, tag: Tag) -> Option<&mut Slot> {
        let slot = self.slots.get_mut((tag.slot as usize).checked_sub(LEASES)?)?.as_mut()?;
        (slot.tag == tag).then_some(slot)
    }

    fn remove(&mut self, tag: Tag) -> Option<Slot> {
        self.find(tag)?;
        self.count -= 1;
        self.slots[tag.slot as usize - LEASES].take()
    }

    /// The present tag of the connection that began with this one.
    pub(super) fn present(&self, first: Tag) -> Option<Tag> {
        let slot = self.slots.get((first.slot as usize).checked_sub(LEASES)?)?.as_ref()?;
        (slot.first == first).then_some(slot.tag)
    }

    fn wanted(&self) -> impl Iterator<Item = Tag> {
        self.slots.iter().flatten().filter(|slot| slot.is_wanted).map(|slot| slot.tag)
    }

    fn tags(&self) -> Vec<Tag> {
        self.slots.iter().flatten().map(|slot| slot.tag).collect()
    }
}

/// The connections of a worker, with what they change of it.
pub(in crate::pool) struct Ends<'a> {
    pub(in crate::pool) connections: &'a mut DirectConnections,
    pub(in crate::pool) process: &'a mut WorkerProcess,
    pub(in crate::pool) leases: &'a mut Leases,
    pub(in crate::pool) id: WorkerId,
    /// Whether it handles one request at a time.
    pub(in crate::pool) is_sequential: bool,
}

impl Ends<'_> {
    /// Gives the worker a connection, unless it has as many as it can have, or is behind.
    pub(super) fn park(
        &mut self,
        socket: BorrowedFd<'_>,
        greeting: Greeting,
        client: Rc<Client>,
    ) -> Option<Tag> {
        if self.is_stuck(now_ms()) {
            return None;
        }
        if self.connections.slots.is_empty() {
            self.connections.slots.resize_with(DIRECT_CONNECTIONS, || None);
        }
        let is_free = |at: &usize| {
            self.connections.slots[*at].is_none() && !self.leases.has_slot((LEASES + at) as u32)
        };
        let at = (0..DIRECT_CONNECTIONS).find(is_free)?;
        // Each request of the connection has a generation of its own.
        let before = self.connections.last_generation;
        self.connections.last_generation = before.wrapping_add(greeting.requests).wrapping_add(2);
        let tag = Tag { slot: (LEASES + at) as u32, generation: before.wrapping_add(1) };
        self.process.channel.park(tag);
        let greeting = Greeting { slot: tag.slot, generation: tag.generation, ..greeting };
        self.process.send_connection(&greeting, socket).ok()?;
        self.connections.slots[at] =
            Some(Slot { tag, first: tag, client, taken: None, is_wanted: false });
        self.connections.count += 1;
        Some(tag)
    }

    /// Handles a frame about a direct connection. Returns the request that the worker has answered.
    pub(in crate::pool) fn handle(
        &mut self,
        kind: FrameKind,
        tag: Tag,
        payload: &[u8],
    ) -> Result<Option<(Vec<u8>, Answered)>, Corrupt> {
        let now_ms = now_ms();
        self.connections.last_frame_ms = now_ms;
        if kind == FrameKind::Taken {
            let before = Tag { generation: tag.generation.wrapping_sub(1), ..tag };
            let Some(slot) = self.connections.find(before) else { return Ok(None) };
            if slot.taken.is_some() {
                return Err(UNTAKEN);
            }
            slot.tag = tag;
        }
        let Some(slot) = self.connections.find(tag) else { return Ok(None) };
        match kind {
            FrameKind::Taken => {
                let Taken { request_id, received_us, request } = Taken::decode(payload)?;
                let bytes = request.to_vec();
                slot.taken = Some(TakenRequest { seen_ms: now_ms, request_id, received_us, bytes });
                if slot.is_wanted {
                    self.take_back(tag);
                }
            }
            FrameKind::Answered => {
                let answered = Answered::decode(payload)?;
                let TakenRequest { request_id, received_us, bytes, .. } =
                    slot.taken.take().ok_or(UNTAKEN)?;
                let target = bytes.split(|&byte| byte == b' ').nth(1).unwrap_or_default().to_vec();
                let request = bytes;
                let event = DirectEvent::Answered { request, request_id, received_us, answered };
                let client = slot.client.clone();
                self.connections.answered(&client, event, now_ms);
                self.process.lifecycle.served_directly(now_ms);
                return Ok(Some((target, answered)));
            }
            _ => {
                let Returned { unsent, unread } = Returned::decode(payload)?;
                let (unsent, unread) = (unsent.to_vec(), unread.to_vec());
                if let Some(slot) = self.connections.remove(tag) {
                    let held = Some(slot.client.settings.memory.hold(unsent.len() + unread.len()));
                    slot.client.push(DirectEvent::Returned { unsent, unread, held });
                }
            }
        }
        Ok(None)
    }

    /// Makes an exchange of a request that the worker runs on a direct connection. False if it has none, or answers it.
    pub(in crate::pool) fn adopt(&mut self, tag: Tag) -> bool {
        let Some(slot) = self.connections.find(tag) else { return false };
        if slot.taken.is_none() || !self.process.channel.adopt(tag) {
            return false;
        }
        let Some(Slot { client, taken: Some(taken), .. }) = self.connections.remove(tag) else {
            return false;
        };
        let now_ms = now_ms();
        let took_ms = taken.took_ms(now_ms);
        let TakenRequest { request_id, received_us, bytes, .. } = taken;
        let settings = &client.settings;
        let exchange = Exchange::adopted(client.task, bytes.clone(), request_id, settings);
        let exchange = Rc::new(exchange);
        let timing = Timing::starting(now_ms.saturating_sub(took_ms), settings.longest_ms);
        debug_assert!(!self.leases.has_slot(tag.slot), "{tag:?} has another request");
        self.leases.adopt(tag, exchange.clone(), timing, self.id);
        exchange.times.started();
        self.process.lifecycle.adopt();
        client.push(DirectEvent::Adopted { request: bytes, received_us, exchange });
        true
    }

    /// Has a connection come back: at once, or after the request that the worker is at.
    pub(super) fn take_back(&mut self, tag: Tag) {
        if self.connections.find(tag).is_none() {
            return;
        }
        match self.process.channel.take_back(tag) {
            TakenBack::Now => {
                if let Some(slot) = self.connections.remove(tag) {
                    let (unsent, unread, held) = (Vec::new(), Vec::new(), None);
                    slot.client.push(DirectEvent::Returned { unsent, unread, held });
                }
            }
            // A frame follows.
            TakenBack::Soon => {}
            TakenBack::Busy => {
                if !self.adopt(tag)
                    && let Some(slot) = self.connections.find(tag)
                {
                    slot.is_wanted = true;
                }
            }
        }
    }

    /// Has all connections come back: the worker leaves, or is busy for long.
    pub(in crate::pool) fn take_all_back(&mut self) {
        for tag in self.connections.tags() {
            self.take_back(tag);
        }
    }

    /// The requests of direct connections fail: the worker is dead. Those that it had not begun are not affected.
    pub(in crate::pool) fn fail(&mut self) {
        for tag in self.connections.tags() {
            if self.process.channel.is_parked(tag) {
                self.take_back(tag);
            } else if !self.adopt(tag)
                && let Some(slot) = self.connections.remove(tag)
            {
                slot.client.push(DirectEvent::Lost);
            }
        }
    }

    /// Whether a worker with one request at a time has had one for long: others would wait behind it.
    fn is_stuck(&self, now_ms: u64) -> bool {
        self.is_sequential && self.leases.iter().any(|lease| lease.took_ms(now_ms) > LONG_MS)
    }

    /// Adopts requests that take long, and takes the other connections from a worker that they hold up. Returns whether
    /// one was adopted.
    pub(in crate::pool) fn relieve(&mut self, now_ms: u64) -> bool {
        let is_long =
            |slot: &&Slot| slot.taken.as_ref().is_some_and(|taken| taken.took_ms(now_ms) > LONG_MS);
        let long: Vec<Tag> =
            self.connections.slots.iter().flatten().filter(is_long).map(|slot| slot.tag).collect();
        let wanted: Vec<Tag> = self.connections.wanted().collect();
        wanted.into_iter().for_each(|tag| self.take_back(tag));
        let has_adopted = long.into_iter().filter(|tag| self.adopt(*tag)).count() > 0;
        if self.is_stuck(now_ms) {
            self.take_all_back();
        }
        has_adopted
    }
}
