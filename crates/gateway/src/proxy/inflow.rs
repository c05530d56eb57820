//! [`Inflow`]: the body of an upstream's answer on its way to the client.
//!
//! Made by the connection's task, filled by a task of its own, which has the upstream's deadline.
//! Invariants: what has come can be taken at once; the upstream waits while [`MOST_BYTES`] have not been
//! taken; dropping this leaves it.

use crate::read_turns::ReadTurns;
use outboard_buffer::{Account, Held};
use outboard_http_server::Connection;
use outboard_log::Reason;
use outboard_reactor::Event;
use outboard_upstream::{Error, Response, ScopedTask};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, ready};

/// What may wait for the connection.
const MOST_BYTES: usize = 64 << 10;
/// What is read before others have their turn.
const BYTES_A_TURN: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Inflow {
    shared: Rc<Shared>,
    _task: ScopedTask,
}

#[derive(Debug)]
struct Shared {
    bytes: RefCell<Vec<u8>>,
    /// Counts them.
    held: RefCell<Held>,
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
}

impl Inflow {
    /// Begins to read what is left of an answer; the upstream may be silent for so long.
    pub(super) fn start(
        response: Response,
        timeout_ms: u64,
        account: &Rc<Account>,
        turns: Rc<ReadTurns>,
    ) -> Self {
        let shared = Rc::new(Shared {
            bytes: RefCell::default(),
            held: RefCell::new(account.hold(0)),
            end: RefCell::default(),
            came: Event::default(),
            went: Event::default(),
        });
        let theirs = shared.clone();
        let task = ScopedTask::spawn(async move {
            let end = theirs.fill(response, timeout_ms, &turns).await;
            theirs.end.replace(Some(end));
            theirs.came.set();
        });
        Self { shared, _task: task }
    }

    /// Waits for what comes next, as long as there is a client.
    pub(super) async fn next(&self, connection: &mut Connection) -> Result<Next, Reason> {
        connection.next_of_response(u64::MAX, |_| self.poll_next()).await
    }

    fn poll_next(&self) -> Poll<Next> {
        loop {
            let bytes = std::mem::take(&mut *self.shared.bytes.borrow_mut());
            if !bytes.is_empty() {
                self.shared.held.borrow_mut().shrink(bytes.len());
                self.shared.went.set();
                return Poll::Ready(Next::Piece(bytes));
            }
            if let Some(end) = self.shared.end.take() {
                return Poll::Ready(end.map_or_else(Next::Broken, |()| Next::End));
            }
            ready!(self.shared.came.poll());
        }
    }
}

impl Shared {
    async fn fill(
        &self,
        mut response: Response,
        timeout_ms: u64,
        turns: &Rc<ReadTurns>,
    ) -> Result<(), Error> {
        let mut piece = Vec::new();
        let mut read_bytes = 0;
        loop {
            while self.bytes.borrow().len() >= MOST_BYTES {
                self.went.wait().await;
            }
            response.wait_at_most(timeout_ms);
            let more = response.read(&mut piece).await?;
            read_bytes += piece.len();
            self.push(&mut piece);
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

    /// Appends, and leaves `piece` empty.
    fn push(&self, piece: &mut Vec<u8>) {
        let mut bytes = self.bytes.borrow_mut();
        self.held.borrow_mut().grow(piece.len());
        match bytes.is_empty() {
            true => std::mem::swap(&mut *bytes, piece),
            false => bytes.append(piece),
        }
    }
}
