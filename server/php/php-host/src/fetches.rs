//! Requests that the gateway sends for this worker's scripts, and tasks that it queues.
//!
//! Used by [`crate::events`]. Invariants: a result goes to the call that began the fetch and to no
//! later one in the same slot; the gateway receives each cancellation once.

use crate::kept_memory::wipe;
use crate::link::Link;
use crate::open_span;
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::operation::{Call, Completion, Failure, FetchedHead, Operation, Part};
use outboard_ring::spsc::Corrupt;

/// What was received of a fetch.
#[derive(Debug, Default)]
struct PartialResponse {
    /// The completion with the head, and a small body.
    head: Vec<u8>,
    /// A larger body; after a failure, the message.
    body: Vec<u8>,
    failure: Option<Failure>,
}

#[derive(Debug)]
pub(crate) enum FetchResult<'a> {
    Response(FetchedHead<'a>, &'a [u8]),
    /// With a message.
    Failed(Failure, &'a [u8]),
}

impl<'a> FetchResult<'a> {
    /// Reads a completion that holds a whole result, else returns `None`.
    pub(crate) fn read(completion: &'a [u8]) -> Option<Self> {
        match Completion::decode(completion).ok()?.part {
            Part::Whole(head, body) => Some(Self::Response(head, body)),
            Part::Failed { failure, message } => Some(Self::Failed(failure, message.as_bytes())),
            _ => None,
        }
    }
}

impl PartialResponse {
    fn view(&self) -> Option<FetchResult<'_>> {
        if let Some(failure) = self.failure {
            return Some(FetchResult::Failed(failure, &self.body));
        }
        match Completion::decode(&self.head).ok()?.part {
            Part::Whole(head, body) => Some(FetchResult::Response(head, body)),
            Part::Head(head) => Some(FetchResult::Response(head, &self.body)),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
struct Fetch {
    generation: u32,
    in_use: bool,
    complete: bool,
    waiter: u64,
    response: PartialResponse,
}

#[derive(Debug, Default)]
pub(crate) struct Fetches {
    slots: Vec<Fetch>,
    free: Vec<u32>,
    scratch: Vec<u8>,
}

fn id_of(tag: Tag) -> u64 {
    u64::from(tag.generation) << 32 | u64::from(tag.slot)
}

fn tag_of(id: u64) -> Tag {
    Tag { slot: id as u32, generation: (id >> 32) as u32 }
}

impl Fetches {
    /// Sends a fetch to the gateway, or a task, which has the same kind of result.
    pub(crate) fn begin(
        &mut self,
        link: &mut Link,
        request: Tag,
        waiter: u64,
        call: Call<'_>,
        body: &[u8],
    ) -> Result<u64, Corrupt> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Fetch::default());
            self.slots.len() as u32 - 1
        });
        let fetch = &mut self.slots[slot as usize];
        fetch.generation = fetch.generation.wrapping_add(1);
        let id = Tag { slot, generation: fetch.generation };
        *fetch = Fetch { generation: id.generation, in_use: true, waiter, ..Fetch::default() };
        self.send(link, request, Operation { id, span: open_span::number(), call })?;
        for piece in body.chunks(link.largest_piece_bytes / 2) {
            self.send(link, request, Operation { id, span: 0, call: Call::FetchBody(piece) })?;
        }
        link.publish();
        Ok(id_of(id))
    }

    fn send(
        &mut self,
        link: &mut Link,
        request: Tag,
        operation: Operation<'_>,
    ) -> Result<(), Corrupt> {
        operation.encode(&mut self.scratch);
        let mut sent = Ok(());
        if self.scratch.len() > link.largest_piece_bytes {
            self.refuse(operation.id, "its URL and headers are too long");
        } else {
            sent = link.send_always(FrameKind::Operation, request, &[&self.scratch]);
        }
        wipe(&mut self.scratch);
        sent
    }

    fn refuse(&mut self, id: Tag, why: &str) {
        if let Some(fetch) = self.get_mut(id) {
            fetch.response.failure = Some(Failure::BadCall);
            fetch.response.body = why.as_bytes().to_vec();
            fetch.complete = true;
        }
    }

    fn get_mut(&mut self, id: Tag) -> Option<&mut Fetch> {
        let fetch = self.slots.get_mut(id.slot as usize)?;
        (fetch.in_use && fetch.generation == id.generation).then_some(fetch)
    }

    /// Receives a completion; returns the waiter to wake if the result is complete.
    pub(crate) fn receive(&mut self, payload: Vec<u8>) -> Result<Option<u64>, Corrupt> {
        let completion = Completion::decode(&payload)?;
        let Some(fetch) = self.get_mut(completion.id) else { return Ok(None) };
        let response = &mut fetch.response;
        match completion.part {
            Part::Head(_) => {
                response.head = payload;
                return Ok(None);
            }
            Part::Body(bytes) => {
                response.body.extend_from_slice(bytes);
                return Ok(None);
            }
            Part::Whole(..) => response.head = payload,
            // A protocol error of the gateway: not the result of a fetch.
            Part::Number(_) | Part::Queried(_) => response.failure = Some(Failure::Protocol),
            // A protocol error of the gateway: a body without a head.
            Part::End if response.head.is_empty() => response.failure = Some(Failure::Protocol),
            Part::End => {}
            Part::Failed { failure, message } => {
                response.failure = Some(failure);
                response.body = message.as_bytes().to_vec();
            }
        }
        fetch.complete = true;
        Ok(Some(fetch.waiter))
    }

    /// The result, once it is complete.
    pub(crate) fn result(&mut self, id: u64) -> Option<FetchResult<'_>> {
        self.get_mut(tag_of(id)).filter(|fetch| fetch.complete)?.response.view()
    }

    /// Wakes this waiter instead: a coroutine has another one in each wait.
    pub(crate) fn await_by(&mut self, id: u64, waiter: u64) {
        if let Some(fetch) = self.get_mut(tag_of(id)) {
            fetch.waiter = waiter;
        }
    }

    /// Frees a fetch; an incomplete one is cancelled in the gateway.
    pub(crate) fn free(&mut self, link: &mut Link, id: u64) -> Result<(), Corrupt> {
        let tag = tag_of(id);
        let Some(fetch) = self.get_mut(tag) else { return Ok(()) };
        let complete = fetch.complete;
        fetch.in_use = false;
        fetch.response = PartialResponse::default();
        self.free.push(tag.slot);
        if complete {
            return Ok(());
        }
        self.send(link, Tag::default(), Operation { id: tag, span: 0, call: Call::Forget })?;
        link.publish();
        Ok(())
    }

    /// Frees all fetches.
    pub(crate) fn free_all(&mut self, link: &mut Link) -> Result<(), Corrupt> {
        for slot in 0..self.slots.len() {
            let fetch = &self.slots[slot];
            if fetch.in_use {
                let id = Tag { slot: slot as u32, generation: fetch.generation };
                self.free(link, id_of(id))?;
            }
        }
        Ok(())
    }
}
