//! The task of a connection: reads, cuts into messages, writes.
//!
//! The gateway calls [`serve`] for each accepted connection. Invariants: it reads no more than its worker acknowledges,
//! and no more than the app has memory for; a client that sent the end of its stream still receives the
//! responses to what it has sent before.

use crate::framing::{Decoder, Framing, Malformed};
use crate::measure::Next;
use crate::server::StreamServer;
use crate::session::{Closing, Session};
use crate::settings::PortSettings;
use outboard_buffer::Held;
use outboard_http_server::{Client, ConnectionEntry, PeerInfo, Upgraded};
use outboard_log::{Level, Wall};
use outboard_reactor::{Peer, current_task, now_ms, set_deadline, wake};
use outboard_ring::stream::{EventKind, Peer as SentPeer};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

/// Room for one read.
const READ_BYTES: usize = 64 << 10;
/// How often a connection without memory tries again.
const RETRY_MS: u64 = 50;
/// The longest time in which a client reads nothing of its output.
const WRITE_TIMEOUT_MS: u64 = 60_000;
/// Reads and writes of one turn.
const STEPS: usize = 16;

struct Connection {
    server: Rc<StreamServer>,
    session: Rc<Session>,
    stream: Upgraded,
    decoder: Decoder,
    held: Held,
    /// Whether the client has sent the end of its stream.
    is_read: bool,
    /// Whether the client has reset it.
    is_gone: bool,
    /// Whether its end was announced to the worker.
    is_announced: bool,
    /// Since when it has not read its output.
    stuck_since_ms: Option<u64>,
}

/// What a step has done.
#[derive(PartialEq)]
enum Step {
    Progress,
    Waits,
    /// It waits, and no event of the socket ends that.
    Blocked,
}

/// Serves a connection of the program's port with this index until it ends.
pub async fn serve(server: Rc<StreamServer>, port: u16, stream: Upgraded) {
    let client = stream.client().clone();
    let Client { peer, entry, .. } = &*client;
    if !poll_fn(|_| poll_joined(&server, &stream, entry)).await {
        return;
    }
    let address = match peer.address {
        Peer::Tcp(address) => Some(address),
        Peer::Unix => None,
    };
    let local_port = stream.local_address().map_or(0, |local| local.port());
    let Some(session) = server.open(port, address, local_port, stream.is_encrypted()) else {
        return;
    };
    if session.settings.borrow().has_delay {
        stream.set_delay();
    }
    stream.keep_alive();
    let held = server.memory.hold(0);
    let mut connection = Connection {
        server: server.clone(),
        session,
        stream,
        decoder: Decoder::default(),
        held,
        is_read: false,
        is_gone: false,
        is_announced: false,
        stuck_since_ms: None,
    };
    connection.open(peer);
    poll_fn(|_| connection.poll(entry)).await;
    connection.end();
}

/// Waits for the first worker; false if the connection has to close before.
fn poll_joined(server: &StreamServer, stream: &Upgraded, entry: &ConnectionEntry) -> Poll<bool> {
    if server.has_settings() {
        return Poll::Ready(true);
    }
    entry.set_idle();
    if entry.must_close() || stream.is_draining() { Poll::Ready(false) } else { Poll::Pending }
}

impl Connection {
    fn open(&self, peer: &PeerInfo) {
        if self.server.has_events() {
            let mut bytes = Vec::new();
            let (port, local_port) = (peer.port(), self.session.local_port);
            SentPeer { port, local_port, address: &peer.text }.encode(&mut bytes);
            self.server.enqueue(&self.session, EventKind::Opened, bytes);
        }
    }

    fn poll(&mut self, entry: &ConnectionEntry) -> Poll<()> {
        // Registers this task.
        while self.session.changed.poll().is_ready() {}
        for _ in 0..STEPS {
            match self.step() {
                Ok(Some(Step::Progress)) => continue,
                Ok(Some(step)) => return self.wait(entry, step),
                Ok(None) => return Poll::Ready(()),
                Err(_) => {
                    self.is_gone = true;
                    self.session.closing.set(Closing::Reset);
                    return Poll::Ready(());
                }
            }
        }
        wake(current_task());
        Poll::Pending
    }

    /// `None`: it ends.
    fn step(&mut self) -> io::Result<Option<Step>> {
        if self.session.closing.get() == Closing::Reset {
            self.stream.reset();
            return Ok(None);
        }
        let wrote = self.write()?;
        if self.session.closing.get() == Closing::Flush {
            return Ok((wrote != Step::Waits).then_some(wrote));
        }
        if self.decode().is_err() {
            self.session.close(Closing::Reset);
            return Ok(Some(Step::Progress));
        }
        // What has arrived is decoded before, so nothing is left but the start of a message.
        if (self.is_read || self.stream.is_draining()) && self.session.unacknowledged.get() == 0 {
            self.session.close(Closing::Flush);
            return Ok(Some(Step::Progress));
        }
        let read = self.read()?;
        if wrote == Step::Progress || read == Step::Progress {
            return Ok(Some(Step::Progress));
        }
        if wrote == Step::Blocked {
            // Both directions share a place for what is waited for.
            let wants_reads = read == Step::Waits;
            if wants_reads && self.stream.poll_changed().is_ready() {
                return Ok(Some(Step::Progress));
            }
        }
        Ok(Some(read))
    }

    /// `Progress`: bytes were written; `Waits`: there are none; `Blocked`: the client does not read.
    fn write(&mut self) -> io::Result<Step> {
        let mut output = self.session.output.borrow_mut();
        let mut step = Step::Waits;
        if !output.pending().is_empty() {
            match self.stream.poll_write(output.pending())? {
                Poll::Ready(count) => {
                    output.advance(count);
                    self.server.count(|counts| counts.sent_bytes += count as u64);
                    self.session.last_send_s.set(Wall::now().unix_s());
                    self.stuck_since_ms = None;
                    step = Step::Progress;
                }
                Poll::Pending => {
                    self.stuck_since_ms.get_or_insert_with(now_ms);
                    step = Step::Blocked;
                }
            }
        }
        let is_drained = output.pending().len() <= self.session.settings.borrow().low_bytes;
        drop(output);
        if is_drained && !self.session.waiting.borrow().is_empty() {
            for process in self.session.waiting.take() {
                self.server.notify(process, EventKind::Drained, &self.session);
            }
        }
        Ok(step)
    }

    /// `Progress`: something has arrived; `Waits`: the client sends nothing; `Blocked`: it is not read.
    fn read(&mut self) -> io::Result<Step> {
        let may_read = !self.is_read
            && !self.session.is_paused.get()
            && !self.stream.is_draining()
            && self.session.has_room()
            && !self.server.memory.is_full();
        self.session.is_blocked.set(!may_read);
        if !may_read {
            return Ok(Step::Blocked);
        }
        let mut buffer = self.server.read_buffer.take();
        buffer.clear();
        buffer.reserve(READ_BYTES);
        let read = self.stream.poll_read(&mut buffer);
        let step = match read {
            Poll::Pending => Ok(Step::Waits),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(0)) => {
                self.is_read = true;
                self.session.is_blocked.set(true);
                self.announce_end(false);
                Ok(Step::Progress)
            }
            Poll::Ready(Ok(count)) => {
                self.received(count);
                self.decoder.push(&buffer);
                Ok(Step::Progress)
            }
        };
        self.server.read_buffer.replace(buffer);
        step
    }

    fn received(&self, count: usize) {
        self.session.last_receive_ms.set(now_ms());
        self.session.last_receive_s.set(Wall::now().unix_s());
        self.server.count(|counts| counts.received_bytes += count as u64);
    }

    /// Queues the complete messages.
    fn decode(&mut self) -> Result<(), ()> {
        while self.session.has_room() {
            let settings = self.session.settings.borrow().clone();
            match self.next_message(&settings) {
                Ok(Some(message)) => {
                    self.server.enqueue(&self.session, EventKind::Data, message);
                }
                Ok(None) => break,
                Err(malformed) => {
                    let text = format!(
                        "connection {} is closed: {malformed:?}, package_max_length = {}",
                        self.session.id, settings.package_bytes
                    );
                    self.server.log(Level::Info, &text);
                    return Err(());
                }
            }
        }
        self.held.set(self.decoder.capacity_bytes());
        Ok(())
    }

    fn next_message(&mut self, settings: &PortSettings) -> Result<Option<Vec<u8>>, Malformed> {
        if settings.framing != Framing::Measured {
            return self.decoder.next(&settings.framing, settings.package_bytes);
        }
        match self.session.measure.next(self.decoder.pending_bytes()) {
            Next::Wait => Ok(None),
            Next::Close => Err(Malformed::BadLength),
            Next::Request(count) => {
                let bytes = self.decoder.pending(count).to_vec();
                let item = self.server.enqueue(&self.session, EventKind::Measure, bytes);
                self.session.measure.requested(item, count);
                Ok(None)
            }
            Next::Take(length) => {
                let message = self.decoder.next_of(Some(length), settings.package_bytes)?;
                if message.is_some() {
                    self.session.measure.taken();
                }
                Ok(message)
            }
        }
    }

    fn wait(&mut self, entry: &ConnectionEntry, step: Step) -> Poll<()> {
        let now = now_ms();
        let is_idle = self.session.unacknowledged.get() == 0
            && self.session.output.borrow().pending().is_empty();
        match is_idle && !self.session.is_protected.get() {
            true => entry.set_idle(),
            false => entry.set_busy(),
        }
        let stuck_ms = self.stuck_since_ms.map_or(u64::MAX, |since_ms| since_ms + WRITE_TIMEOUT_MS);
        // One that is closing already only has to write its output.
        let silent_ms = if self.session.is_open() { self.silent_at_ms() } else { u64::MAX };
        let must_close = self.session.is_open() && entry.must_close();
        if must_close || stuck_ms <= now || silent_ms <= now {
            self.session.close(if stuck_ms <= now { Closing::Reset } else { Closing::Flush });
            wake(current_task());
            return Poll::Pending;
        }
        let mut deadline_ms = stuck_ms.min(silent_ms);
        if step == Step::Blocked && self.server.memory.is_full() {
            deadline_ms = deadline_ms.min(now + RETRY_MS);
        }
        set_deadline(deadline_ms);
        Poll::Pending
    }

    /// When the client has been silent for too long.
    fn silent_at_ms(&self) -> u64 {
        match self.session.settings.borrow().idle_ms {
            0 => u64::MAX,
            _ if self.session.is_protected.get() => u64::MAX,
            idle_ms => self.session.last_receive_ms.get().saturating_add(idle_ms),
        }
    }

    fn announce_end(&mut self, is_by_server: bool) {
        if !std::mem::replace(&mut self.is_announced, true) && self.server.has_events() {
            self.server.enqueue(&self.session, EventKind::Closed, vec![u8::from(is_by_server)]);
        }
    }

    /// The connection has ended: its session stays until the worker has learned of it.
    fn end(mut self) {
        let is_reset = self.session.closing.get() == Closing::Reset;
        if !is_reset {
            self.stream.end();
        }
        self.session.close(if is_reset { Closing::Reset } else { Closing::Flush });
        self.announce_end(!self.is_gone);
        self.session.output.borrow_mut().clear();
        for process in self.session.waiting.take() {
            self.server.notify(process, EventKind::Drained, &self.session);
        }
        self.session.is_connected.set(false);
        self.server.remove_if_over(&self.session);
    }
}
