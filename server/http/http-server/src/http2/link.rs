//! [`Link`]: what the task of a connection and those of its streams share.
//!
//! Invariants: no borrow of the engine lasts longer than one call; a stream is known here from its head
//! until its task has dropped it.

use crate::multiplexed::OpenStream;
use crate::transport::Transport;
use outboard_buffer::Held;
use outboard_http2::{Connection as Engine, Settings, StreamKey};
use outboard_reactor::{Event, now_ms};
use std::cell::{RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

/// See the module.
#[derive(Debug)]
pub(super) struct Link {
    engine: RefCell<Engine>,
    /// Set when a stream has sent something.
    changed: Event,
    /// By slot.
    streams: RefCell<Vec<Option<Rc<Open>>>>,
    pub(super) is_encrypted: bool,
    pub(super) local: Option<SocketAddr>,
}

/// An open stream.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) key: StreamKey,
    pub(super) shared: OpenStream,
}

impl Link {
    /// The link of a connection whose client has sent nothing.
    pub(super) fn new(settings: Settings, transport: &Transport) -> Rc<Self> {
        Rc::new(Self {
            engine: RefCell::new(Engine::new(settings, now_ms())),
            changed: Event::default(),
            streams: RefCell::default(),
            is_encrypted: transport.is_encrypted(),
            local: transport.local_address(),
        })
    }

    /// The protocol.
    pub(super) fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
    }

    /// Has the task of the connection write.
    pub(super) fn changed(&self) {
        self.changed.set();
    }

    /// Whether a stream has sent something.
    pub(super) fn poll_changed(&self) -> Poll<()> {
        self.changed.poll()
    }

    /// Adds a stream.
    pub(super) fn open(&self, key: StreamKey, held: Held, has_ended: bool) -> Rc<Open> {
        let shared = OpenStream::new(Vec::new(), has_ended, held);
        let open = Rc::new(Open { key, shared });
        let mut streams = self.streams.borrow_mut();
        if streams.len() <= key.slot() {
            streams.resize(key.slot() + 1, None);
        }
        streams[key.slot()] = Some(open.clone());
        open
    }

    /// Removes a stream whose task has ended.
    pub(super) fn forget(&self, open: &Open) {
        let mut streams = self.streams.borrow_mut();
        if let Some(place) = streams.get_mut(open.key.slot())
            && place.as_ref().is_some_and(|there| there.key == open.key)
        {
            *place = None;
        }
    }

    /// The stream, unless its task has ended.
    fn find(&self, key: StreamKey) -> Option<Rc<Open>> {
        let streams = self.streams.borrow();
        streams.get(key.slot())?.as_ref().filter(|open| open.key == key).cloned()
    }

    /// Data has arrived. False if no task reads it.
    pub(super) fn received(&self, key: StreamKey, data: &[u8], is_end: bool) -> bool {
        let Some(open) = self.find(key) else { return false };
        open.shared.receive(data, is_end);
        true
    }

    /// The stream was reset.
    pub(super) fn close(&self, key: StreamKey) {
        if let Some(open) = self.find(key) {
            open.shared.close();
        }
    }

    /// Closes all streams: the connection is gone.
    pub(super) fn close_all(&self) {
        self.streams.borrow().iter().flatten().for_each(|open| open.shared.close());
    }

    /// Wakes the streams that can send more.
    pub(super) fn wake_writable(&self) {
        loop {
            let next = self.engine().next_writable();
            match next {
                Some(key) => {
                    if let Some(open) = self.find(key) {
                        open.shared.wake_writer();
                    }
                }
                None => return,
            }
        }
    }

    /// Resets the streams whose client has read nothing for so long.
    pub(super) fn reset_stalled(&self, timeout_ms: u64) {
        let mut stalled = Vec::new();
        self.engine().reset_stalled(now_ms(), timeout_ms, |key| stalled.push(key));
        if !stalled.is_empty() {
            stalled.into_iter().for_each(|key| self.close(key));
            self.changed();
        }
    }
}
