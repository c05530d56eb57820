//! [`ServerContext`]: what the connections of a server share.
//!
//! One per shard, created by the service, which replaces limits and log at a reload. What the shards have in
//! common is in a [`ServerShared`].

use crate::buffers::BufferPool;
use crate::census::Census;
use crate::connections::Connections;
use crate::counters::Counters;
use outboard_buffer::{Memory, TempDir};
use outboard_config::Limits;
use outboard_http_semantics::DateCache;
use outboard_http1::HeadLimits;
use outboard_log::{ErrorLog, Event, Level, Reason, Wall};
use outboard_reactor::{now_ms, wake_all};
use rustix::process::{Resource, getrlimit};
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct ServerContext {
    limits: RefCell<Limits>,
    error_log: RefCell<Rc<ErrorLog>>,
    /// Accounts of what is held in memory.
    pub memory: Rc<Memory>,
    /// What the shards have in common.
    pub shared: Arc<ServerShared>,
    pub(crate) counters: RefCell<Counters>,
    pub(crate) buffers: BufferPool,
    pub(crate) connections: Rc<Connections>,
    date: RefCell<DateCache>,
    phase: Cell<Phase>,
    ends_tunnels: Cell<bool>,
    tunnels: Cell<u32>,
    rejections: Cell<Rejections>,
}

/// What the contexts of all shards share, so that limits hold for all together.
#[derive(Debug)]
pub struct ServerShared {
    /// Files of request bodies and of responses to slow clients.
    pub temp_dir: Arc<TempDir>,
    census: Arc<Census>,
}

impl ServerShared {
    /// For so many shards.
    pub fn new(shards: usize, temp_dir: Arc<TempDir>) -> Arc<Self> {
        let census = Census::new(shards, getrlimit(Resource::Nofile).current);
        Arc::new(Self { temp_dir, census })
    }

    /// Open connections.
    pub fn open_connections(&self) -> u32 {
        self.census.connections()
    }
}

/// How far the end of the server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Serving,
    /// Idle connections may have one more request.
    Leaving,
    /// Then they close, and tunnels do not.
    Closing,
    Draining,
}

/// A tunnel that is open. See [`ServerContext::begin_tunnel`].
#[derive(Debug)]
pub struct CountedTunnel(Rc<ServerContext>);

impl Drop for CountedTunnel {
    fn drop(&mut self) {
        self.0.tunnels.set(self.0.tunnels.get() - 1);
    }
}

/// Connections and streams that were not accepted.
#[derive(Debug, Clone, Copy, Default)]
struct Rejections {
    /// Since the last line in the log.
    count: u64,
    logged_ms: u64,
}

impl ServerContext {
    /// The context of another shard, with these limits.
    pub fn new(
        limits: Limits,
        error_log: Rc<ErrorLog>,
        memory: Rc<Memory>,
        shared: &Arc<ServerShared>,
    ) -> Rc<Self> {
        Rc::new(Self {
            limits: RefCell::new(limits),
            error_log: RefCell::new(error_log),
            memory,
            shared: shared.clone(),
            counters: RefCell::default(),
            buffers: BufferPool::default(),
            connections: Connections::new(&shared.census),
            date: RefCell::new(DateCache::new(Wall::now().unix_s())),
            phase: Cell::default(),
            ends_tunnels: Cell::default(),
            tunnels: Cell::default(),
            rejections: Cell::default(),
        })
    }

    /// Limits of connections.
    pub fn limits(&self) -> Ref<'_, Limits> {
        self.limits.borrow()
    }

    /// Replaces limits and log; open connections observe the limits from their next request.
    pub fn reconfigure(&self, limits: Limits, error_log: Rc<ErrorLog>) {
        self.limits.replace(limits);
        self.error_log.replace(error_log);
    }

    /// Logs an event of the server itself.
    pub fn log(&self, level: Level, text: &str) {
        self.error_log.borrow().note(level, text);
    }

    /// Logs a refusal that belongs to no app.
    pub(crate) fn log_refusal(&self, reason: Reason, text: &str) {
        let level = if reason.is_server_fault() { Level::Error } else { Level::Info };
        let event = Event { reason: Some(reason), text, ..Event::default() };
        self.error_log.borrow().write(level, event);
    }

    /// Counts a connection or stream that was not accepted. The log has one line a second for all.
    pub(crate) fn reject(&self, peer: &str, reason: Reason) {
        self.count_refusal(reason);
        let Rejections { count, logged_ms } = self.rejections.get();
        let (count, now_ms) = (count + 1, now_ms());
        if logged_ms != 0 && now_ms < logged_ms + 1_000 {
            return self.rejections.set(Rejections { count, logged_ms });
        }
        self.rejections.set(Rejections { count: 0, logged_ms: now_ms });
        let text = format!("client={peer}, and {} others since the last such line", count - 1);
        self.log_refusal(reason, &text);
    }

    /// Limits of a request's head.
    pub fn head_limits(&self) -> HeadLimits {
        let limits = self.limits();
        let number = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        HeadLimits {
            request_line_bytes: number(limits.request_line_bytes),
            header_bytes: number(limits.header_bytes),
            header_count: limits.header_count as usize,
        }
    }

    /// Counts since the start.
    pub fn counters(&self) -> Ref<'_, Counters> {
        self.counters.borrow()
    }

    /// Counts a response.
    pub fn count_response(&self, status: u16, body_bytes: u64) {
        self.counters.borrow_mut().responded(status, body_bytes);
    }

    /// Counts a refused or failed request.
    pub fn count_refusal(&self, reason: Reason) {
        self.counters.borrow_mut().refused(reason);
    }

    /// Open HTTP/2 streams of this shard.
    pub fn open_streams(&self) -> u32 {
        self.connections.streams()
    }

    /// The highest number of connections: `limits.max_connections`, or what the descriptors allow.
    pub fn max_connections(&self) -> u32 {
        self.connections.max(&self.limits())
    }

    /// Appends a Date header line.
    pub(crate) fn write_date(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.date.borrow_mut().line(Wall::now().unix_s()));
    }

    /// Whether the server is stopping: connections are not reused.
    pub fn is_draining(&self) -> bool {
        self.phase.get() != Phase::Serving
    }

    /// Whether connections without a request close.
    pub(crate) fn ends_idle(&self) -> bool {
        matches!(self.phase.get(), Phase::Draining | Phase::Closing)
    }

    /// Whether another server accepts connections: those that a response has not announced to close may have
    /// one more request.
    pub(crate) fn is_left(&self) -> bool {
        matches!(self.phase.get(), Phase::Leaving | Phase::Closing)
    }

    /// Whether tunnels, such as WebSocket, close.
    pub fn ends_tunnels(&self) -> bool {
        self.phase.get() == Phase::Draining || self.ends_tunnels.get()
    }

    /// Tunnels close, also after [`ServerContext::leave`].
    pub fn end_tunnels(&self) {
        self.ends_tunnels.set(true);
        wake_all();
    }

    /// Counts a tunnel until the result is dropped.
    pub fn begin_tunnel(self: Rc<Self>) -> CountedTunnel {
        self.tunnels.set(self.tunnels.get() + 1);
        CountedTunnel(self)
    }

    /// Open tunnels of this shard.
    pub fn open_tunnels(&self) -> u32 {
        self.tunnels.get()
    }

    /// Accepts no more requests; idle connections close.
    pub fn drain(&self) {
        self.phase.set(Phase::Draining);
        wake_all();
    }

    /// After [`ServerContext::leave`]: idle connections close.
    pub fn close_idle(&self) {
        if self.phase.get() == Phase::Leaving {
            self.phase.set(Phase::Closing);
            wake_all();
        }
    }

    /// Another server has taken over the listeners. A request that is on its way on an idle connection is
    /// still served, as the last one, and tunnels stay open.
    pub fn leave(&self) {
        self.phase.set(Phase::Leaving);
        wake_all();
    }
}

#[cfg(test)]
mod tests;
