//! Direct connections: a connection between two requests whose socket another process has as well, which answers by
//! itself until something comes that it leaves to the server.
//!
//! A handler offers a [`DirectPlace`] with its response; [`crate::direct_stay`] moves the connection there once it is idle.
//! This module knows neither the process nor how it is asked. Invariant: a place is for the connection of the response
//! that it was offered with.

use crate::client::Client;
use outboard_buffer::Held;
use outboard_log::Wall;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::task::Poll;

/// Where a connection may go.
pub trait DirectPlace {
    /// Moves the connection there, for at most this number of requests.
    fn begin(self: Box<Self>, client: &Client, requests: u32) -> Option<Box<dyn DirectConnection>>;
}

/// A connection that is elsewhere. Dropped, it comes back and is closed.
pub trait DirectConnection {
    /// The next event; the current task is woken when there is one.
    fn poll_event(&mut self) -> Poll<DirectEvent>;

    /// Has it come back: an event follows.
    fn take_back(&self);
}

/// What has happened to a connection that is elsewhere.
pub enum DirectEvent {
    /// A request was answered there.
    Answered(Vec<u8>, DirectAnswer),
    /// The connection is back with a request that runs there; its response is for the service.
    Adopted {
        /// What was received.
        request: Vec<u8>,
        /// When.
        received: Wall,
        /// For the service.
        exchange: Box<dyn Any>,
    },
    /// The connection is back.
    Returned {
        /// To be written first.
        unsent: Vec<u8>,
        /// What was received.
        unread: Vec<u8>,
        /// The memory of both.
        held: Option<Held>,
    },
    /// The process has died while it read or wrote: what the client has sent or received is not known.
    Lost,
}

/// A request that was answered elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct DirectAnswer {
    /// The id of the request.
    pub request_id: u64,
    /// When the request had come.
    pub received: Wall,
    /// When the response was written.
    pub ended: Wall,
    /// Its status.
    pub status: u16,
    /// The length of its body.
    pub body_bytes: u64,
}

/// What a request has of this.
#[derive(Default)]
pub struct DirectParts {
    /// Where the connection may go after the response.
    place: RefCell<Option<Box<dyn DirectPlace>>>,
    /// Where the request runs already.
    adopted: RefCell<Option<Box<dyn Any>>>,
    /// When it has come, if that was before it was read here.
    received: Cell<Option<Wall>>,
}

impl DirectParts {
    /// The connection may go there after the response.
    pub fn offer(&self, place: Box<dyn DirectPlace>) {
        self.place.replace(Some(place));
    }

    /// Where the request runs already.
    pub fn take_adopted(&self) -> Option<Box<dyn Any>> {
        self.adopted.take()
    }

    /// The request runs there since this time.
    pub(crate) fn adopt(&self, exchange: Box<dyn Any>, received: Wall) {
        self.adopted.replace(Some(exchange));
        self.received.set(Some(received));
    }

    pub(crate) fn take_received(&self) -> Option<Wall> {
        self.received.take()
    }

    pub(crate) fn take_place(&self) -> Option<Box<dyn DirectPlace>> {
        self.place.take()
    }

    /// The request has ended.
    pub(crate) fn clear(&self) {
        self.adopted.take();
        self.received.take();
    }
}
