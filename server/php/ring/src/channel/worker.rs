//! [`WorkerChannel`]: the worker's end of its rings.
//!
//! Used by the PHP host.

use super::backtrace::BacktraceSink;
use super::mapping::{self, Mapping, RingConsumer, RingProducer};
use crate::claim::State;
use crate::corrupt::Corrupt;
use crate::frame::{FrameHeader, FrameKind, Tag};
use crate::spsc::{Consumer, Producer, Sleep, Wake};
#[cfg(not(loom))]
use crate::sync::AtomicU32;
use crate::sync::Ordering;
use crate::waits::WaitCall;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The worker's end: reads requests, writes responses.
#[derive(Debug)]
pub struct WorkerChannel {
    requests: RingConsumer,
    responses: RingProducer,
    mapping: Arc<Mapping>,
}

impl WorkerChannel {
    /// Maps the memory that the gateway created, for this process only: children that it forks do
    /// not have it.
    ///
    /// # Errors
    /// `InvalidData` if it is not a channel of this version; otherwise `fstat(2)` or `mmap(2)`
    /// fails.
    pub fn map(memory: &OwnedFd) -> io::Result<Self> {
        let mapping = Mapping::open(memory)?;
        mapping.exclude_from_forks()?;
        Ok(Self::over(mapping))
    }

    /// The worker's end of this memory.
    pub(super) fn over(mapping: Arc<Mapping>) -> Self {
        Self {
            requests: mapping::request_ring(&mapping, Consumer::new),
            responses: mapping::response_ring(&mapping, Producer::new),
            mapping,
        }
    }

    /// The number of this worker; a successor has another one.
    pub fn epoch(&self) -> u32 {
        self.mapping.header().epoch.load(Ordering::Relaxed)
    }

    /// Where a worker that is about to die writes a number other than 0, before it rings the gateway's doorbell. For
    /// a signal handler: the place is valid for as long as the channel.
    #[cfg(not(loom))]
    pub fn dying_mark(&self) -> &AtomicU32 {
        &self.mapping.header().dying
    }

    /// Where a worker writes a number other than 0 while a debugger is attached to it: for as long as the channel.
    #[cfg(not(loom))]
    pub fn debugged_mark(&self) -> &AtomicU32 {
        &self.mapping.header().debugged
    }

    /// Starts the request whose frame was received; false if the gateway has withdrawn it.
    pub fn start(&self, tag: Tag) -> bool {
        let claims = &self.mapping.header().claims;
        // A request whose client has disconnected meanwhile is run, as it would have been a moment
        // earlier.
        claims.exchange(tag, State::Offered, State::Started) || claims.is(tag, State::Aborted)
    }

    /// Whether the client of this request has disconnected.
    pub fn is_aborted(&self, tag: Tag) -> bool {
        self.mapping.header().claims.is(tag, State::Aborted)
    }

    /// Whether the client of this request does not read for now.
    pub fn is_paused(&self, tag: Tag) -> bool {
        self.mapping.header().claims.is(tag, State::Paused)
    }

    /// Begins to read a request from a direct connection; false if it is the gateway's again.
    pub fn begin_direct(&self, tag: Tag) -> bool {
        self.mapping.header().claims.exchange(tag, State::Parked, State::Reading)
    }

    /// There was no request to read.
    pub fn end_direct(&self, tag: Tag) {
        self.mapping.header().claims.exchange(tag, State::Reading, State::Parked);
    }

    /// A request was read, and is run: from now on the connection has its tag.
    pub fn run_direct(&self, before: Tag, tag: Tag) {
        let claims = &self.mapping.header().claims;
        claims.exchange_tag((before, State::Reading), (tag, State::Direct));
    }

    /// Begins to write a response to the socket of a direct connection; false if the request is the gateway's to
    /// answer.
    pub fn begin_answer(&self, tag: Tag) -> bool {
        self.mapping.header().claims.exchange(tag, State::Direct, State::Answering)
    }

    /// The response was written; false if the connection has to go back to the gateway.
    pub fn end_answer(&self, tag: Tag) -> bool {
        self.mapping.header().claims.exchange(tag, State::Answering, State::Parked)
    }

    /// Has the gateway answer a request of a direct connection with its frames.
    pub fn pass_on(&self, tag: Tag) {
        self.mapping.header().claims.exchange(tag, State::Direct, State::Started);
    }

    /// A direct connection is the gateway's again. A [`FrameKind::Returned`] has to precede.
    pub fn give_back(&self, tag: Tag) {
        let claims = &self.mapping.header().claims;
        let _ = [State::Reading, State::Answering, State::Leaving]
            .into_iter()
            .find(|from| claims.exchange(tag, *from, State::Withdrawn));
    }

    /// Counts a wait during which the worker did other work.
    pub fn count_suspended(&self, call: WaitCall) {
        self.mapping.header().waits[call as usize].count_suspended();
    }

    /// Counts a wait that blocked the whole worker.
    pub fn count_blocked(&self, call: WaitCall, us: u64) {
        self.mapping.header().waits[call as usize].count_blocked(us);
    }

    /// Counts a rewind that took so long and copied back so many pages.
    pub fn count_rewind(&self, us: u64, pages: u64) {
        self.mapping.header().rewinds.count(us, pages);
    }

    /// Copies the next frame of the gateway into `payload`; `None` if there is none.
    ///
    /// # Errors
    /// [`Corrupt`]: exit.
    pub fn receive(&mut self, payload: &mut Vec<u8>) -> Result<Option<FrameHeader>, Corrupt> {
        self.requests.pop(payload)
    }

    /// Frees the space of received frames. After `Needed` ring the gateway's doorbell.
    pub fn release(&mut self) -> Wake {
        self.requests.release()
    }

    /// Call before blocking on the worker's doorbell for a frame.
    ///
    /// # Errors
    /// [`Corrupt`]: exit.
    pub fn prepare_sleep(&mut self) -> Result<Sleep, Corrupt> {
        self.requests.prepare_sleep()
    }

    /// Appends a frame; `Ok(false)` if the gateway has to make room first: publish, then
    /// [`WorkerChannel::prepare_wait`], then block on the worker's doorbell.
    ///
    /// # Errors
    /// [`Corrupt`]: exit.
    pub fn push(&mut self, kind: FrameKind, tag: Tag, parts: &[&[u8]]) -> Result<bool, Corrupt> {
        self.responses.push(FrameHeader::new(kind, tag), parts)
    }

    /// The payload that fits now, in bytes.
    ///
    /// # Errors
    /// [`Corrupt`]: exit.
    pub fn free_bytes(&mut self) -> Result<usize, Corrupt> {
        self.responses.free_bytes()
    }

    /// Publishes pushed frames to a gateway that is awake; see [`Producer::show`].
    pub fn show(&mut self) {
        self.responses.show();
    }

    /// Whether there is another frame.
    ///
    /// # Errors
    /// [`Corrupt`]: exit.
    pub fn has_more(&mut self) -> Result<bool, Corrupt> {
        self.requests.has_more()
    }

    /// Publishes pushed frames. After `Needed` ring the gateway's doorbell.
    pub fn publish(&mut self) -> Wake {
        self.responses.publish()
    }

    /// Call before blocking until `payload_bytes` are free.
    ///
    /// # Errors
    /// [`Corrupt`]: exit.
    pub fn prepare_wait(&mut self, payload_bytes: usize) -> Result<Sleep, Corrupt> {
        self.responses.prepare_wait(payload_bytes)
    }

    /// A handle for the signal handler that writes the backtrace.
    pub fn backtrace_sink(&self) -> BacktraceSink {
        BacktraceSink::new(self.mapping.clone())
    }
}
