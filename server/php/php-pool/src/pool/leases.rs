//! The requests of one worker, found by the tag that its frames carry.
//!
//! Owned by the worker. A lease occupies a slot of the worker's ring page ([`Tag::slot`]), which is
//! reused; the generation distinguishes its requests. Invariant: a tag finds its own request or
//! nothing, in constant time.

use crate::exchange::{Assignment, Exchange};
use crate::worker_id::WorkerId;
use outboard_ring::channel::{LEASES, is_direct};
use outboard_ring::frame::Tag;
use outboard_supervisor::plan::deadline::Stage;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A request of a worker, running or in its backlog.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) tag: Tag,
    pub(crate) exchange: Rc<Exchange>,
    /// `None` while it is in the backlog.
    pub(crate) timing: Option<Timing>,
    /// Whether it has reached the threshold of the slow log.
    pub(crate) is_slow: bool,
    /// Its backtrace from before the deadline.
    pub(crate) earlier_backtrace: Option<String>,
    /// How far its deadline is enforced.
    pub(crate) stage: Stage,
    /// Whether its `Request` frame is in the ring.
    pub(crate) is_frame_sent: bool,
}

/// The start and the deadline of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) started_ms: u64,
    pub(crate) deadline_ms: u64,
}

impl Timing {
    /// Of a request that starts now and may take so long.
    pub(crate) fn starting(now_ms: u64, longest_ms: u64) -> Self {
        Self { started_ms: now_ms, deadline_ms: now_ms.saturating_add(longest_ms) }
    }
}

impl Lease {
    /// A request that is assigned to this worker now.
    fn new(tag: Tag, exchange: Rc<Exchange>, timing: Option<Timing>, worker: WorkerId) -> Self {
        exchange.assignment.set(Some(Assignment { worker, tag }));
        Self {
            tag,
            exchange,
            timing,
            is_slow: false,
            earlier_backtrace: None,
            stage: Stage::InTime,
            is_frame_sent: false,
        }
    }

    /// When it becomes slow by this threshold; `None` if it is already, or never will be.
    pub(crate) fn slow_at_ms(&self, slow_ms: Option<u64>) -> Option<u64> {
        if self.is_slow || self.stage != Stage::InTime {
            return None;
        }
        Some(self.timing?.started_ms.saturating_add(slow_ms?))
    }

    /// How long it has been running.
    pub(crate) fn took_ms(&self, now_ms: u64) -> u64 {
        self.timing.map_or(0, |timing| now_ms.saturating_sub(timing.started_ms))
    }
}

/// The leases of one worker.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// By slot; as many as there were requests at a time.
    slots: Vec<Option<Lease>>,
    /// Slots without a request. The last one is reused first, so that few are touched.
    free: Vec<u32>,
    last_generation: u32,
    /// Adopted requests of direct connections, by slot.
    adopted: BTreeMap<u32, Lease>,
}

impl Leases {
    /// Adds a request and assigns it to the worker. The caller ensures that there are fewer than
    /// [`LEASES`].
    pub(crate) fn add(
        &mut self,
        exchange: Rc<Exchange>,
        timing: Option<Timing>,
        worker: WorkerId,
    ) -> Tag {
        let slot = self.free.pop().unwrap_or_else(|| {
            debug_assert!(self.slots.len() < LEASES);
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.last_generation = self.last_generation.wrapping_add(1);
        let tag = Tag { slot, generation: self.last_generation };
        self.slots[slot as usize] = Some(Lease::new(tag, exchange, timing, worker));
        tag
    }

    /// Adds a request that a direct connection has brought.
    pub(crate) fn adopt(
        &mut self,
        tag: Tag,
        exchange: Rc<Exchange>,
        timing: Timing,
        worker: WorkerId,
    ) {
        let lease = Lease::new(tag, exchange, Some(timing), worker);
        let earlier = self.adopted.insert(tag.slot, Lease { is_frame_sent: true, ..lease });
        debug_assert!(earlier.is_none(), "{tag:?} is in use");
    }

    /// Whether this slot has a request.
    pub(crate) fn has_slot(&self, slot: u32) -> bool {
        self.adopted.contains_key(&slot)
    }

    pub(crate) fn get(&self, tag: Tag) -> Option<&Lease> {
        let lease = match is_direct(tag) {
            true => self.adopted.get(&tag.slot),
            false => self.slots.get(tag.slot as usize)?.as_ref(),
        };
        lease.filter(|lease| lease.tag == tag)
    }

    pub(crate) fn get_mut(&mut self, tag: Tag) -> Option<&mut Lease> {
        let lease = match is_direct(tag) {
            true => self.adopted.get_mut(&tag.slot),
            false => self.slots.get_mut(tag.slot as usize)?.as_mut(),
        };
        lease.filter(|lease| lease.tag == tag)
    }

    pub(crate) fn remove(&mut self, tag: Tag) -> Option<Lease> {
        if is_direct(tag) {
            self.get(tag)?;
            return self.adopted.remove(&tag.slot);
        }
        let lease = self.slots.get_mut(tag.slot as usize)?.take_if(|lease| lease.tag == tag)?;
        self.free.push(tag.slot);
        Some(lease)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.slots.iter().flatten().chain(self.adopted.values())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Lease> {
        self.slots.iter_mut().flatten().chain(self.adopted.values_mut())
    }

    /// All tags, oldest first.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        let mut tags: Vec<Tag> = self.iter().map(|lease| lease.tag).collect();
        // Relative to the last one, so that the order survives a wrap-around.
        tags.sort_by_key(|tag| {
            std::cmp::Reverse(self.last_generation.wrapping_sub(tag.generation))
        });
        tags
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len() + self.adopted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_buffer::RequestBody;

    const WORKER: WorkerId = WorkerId { pool: 1, slot: 2, number: 3 };

    fn with_leases(test: impl FnOnce(Leases) + 'static) {
        outboard_reactor::run(async { test(Leases::default()) }).unwrap();
    }

    fn exchange() -> Rc<Exchange> {
        Rc::new(Exchange::new(Vec::new(), RequestBody::empty(), 1, 0, 1))
    }

    #[test]
    fn slots_are_reused_but_tags_are_not() {
        with_leases(|mut leases| {
            let first = leases.add(exchange(), None, WORKER);
            let second = leases.add(exchange(), None, WORKER);
            assert!(leases.remove(first).is_some() && leases.remove(first).is_none());
            let third = leases.add(exchange(), None, WORKER);
            assert_eq!((third.slot, leases.len()), (first.slot, 2));
            assert!(leases.get(first).is_none() && leases.get_mut(first).is_none());
            assert_eq!(leases.get(third).unwrap().tag, third);
            assert_eq!(leases.tags(), [second, third]);
        });
    }

    #[test]
    fn an_exchange_knows_its_worker_and_tag() {
        with_leases(|mut leases| {
            let exchange = exchange();
            let tag = leases.add(exchange.clone(), None, WORKER);
            assert_eq!(exchange.assignment.get(), Some(Assignment { worker: WORKER, tag }));
        });
    }

    #[test]
    fn the_order_of_tags_survives_a_wrap_around() {
        with_leases(|mut leases| {
            leases.last_generation = u32::MAX - 1;
            let tags: Vec<Tag> = (0..4).map(|_| leases.add(exchange(), None, WORKER)).collect();
            assert!(tags[3].generation < tags[0].generation);
            assert_eq!(leases.tags(), tags);
        });
    }

    #[test]
    fn foreign_tags_find_nothing() {
        with_leases(|mut leases| {
            let tag = leases.add(exchange(), None, WORKER);
            for foreign in [
                Tag { slot: u32::MAX, ..tag },
                Tag { slot: 1, ..tag },
                Tag { generation: tag.generation + 1, ..tag },
            ] {
                assert!(leases.get(foreign).is_none() && leases.remove(foreign).is_none());
            }
            assert_eq!(leases.len(), 1);
        });
    }
}
