//! The requests of one worker, found by the tag that its frames carry.
//!
//! Owned by the worker. A lease is a place in the worker's ring page ([`Tag::slot`]), used again
//! and again; the generation tells its requests apart. Invariant: a tag finds the request that it
//! was made for or nothing, in constant time.

use crate::exchange::{Exchange, Place};
use outboard_ring::channel::LEASES;
use outboard_ring::frame::Tag;
use outboard_supervisor::plan::deadline::Stage;
use std::rc::Rc;

/// A request that a worker has, or that lies ahead in its ring.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) tag: Tag,
    pub(crate) exchange: Rc<Exchange>,
    /// Since when its time runs; `None` while it lies ahead of the worker.
    pub(crate) run: Option<Run>,
    /// How far the enforcement of its deadline has come.
    pub(crate) stage: Stage,
    /// Whether its `Request` frame is in the ring.
    pub(crate) frame_sent: bool,
}

/// The time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) since_ms: u64,
    pub(crate) deadline_ms: u64,
}

impl Lease {
    /// How long the worker has had it.
    pub(crate) fn took_ms(&self, now_ms: u64) -> u64 {
        self.run.map_or(0, |run| now_ms.saturating_sub(run.since_ms))
    }
}

/// The leases of one worker.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// By slot; as long as there ever were requests at a time.
    slots: Vec<Option<Lease>>,
    /// Slots without a request; the last was used last, so that few are touched.
    free: Vec<u32>,
    last_generation: u32,
}

impl Leases {
    /// Makes room for one more. The caller keeps below [`LEASES`].
    pub(crate) fn add(
        &mut self,
        exchange: Rc<Exchange>,
        run: Option<Run>,
        place: impl FnOnce(Tag) -> Place,
    ) -> Tag {
        let slot = self.free.pop().unwrap_or_else(|| {
            debug_assert!(self.slots.len() < LEASES);
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.last_generation = self.last_generation.wrapping_add(1);
        let tag = Tag { slot, generation: self.last_generation };
        exchange.place.set(Some(place(tag)));
        let stage = Stage::InTime;
        let lease = Lease { tag, exchange, run, stage, frame_sent: false };
        self.slots[slot as usize] = Some(lease);
        tag
    }

    pub(crate) fn get(&self, tag: Tag) -> Option<&Lease> {
        self.slots.get(tag.slot as usize)?.as_ref().filter(|lease| lease.tag == tag)
    }

    pub(crate) fn get_mut(&mut self, tag: Tag) -> Option<&mut Lease> {
        self.slots.get_mut(tag.slot as usize)?.as_mut().filter(|lease| lease.tag == tag)
    }

    pub(crate) fn remove(&mut self, tag: Tag) -> Option<Lease> {
        let lease = self.slots.get_mut(tag.slot as usize)?.take_if(|lease| lease.tag == tag)?;
        self.free.push(tag.slot);
        Some(lease)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.slots.iter().flatten()
    }

    /// The tags of all, oldest first.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        let mut tags: Vec<Tag> = self.iter().map(|lease| lease.tag).collect();
        // Counted from the last one, so that their order outlives a wrap.
        tags.sort_by_key(|tag| {
            std::cmp::Reverse(self.last_generation.wrapping_sub(tag.generation))
        });
        tags
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
