//! [`Direct`]: the direct connections of a worker: client connections that it reads from and answers on by itself.
//!
//! Owned by the worker's link, fed by [`crate::events`]. The gateway has each socket as well
//! (`outboard_ring::direct`). Invariants: a request is run only if it is complete, plain, and like one that the gateway
//! has routed a moment ago ([`templates`]); everything else goes back with the bytes that were read; what the socket
//! does not take at once goes back too, so that no client holds PHP; a word of shared memory says whose move it is.

mod answer;
mod plain;
mod templates;

use crate::kept_memory::wipe;
use crate::poller::{self, DIRECT};
use answer::Composer;
use outboard_http1::{HeadLimits, HeadStatus, RequestHead};
use outboard_ring::channel::{DIRECT_CONNECTIONS, LEASES, WorkerChannel, is_direct};
use outboard_ring::control;
use outboard_ring::direct::{Answered, Greeting, Returned, Taken};
use outboard_ring::frame::{FrameKind, Tag};
use outboard_ring::response::{Done, Outcome};
use outboard_ring::spsc::Corrupt;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};
use templates::Templates;

/// What is read at once. A longer request goes back.
const READ_BYTES: usize = 16 << 10;
/// The frames of so many bytes are worth a look of the gateway, whose ring they fill.
const UNSEEN_BYTES: usize = 64 << 10;

/// The way to the gateway.
pub(crate) trait Frames {
    fn channel(&self) -> &WorkerChannel;

    /// Sends a frame, waiting for room.
    fn push_frame(&mut self, kind: FrameKind, tag: Tag, parts: &[&[u8]]) -> Result<(), Corrupt>;

    /// Publishes what the gateway needs to know when it looks; `is_urgent`: that is now.
    fn publish_quietly(&mut self, is_urgent: bool);

    /// The body of a request, which came with its head.
    fn add_body(&mut self, tag: Tag, body: Vec<u8>);
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Direct {
    socket: OwnedFd,
    epoll: Option<Rc<OwnedFd>>,
    connections: Vec<Option<Connection>>,
    /// Connections that may have a request, by their place, each once.
    ready: VecDeque<usize>,
    /// Connections that this process could not take.
    refused: Vec<Tag>,
    templates: Templates,
    head: RequestHead,
    input: Vec<u8>,
    composer: Composer,
    unseen_bytes: usize,
}

#[derive(Debug)]
struct Connection {
    tag: Tag,
    socket: OwnedFd,
    greeting: Greeting,
    /// What was read behind the last request.
    unread: Vec<u8>,
    /// Whether more can be read, as far as is known.
    is_readable: bool,
    /// Whether the client has closed its side: the end is there to be read.
    has_ended: bool,
    /// Whether it is among those that may have a request.
    is_ready: bool,
    is_running: bool,
}

/// Wall-clock time, as the gateway has it in logs.
fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

fn place(tag: Tag) -> usize {
    tag.slot as usize - LEASES
}

impl Direct {
    /// The connections that come over this socket.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket,
            epoll: None,
            connections: Vec::new(),
            ready: VecDeque::new(),
            refused: Vec::new(),
            templates: Templates::default(),
            head: RequestHead::new(),
            input: Vec::with_capacity(READ_BYTES),
            composer: Composer::default(),
            unseen_bytes: 0,
        })
    }

    /// A request of the gateway is a template.
    pub(crate) fn learn(&mut self, frame: &[u8]) {
        self.templates.learn(frame, poller::now_us());
    }

    /// Watches the socket, and every connection that comes, with this epoll.
    pub(crate) fn watch(&mut self, epoll: &Rc<OwnedFd>) -> io::Result<()> {
        let data = EventData::new_u64(DIRECT + u64::from(u32::MAX));
        epoll::add(&**epoll, &self.socket, data, EventFlags::IN)?;
        self.epoll = Some(epoll.clone());
        Ok(())
    }

    /// The epoll has an event of a connection, or of the socket that they come over.
    pub(crate) fn event(&mut self, number: u32, has_ended: bool) {
        let at = number as usize;
        match self.connections.get_mut(at) {
            Some(Some(connection)) => {
                connection.is_readable = true;
                connection.has_ended |= has_ended;
                if !connection.is_running {
                    self.make_ready(at);
                }
            }
            _ if number == u32::MAX => self.accept(),
            _ => {}
        }
    }

    /// Takes the connections that the gateway has sent.
    fn accept(&mut self) {
        while let Ok(Some((greeting, mut sockets))) = control::receive::<Greeting>(&self.socket) {
            let tag = greeting.tag();
            if !is_direct(tag) {
                continue;
            }
            // Without room for another descriptor it comes without its own.
            let Some(socket) = sockets.pop() else {
                self.refused.push(tag);
                continue;
            };
            let at = place(tag);
            if self.connections.is_empty() {
                self.connections.resize_with(DIRECT_CONNECTIONS, || None);
            }
            self.close(at);
            let Some(epoll) = &self.epoll else { continue };
            let data = EventData::new_u64(DIRECT + at as u64);
            let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
            if epoll::add(&**epoll, &socket, data, flags).is_err() {
                self.refused.push(tag);
                continue;
            }
            self.connections[at] = Some(Connection {
                tag,
                socket,
                greeting,
                unread: Vec::new(),
                is_readable: false,
                has_ended: false,
                is_ready: false,
                is_running: false,
            });
        }
    }

    fn make_ready(&mut self, at: usize) {
        let Some(Some(connection)) = self.connections.get_mut(at) else { return };
        if !std::mem::replace(&mut connection.is_ready, true) {
            self.ready.push_back(at);
        }
    }

    /// Begins the next request: its frame replaces `frame`.
    pub(crate) fn next(
        &mut self,
        link: &mut impl Frames,
        frame: &mut Vec<u8>,
    ) -> Result<Option<Tag>, Corrupt> {
        while let Some(tag) = self.refused.pop() {
            if link.channel().begin_direct(tag) {
                let returned = Returned::default();
                link.push_frame(FrameKind::Returned, tag, &[&returned.prefix()])?;
                link.channel().give_back(tag);
                link.publish_quietly(true);
            }
        }
        while let Some(at) = self.ready.pop_front() {
            let Some(Some(connection)) = self.connections.get_mut(at) else { continue };
            connection.is_ready = false;
            let tag = connection.tag;
            if connection.is_running {
                continue;
            }
            if !link.channel().begin_direct(tag) {
                self.close(at);
                continue;
            }
            match self.read(at) {
                Read::Nothing => link.channel().end_direct(tag),
                Read::Ended => self.give_back(link, at, &[])?,
                Read::Some if self.take(link, at, frame)? => {
                    return Ok(self.connections[at].as_ref().map(|connection| connection.tag));
                }
                Read::Some => self.give_back(link, at, &[])?,
            }
        }
        Ok(None)
    }

    /// Fills the input with what is unread of a connection, or else with what has come.
    fn read(&mut self, at: usize) -> Read {
        wipe(&mut self.input);
        let Some(Some(connection)) = self.connections.get_mut(at) else { return Read::Ended };
        if !connection.unread.is_empty() {
            self.input.extend_from_slice(&connection.unread);
            wipe(&mut connection.unread);
            return Read::Some;
        }
        self.input.reserve(READ_BYTES);
        match rustix::io::read(&connection.socket, rustix::buffer::spare_capacity(&mut self.input))
        {
            Ok(0) => Read::Ended,
            Ok(count) => {
                connection.is_readable = count >= READ_BYTES || connection.has_ended;
                Read::Some
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                connection.is_readable = false;
                Read::Nothing
            }
            Err(_) => Read::Ended,
        }
    }

    /// Makes a frame of the request in the input, and reports it. False if the gateway has to handle it; what was read
    /// is unread again.
    fn take(
        &mut self,
        link: &mut impl Frames,
        at: usize,
        frame: &mut Vec<u8>,
    ) -> Result<bool, Corrupt> {
        let Self { head, input, templates, connections, .. } = self;
        let Some(Some(connection)) = connections.get_mut(at) else { return Ok(false) };
        let greeting = &connection.greeting;
        let limits = HeadLimits {
            request_line_bytes: greeting.request_line_bytes as usize,
            header_bytes: greeting.head_bytes as usize,
            header_count: greeting.header_count as usize,
        };
        let times = (unix_us(), poller::now_us());
        let read = match head.parse(input, &limits) {
            Ok(HeadStatus::Complete { head_len }) => plain::length(head, input, head_len)
                .filter(|length| {
                    greeting.requests > 0 && (length - head_len) as u64 <= greeting.body_bytes
                })
                .filter(|_| templates.apply((head, input), greeting, times, frame))
                .map(|length| (head_len, length)),
            Ok(HeadStatus::Partial) | Err(_) => None,
        };
        head.reset();
        let Some((head_len, length)) = read else {
            connection.unread.extend_from_slice(input);
            return Ok(false);
        };
        connection.is_running = true;
        let before = connection.tag;
        connection.tag.generation = before.generation.wrapping_add(1);
        connection.unread.extend_from_slice(&input[length..]);
        if length > head_len {
            link.add_body(connection.tag, input[head_len..length].to_vec());
        }
        let request_id = greeting.request_id;
        connection.greeting.requests -= 1;
        connection.greeting.request_id = request_id.wrapping_add(1);
        let taken = Taken { request_id, received_us: times.0, request: input };
        self.unseen_bytes += input.len();
        let tag = connection.tag;
        link.push_frame(FrameKind::Taken, tag, &[&taken.prefix(), input])?;
        link.channel().run_direct(before, tag);
        wipe(input);
        let is_much = self.unseen_bytes > UNSEEN_BYTES;
        if is_much {
            self.unseen_bytes = 0;
        }
        link.publish_quietly(is_much);
        Ok(true)
    }

    /// Answers a request on its connection, if its response is plain and the gateway has not adopted it.
    pub(crate) fn answer(
        &mut self,
        link: &mut impl Frames,
        tag: Tag,
        done: &Done,
        (head, output): (&[u8], &[u8]),
    ) -> Result<bool, Corrupt> {
        let at = place(tag);
        let Some(Some(connection)) = self.connections.get_mut(at) else { return Ok(false) };
        let is_plain = done.outcome == Outcome::Finished && done.handled && !done.leaving;
        if connection.tag != tag || !connection.is_running || !is_plain {
            return Ok(false);
        }
        let min_bytes = connection.greeting.compress_min_bytes as usize;
        if min_bytes > 0 && output.len() >= min_bytes {
            return Ok(false);
        }
        let ended_us = unix_us();
        let Some(status) = self.composer.compose(head, output, ended_us / 1_000_000) else {
            return Ok(false);
        };
        if !link.channel().begin_answer(tag) {
            return Ok(false);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        // A connection that cannot be written to is closed by the gateway, which finds the same.
        let sent = send(&connection.socket, self.composer.bytes(), flags).unwrap_or(0);
        let answered = Answered {
            status,
            handled: done.handled,
            body_bytes: output.len() as u64,
            ended_us,
            peak_memory_bytes: done.peak_memory_bytes,
        };
        link.push_frame(FrameKind::Answered, tag, &[&answered.encode()])?;
        connection.is_running = false;
        let is_sent = sent == self.composer.bytes().len();
        if is_sent && connection.greeting.requests > 0 && link.channel().end_answer(tag) {
            link.publish_quietly(false);
            if connection.is_readable || !connection.unread.is_empty() {
                self.make_ready(at);
            }
        } else {
            let unsent = self.composer.bytes()[sent..].to_vec();
            self.give_back(link, at, &unsent)?;
        }
        self.composer.clear();
        Ok(true)
    }

    /// Leaves a request to the gateway, which has its bytes. True if it was not before.
    pub(crate) fn pass_on(&mut self, link: &mut impl Frames, tag: Tag) -> bool {
        let at = place(tag);
        let is_it = |connection: &Connection| connection.tag == tag && connection.is_running;
        let found = self.connections.get(at).and_then(Option::as_ref).is_some_and(is_it);
        if found {
            link.channel().pass_on(tag);
            self.close(at);
        }
        found
    }

    /// Returns a connection to the gateway, with what was read and what is left to write.
    fn give_back(
        &mut self,
        link: &mut impl Frames,
        at: usize,
        unsent: &[u8],
    ) -> Result<(), Corrupt> {
        let Some(Some(connection)) = self.connections.get(at) else { return Ok(()) };
        let (tag, returned) = (connection.tag, Returned { unsent, unread: &connection.unread });
        link.push_frame(
            FrameKind::Returned,
            tag,
            &[&returned.prefix(), unsent, &connection.unread],
        )?;
        link.channel().give_back(tag);
        self.close(at);
        link.publish_quietly(true);
        Ok(())
    }

    /// Forgets a connection. The gateway has its socket, so closing this one does not end its watch.
    fn close(&mut self, at: usize) {
        let Some(connection) = self.connections.get_mut(at).and_then(Option::take) else { return };
        if let Some(epoll) = &self.epoll {
            let _ = epoll::delete(&**epoll, &connection.socket);
        }
    }
}

/// What a read has met.
enum Read {
    Some,
    Nothing,
    Ended,
}
