//! One worker process as the gateway sees it: its place in life, its ring, doorbells and output.
//!
//! Owned by the keeper of a pool. Invariants: a number is never used twice, so that a late event
//! cannot be taken for one about a successor; the ring belongs to one life and is never reused.

pub mod life;

use crate::zygote::{Zygote, output_pipe};
use life::{Life, Stopping};
use outboard_ring::channel::{Capacities, GatewayChannel};
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::spsc::{Corrupt, Wake};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// A worker from the order to fork until its exit was reported.
#[derive(Debug)]
pub struct WorkerProcess {
    /// The number that the zygote knows it by.
    pub number: u64,
    /// Where it is in its life.
    pub life: Life,
    /// Known once the zygote reports the fork.
    pub pid: Option<i32>,
    /// Memory of its own when last looked at, in bytes ([`crate::memory::Resident::own_bytes`]).
    pub own_bytes: u64,
    /// The gateway's end of its rings.
    pub channel: GatewayChannel,
    /// Wakes it.
    pub doorbell: Doorbell,
    /// Rung by it, and by no other.
    answering: Option<Doorbell>,
    output: Option<OwnedFd>,
}

impl WorkerProcess {
    /// Makes the ring, the doorbells and the output pipe of worker `number` and orders the fork.
    ///
    /// # Errors
    /// What making descriptors reports (commonly `EMFILE`), or that the zygote takes no orders.
    pub fn order(
        zygote: &Zygote,
        number: u64,
        capacities: Capacities,
        now_ms: u64,
    ) -> io::Result<Self> {
        let (output, output_end) = output_pipe()?;
        let worker = Self::order_printing_to(&output_end, zygote, number, capacities, now_ms)?;
        Ok(Self { output: Some(output), ..worker })
    }

    /// The same for a worker that prints into a pipe of others.
    ///
    /// # Errors
    /// As [`WorkerProcess::order`].
    pub fn order_printing_to(
        output: &OwnedFd,
        zygote: &Zygote,
        number: u64,
        capacities: Capacities,
        now_ms: u64,
    ) -> io::Result<Self> {
        let (mut worker, memory) = Self::prepare(number, capacities, now_ms)?;
        let (awaited, answering) = (Awaited::new(&worker.doorbell)?, Doorbell::new()?);
        let bells = (awaited.as_fd(), answering.as_fd());
        zygote.fork(number, [memory.as_fd(), bells.0, bells.1, output.as_fd()])?;
        worker.answering = Some(answering);
        Ok(worker)
    }

    /// Makes what worker `number` needs, and leaves its fork to the caller; the descriptor is of
    /// its rings.
    ///
    /// # Errors
    /// What making descriptors reports.
    pub fn prepare(
        number: u64,
        capacities: Capacities,
        now_ms: u64,
    ) -> io::Result<(Self, OwnedFd)> {
        let (channel, memory) = GatewayChannel::create(capacities, epoch_of(number))?;
        let doorbell = Doorbell::new()?;
        let life = Life::new(now_ms);
        let worker = Self {
            number,
            life,
            pid: None,
            own_bytes: 0,
            channel,
            doorbell,
            answering: None,
            output: None,
        };
        Ok((worker, memory))
    }

    /// Tells this life of a worker from its predecessors' in frames.
    pub fn epoch(&self) -> u32 {
        epoch_of(self.number)
    }

    /// The non-blocking read end of what the worker prints; `None` when it was taken before, or
    /// the worker prints into a pipe of others.
    pub fn take_output(&mut self) -> Option<OwnedFd> {
        self.output.take()
    }

    /// The doorbell that it rings, for the loop to watch; `None` when it was taken before.
    pub fn take_answering(&mut self) -> Option<Doorbell> {
        self.answering.take()
    }

    /// The zygote reported the fork.
    pub fn forked(&mut self, pid: i32) {
        self.pid = Some(pid);
        self.life.forked();
    }

    /// Takes it out of service: one without a request is told to leave now, one with a request
    /// once that is over ([`life::Finished::Stop`]).
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn drain(&mut self, drain_deadline_ms: u64) -> Result<Stopping, Corrupt> {
        let stopping = self.life.drain(drain_deadline_ms);
        if stopping == Stopping::Now {
            self.tell_to_stop()?;
        }
        Ok(stopping)
    }

    /// Tells a draining worker to leave. A ring without room for this frame belongs to a worker
    /// that does not read: its drain deadline ends it.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn tell_to_stop(&mut self) -> Result<(), Corrupt> {
        if self.channel.push(FrameKind::Stop, Tag::default(), &[])?
            && self.channel.publish() == Wake::Needed
        {
            self.doorbell.ring();
        }
        Ok(())
    }
}

/// Numbers are never used twice; their low half is enough to tell successors apart.
fn epoch_of(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests;
