//! A request that a worker holds until the test lets it go on.
//!
//! The fixture `gated.php` says its process id through one named pipe and waits at another.

use crate::{Connection, Fifo, Process, Request, Response};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A request in a worker.
#[derive(Debug)]
pub struct Held {
    connection: Connection,
    gate: Fifo,
    worker: Process,
    pid: u32,
}

impl Held {
    /// Sends the request; the pipes are made in `folder`. Returns once a worker has it.
    #[track_caller]
    pub(crate) fn start(address: SocketAddr, folder: &Path) -> Held {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let gate = Fifo::at(folder.join(format!("gate-{number}")));
        let mut done = Fifo::at(folder.join(format!("done-{number}")));
        let target =
            format!("/gated.php?gate={}&done={}", gate.path().display(), done.path().display());
        let mut connection = Connection::open(address);
        connection.send(&Request::get(&target).to_bytes("a")).expect("the server reads");
        let pid = done.hear().parse().expect("the script says which process it is");
        Held { connection, gate, worker: Process::of(pid), pid }
    }

    /// The process that has it.
    pub fn worker(&self) -> &Process {
        &self.worker
    }

    /// The id of that process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its answer without letting it go on.
    #[track_caller]
    pub fn answer(&mut self) -> Response {
        self.connection.response().unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    /// Lets it go on to its end.
    #[track_caller]
    pub fn finishes(mut self) {
        self.gate.open();
        self.answer().expect(200).saying("through the gate\n");
    }
}
