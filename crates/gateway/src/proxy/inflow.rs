//! [`Inflow`]: the body of an upstream's answer on its way to the client.
//!
//! Made by the connection's task, filled by a task of its own: so a client that takes its time
//! does not keep the upstream, whose place another request can have. Invariants: what has come
//! can be taken at once; the upstream waits when the [`Backlog`] is full; dropping this leaves it.

use super::backlog::{Backlog, Disk};
use super::turns::Turns;
use crate::connection::Connection;
use outboard_log::Reason;
use outboard_reactor::Event;
use outboard_upstream::{Error, Job, Response};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

/// What is read before others have their turn.
const BYTES_A_TURN: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Inflow {
    shared: Rc<Shared>,
    _job: Job,
}

#[derive(Debug)]
struct Shared {
    backlog: RefCell<Backlog>,
    end: RefCell<Option<Result<(), Error>>>,
    came: Event,
    went: Event,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    Piece(Vec<u8>),
    End,
    /// The upstream has broken off.
    Broken(Error),
    /// The spool cannot be read.
    Unreadable(io::Error),
}

impl Inflow {
    /// Begins to read what is left of an answer; the upstream may be silent for so long.
    pub(super) fn start(
        response: Response,
        timeout_ms: u64,
        disk: Option<Disk>,
        turns: Rc<Turns>,
    ) -> Self {
        let shared = Rc::new(Shared {
            backlog: RefCell::new(Backlog::new(disk)),
            end: RefCell::default(),
            came: Event::default(),
            went: Event::default(),
        });
        let theirs = shared.clone();
        let job = Job::spawn(async move {
            let end = theirs.fill(response, timeout_ms, &turns).await;
            theirs.end.replace(Some(end));
            theirs.came.set();
        });
        Self { shared, _job: job }
    }

    /// Waits for what comes next, as long as there is a client.
    pub(super) async fn next(&self, connection: &Connection) -> Result<Next, Reason> {
        poll_fn(|_| {
            loop {
                if let Some(next) = self.take() {
                    return Poll::Ready(Ok(next));
                }
                if self.shared.came.poll().is_pending() {
                    return connection.poll_gone().map(|()| Err(Reason::ClientGone));
                }
            }
        })
        .await
    }

    fn take(&self) -> Option<Next> {
        match self.shared.backlog.borrow_mut().take() {
            Err(error) => return Some(Next::Unreadable(error)),
            Ok(piece) if !piece.is_empty() => {
                self.shared.went.set();
                return Some(Next::Piece(piece));
            }
            Ok(_) => {}
        }
        self.shared.end.take().map(|end| end.map_or_else(Next::Broken, |()| Next::End))
    }
}

impl Shared {
    async fn fill(
        &self,
        mut response: Response,
        timeout_ms: u64,
        turns: &Rc<Turns>,
    ) -> Result<(), Error> {
        let mut piece = Vec::new();
        let mut read_bytes = 0;
        loop {
            while self.backlog.borrow().is_full() {
                self.went.wait().await;
            }
            response.wait_at_most(timeout_ms);
            let more = response.read(&mut piece).await?;
            read_bytes += piece.len();
            self.backlog.borrow_mut().push(&mut piece);
            self.came.set();
            if !more {
                return Ok(());
            }
            if read_bytes >= BYTES_A_TURN {
                read_bytes = 0;
                turns.wait().await;
            }
        }
    }
}
