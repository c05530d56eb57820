//! Raw connections of apps: their servers in each generation, and the calls of workers.
//!
//! Connections are passed to the [`StreamServer`] of their app by `dispatch`, datagrams by `datagrams`,
//! calls of workers by [`crate::app_operations`]. Invariant: the server of an app
//! stays the same across reloads, and with it the app's connections.

use crate::app::App;
use crate::generation::Generation;
use outboard_config::{Listener, Protocol};
use outboard_http_server::StreamPort;
use outboard_php_pool::pool::WorkerId;
use outboard_php_pool::pool::operations::Requester;
use outboard_ring::frame::Tag;
use outboard_ring::operation::{Completion, Part};
use outboard_ring::stream::StreamCall;
use outboard_stream_server::{Gone, StreamServer, WorkerLink};
use std::rc::Rc;
use std::task::Poll;

/// The calls of an app's workers in a generation.
#[derive(Debug)]
pub(crate) struct StreamCalls {
    server: Rc<StreamServer>,
    generation: u32,
}

/// The way to a worker.
#[derive(Debug)]
struct Link {
    requester: Requester,
    generation: u32,
}

impl StreamCalls {
    pub(crate) fn new(server: Rc<StreamServer>, generation: u32) -> Self {
        Self { server, generation }
    }

    /// Does something with a raw connection.
    pub(crate) fn begin(&self, requester: &Requester, id: Tag, call: &StreamCall<'_>) {
        let link: Rc<dyn WorkerLink> =
            Rc::new(Link { requester: requester.clone(), generation: self.generation });
        if let Some(result) = self.server.call(&link, call) {
            // A worker that has ended does not wait for it.
            let _ = requester.send(&Completion { id, part: Part::Queried(&result) });
        }
    }

    /// A worker has exited.
    pub(crate) fn forget(&self, worker: WorkerId) {
        self.server.forget(worker.numbers());
    }
}

impl WorkerLink for Link {
    fn key(&self) -> (u64, u64) {
        self.requester.worker().numbers()
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn send(&self, event: &[u8]) -> Result<(), Gone> {
        self.requester.send_event(event).map_err(|_| Gone)
    }

    fn poll_room(&self) -> Poll<Result<(), Gone>> {
        self.requester.poll_room().map_err(|_| Gone)
    }
}

/// The receiver of a listener's connections or datagrams.
pub(crate) fn receiver(listener: &Listener) -> Option<StreamPort> {
    match &listener.protocol {
        Protocol::Http => None,
        Protocol::Stream(port) | Protocol::Datagram(port) => {
            Some(StreamPort { app: port.app.clone(), port: port.index })
        }
    }
}

/// Whether a listener is for datagrams.
pub(crate) fn is_datagram(listener: &Listener) -> bool {
    matches!(listener.protocol, Protocol::Datagram(_))
}

/// The server that an app of the new generation has: that of its predecessor, or a new one.
pub(crate) fn server_for(
    app: &outboard_config::App,
    predecessor: Option<&Generation>,
    create: impl FnOnce() -> Rc<StreamServer>,
) -> Option<Rc<StreamServer>> {
    let outboard_config::Mode::Worker(worker) = &app.mode else { return None };
    if !worker.starts_server {
        return None;
    }
    let before = predecessor.and_then(|before| {
        let same = |one: &&Rc<App>| one.config.name == app.name;
        before.apps.iter().find(same)?.streams.clone()
    });
    Some(before.unwrap_or_else(create))
}

/// A generation is active: its workers get the connections, and those of apps that it does not have
/// close.
pub(crate) fn activate(generation: &Generation, old: &[Rc<App>]) {
    for app in &generation.apps {
        if let Some(server) = &app.streams {
            server.activate(generation.number, app.logs.error.clone());
        }
    }
    for app in old {
        let is_same = |one: &&Rc<App>| one.config.name == app.config.name;
        let successor = generation.apps.iter().find(is_same);
        if let Some(server) = &app.streams
            && successor.is_none_or(|app| app.streams.is_none())
        {
            server.close_all();
        }
    }
}
