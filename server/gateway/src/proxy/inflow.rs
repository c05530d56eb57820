//! [`Inflow`]: receives the body of an upstream's response for a client.
//!
//! Created by the connection's task, filled by a task of its own, which has the upstream's
//! deadline. Invariants: received bytes are available immediately; the upstream waits while
//! [`MAX_BYTES`] are not taken; dropping this ends the transfer.

use outboard_buffer::{Account, Held};
use outboard_http_server::ResponseWriter;
use outboard_log::Reason;
use outboard_reactor::Event;
use outboard_upstream::ReadTurns;
use outboard_upstream::{Error, Response, ScopedTask};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, ready};

/// Bytes that may wait for the connection.
const MAX_BYTES: usize = 64 << 10;
/// Bytes that are read before other responses have their turn.
const BYTES_PER_TURN: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Inflow {
    shared: Rc<Shared>,
    _task: ScopedTask,
}

#[derive(Debug)]
struct Shared {
    bytes: RefCell<Vec<u8>>,
    /// Counts `bytes`.
    held: RefCell<Held>,
    end: RefCell<Option<Result<(), Error>>>,
    filled: Event,
    taken: Event,
}

/// The next step of a transfer.
#[derive(Debug)]
pub(super) enum Next {
    Piece(Vec<u8>),
    End,
    /// The upstream failed.
    Broken(Error),
}

impl Inflow {
    /// Starts to read the rest of a response; the upstream may be silent for `timeout_ms`.
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
            filled: Event::default(),
            taken: Event::default(),
        });
        let filler = shared.clone();
        let task = ScopedTask::spawn(async move {
            let end = filler.fill(response, timeout_ms, &turns).await;
            filler.end.replace(Some(end));
            filler.filled.set();
        });
        Self { shared, _task: task }
    }

    /// Waits for the next step, unless the client goes away.
    pub(super) async fn next(&self, response: &mut ResponseWriter) -> Result<Next, Reason> {
        response.next_of_response(u64::MAX, |_| self.poll_next()).await
    }

    fn poll_next(&self) -> Poll<Next> {
        loop {
            let bytes = std::mem::take(&mut *self.shared.bytes.borrow_mut());
            if !bytes.is_empty() {
                self.shared.held.borrow_mut().shrink(bytes.len());
                self.shared.taken.set();
                return Poll::Ready(Next::Piece(bytes));
            }
            if let Some(end) = self.shared.end.take() {
                return Poll::Ready(end.map_or_else(Next::Broken, |()| Next::End));
            }
            ready!(self.shared.filled.poll());
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
            while self.bytes.borrow().len() >= MAX_BYTES {
                self.taken.wait().await;
            }
            response.wait_at_most(timeout_ms);
            let more = response.read(&mut piece).await?;
            read_bytes += piece.len();
            self.push(&mut piece);
            self.filled.set();
            if !more {
                return Ok(());
            }
            if read_bytes >= BYTES_PER_TURN {
                read_bytes = 0;
                turns.wait().await;
            }
        }
    }

    /// Appends the piece, which is empty afterwards.
    fn push(&self, piece: &mut Vec<u8>) {
        let mut bytes = self.bytes.borrow_mut();
        self.held.borrow_mut().grow(piece.len());
        match bytes.is_empty() {
            true => std::mem::swap(&mut *bytes, piece),
            false => bytes.append(piece),
        }
    }
}
