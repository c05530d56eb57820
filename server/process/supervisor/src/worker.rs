//! One worker process as the gateway sees it: its state, ring, doorbells and output.
//!
//! Owned by a pool. Invariants: a number is never reused, so a late event cannot be mistaken for
//! one of a successor; a ring belongs to one worker.

pub mod lifecycle;

use crate::zygote::{Zygote, output_pipe};
use lifecycle::{Lifecycle, Stopping, Transition};
use outboard_ring::channel::{Capacities, GatewayChannel};
use outboard_ring::control;
use outboard_ring::direct::Greeting;
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::spsc::{Corrupt, Wake};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A worker, from the order to fork until its exit is reported.
#[derive(Debug)]
pub struct WorkerProcess {
    /// Its number in messages of the zygote.
    pub number: u64,
    /// Its state.
    pub lifecycle: Lifecycle,
    /// Set when the zygote reports the fork.
    pub pid: Option<i32>,
    /// Its private memory at the last look, in bytes ([`crate::memory::Resident::own_bytes`]).
    pub own_bytes: u64,
    /// The gateway's end of its rings.
    pub channel: GatewayChannel,
    /// Wakes it.
    pub doorbell: Doorbell,
    /// Rung by this worker only.
    worker_doorbell: Option<Doorbell>,
    output: Option<OwnedFd>,
    /// What direct connections are sent over; `None` if the app has none.
    direct: Option<OwnedFd>,
}

impl WorkerProcess {
    /// Creates the ring, the doorbells and the output pipe of worker `number`, and orders the fork. `has_direct`:
    /// it may get direct connections.
    ///
    /// # Errors
    /// Descriptors cannot be created (commonly `EMFILE`), or the zygote does not accept orders.
    pub fn fork(
        zygote: &Zygote,
        number: u64,
        capacities: Capacities,
        has_direct: bool,
        now_ms: u64,
    ) -> io::Result<Self> {
        let (output, output_end) = output_pipe()?;
        let (worker, memory) = Self::prepare(number, capacities, now_ms)?;
        let (awaited, worker_doorbell) = (Awaited::new(&worker.doorbell)?, Doorbell::new()?);
        let bells = (awaited.as_fd(), worker_doorbell.as_fd());
        let sockets = if has_direct { Some(control::pair()?) } else { None };
        let mut descriptors = vec![memory.as_fd(), bells.0, bells.1, output_end.as_fd()];
        descriptors.extend(sockets.iter().map(|(_, theirs)| theirs.as_fd()));
        zygote.fork(number, &descriptors)?;
        let worker_doorbell = Some(worker_doorbell);
        let direct = sockets.map(|(ours, _)| ours);
        Ok(Self { output: Some(output), worker_doorbell, direct, ..worker })
    }

    /// Sets the socket that direct connections are sent over, of which the worker has the other end.
    pub fn set_direct(&mut self, socket: OwnedFd) {
        self.direct = Some(socket);
    }

    /// Creates everything but the process of worker `number`; the descriptor is that of its rings.
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
        let lifecycle = Lifecycle::new(now_ms);
        let worker = Self {
            number,
            lifecycle,
            pid: None,
            own_bytes: 0,
            channel,
            doorbell,
            worker_doorbell: None,
            output: None,
            direct: None,
        };
        Ok((worker, memory))
    }

    /// The epoch of this worker in frames.
    pub fn epoch(&self) -> u32 {
        epoch_of(self.number)
    }

    /// The non-blocking read end of the worker's output; `None` if it was taken before, or the
    /// worker writes to an existing pipe.
    pub fn take_output(&mut self) -> Option<OwnedFd> {
        self.output.take()
    }

    /// The doorbell that the worker rings, for epoll; `None` if it was taken before.
    pub fn take_worker_doorbell(&mut self) -> Option<Doorbell> {
        self.worker_doorbell.take()
    }

    /// Sends the worker a direct connection.
    ///
    /// # Errors
    /// `sendmsg(2)`: the worker is behind, or gone, or gets none.
    pub fn send_connection(&self, greeting: &Greeting, socket: BorrowedFd<'_>) -> io::Result<()> {
        let direct = self.direct.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        control::try_send(direct, greeting, &[socket])
    }

    /// Handles the report of the fork.
    pub fn forked(&mut self, pid: i32) {
        self.pid = Some(pid);
        self.lifecycle.forked();
    }

    /// Takes the worker out of service: it exits now if it has no request, otherwise after its last
    /// one ([`lifecycle::RequestEnd::Stop`]).
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn drain(&mut self, drain_deadline_ms: u64) -> Result<Stopping, Corrupt> {
        let stopping = self.lifecycle.drain(drain_deadline_ms);
        if stopping == Stopping::Now {
            self.send_stop()?;
        }
        Ok(stopping)
    }

    /// Takes the worker out of service if it has announced its death. Returns whether it has now.
    pub fn note_death(&mut self, now_ms: u64) -> bool {
        self.channel.is_dying() && self.lifecycle.dying(now_ms) == Transition::Applied
    }

    /// Sends `Stop` to a draining worker. A worker whose ring has no room for it does not read, and
    /// is ended by its drain deadline.
    ///
    /// # Errors
    /// [`Corrupt`]: kill the worker.
    pub fn send_stop(&mut self) -> Result<(), Corrupt> {
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
