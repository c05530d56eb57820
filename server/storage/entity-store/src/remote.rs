//! [`Remote`]: the store of the other process of an upgrade, as this one calls it.
//!
//! Made by the gateway for each link to another process, which carries the frames. Invariants: every call
//! has one result; no more than [`MAX_CALLS`] calls and [`MAX_BYTES`] bytes wait; when the link has ended, so
//! have the calls.

pub(crate) mod call;
mod codec;

use crate::change::{Write, Written};
use crate::error::StoreError;
use crate::oneshot::{self, Sender};
use crate::record::Record;
use crate::types::Piece;
use call::{Call, Reply};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::ops::Bound;

const MAX_CALLS: usize = 4096;
/// A single call may be longer.
const MAX_BYTES: usize = 64 << 20;
/// Records whose values are in one frame.
const IDS_PER_CALL: usize = 32;
/// Writes in one frame.
const WRITE_BYTES_PER_CALL: usize = 4 << 20;

/// Sends a frame to the other process.
type Send = Box<dyn Fn(Vec<u8>)>;

/// See the module.
pub struct Remote {
    send: Send,
    waiting: RefCell<HashMap<u64, Waiting>>,
    next_number: Cell<u64>,
    waiting_bytes: Cell<usize>,
    is_closed: Cell<bool>,
}

/// A call without a reply, and its length.
type Waiting = (Sender<Option<Reply>>, usize);

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("waiting", &self.waiting.borrow().len()).finish()
    }
}

impl Remote {
    /// The store at the other end of what `send` sends to.
    pub fn new(send: impl Fn(Vec<u8>) + 'static) -> Self {
        Self {
            send: Box::new(send),
            waiting: RefCell::default(),
            next_number: Cell::default(),
            waiting_bytes: Cell::default(),
            is_closed: Cell::default(),
        }
    }

    /// A frame with a reply has arrived. Malformed ones, and those to no call, are ignored.
    pub fn receive(&self, frame: &[u8]) {
        let Some((number, reply)) = Reply::decode(frame) else { return };
        let waiting = self.waiting.borrow_mut().remove(&number);
        if let Some((sender, bytes)) = waiting {
            self.waiting_bytes.set(self.waiting_bytes.get() - bytes);
            sender.send(Some(reply));
        }
    }

    /// The other process has ended.
    pub fn close(&self) {
        self.is_closed.set(true);
        self.waiting_bytes.set(0);
        self.waiting.take().into_values().for_each(|(sender, _)| sender.send(None));
    }

    /// Whether calls wait for replies.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    async fn call(&self, namespace: &str, call: &Call) -> Result<Reply, StoreError> {
        let gone = || StoreError::Unreachable("the other process of the upgrade has ended".into());
        if self.is_closed.get() {
            return Err(gone());
        }
        let number = self.next_number.get();
        let frame = call.encode(number, namespace);
        let (bytes, waiting_bytes) = (frame.len(), self.waiting_bytes.get());
        let is_full = waiting_bytes > 0 && waiting_bytes + bytes > MAX_BYTES;
        if is_full || self.waiting.borrow().len() >= MAX_CALLS {
            return Err(StoreError::Overloaded);
        }
        self.next_number.set(number + 1);
        self.waiting_bytes.set(waiting_bytes + bytes);
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().insert(number, (sender, bytes));
        (self.send)(frame);
        match receiver.receive().await {
            Some(Reply::Failed(error)) => Err(error),
            Some(reply) => Ok(reply),
            None => Err(gone()),
        }
    }

    pub(crate) async fn get_many(
        &self,
        namespace: &str,
        ids: &[&[u8]],
    ) -> Result<Vec<Option<Record>>, StoreError> {
        let mut records = Vec::with_capacity(ids.len());
        for some in ids.chunks(IDS_PER_CALL) {
            let call = Call::Get(some.iter().map(|id| Box::from(*id)).collect());
            match self.call(namespace, &call).await? {
                Reply::Records(found) if found.len() == some.len() => records.extend(found),
                _ => return Err(malformed()),
            }
        }
        Ok(records)
    }

    pub(crate) async fn write_many(
        &self,
        namespace: &str,
        writes: Vec<Write>,
        copies: u32,
    ) -> Vec<Result<Written, StoreError>> {
        let mut results = Vec::with_capacity(writes.len());
        let mut writes = writes.into_iter().peekable();
        while writes.peek().is_some() {
            let (mut some, mut bytes) = (Vec::new(), 0);
            while bytes < WRITE_BYTES_PER_CALL
                && let Some(write) = writes.next()
            {
                bytes += write.bytes();
                some.push(write);
            }
            let count = some.len();
            match self.call(namespace, &Call::Write(some, copies)).await {
                Ok(Reply::Written(written)) if written.len() == count => results.extend(written),
                Ok(_) => results.extend(std::iter::repeat_n(Err(malformed()), count)),
                Err(error) => results.extend(std::iter::repeat_n(Err(error), count)),
            }
        }
        results
    }

    /// The first records of a range; empty if there are none.
    pub(crate) async fn scan(
        &self,
        namespace: &str,
        start: Bound<Vec<u8>>,
        end: Bound<Vec<u8>>,
    ) -> Result<Piece, StoreError> {
        match self.call(namespace, &Call::Scan(start, end)).await? {
            Reply::Piece(piece) => Ok(piece),
            _ => Err(malformed()),
        }
    }

    pub(crate) async fn compact(&self, namespace: &str) -> Result<(), StoreError> {
        self.call(namespace, &Call::Compact).await.map(drop)
    }

    /// Hands records of a namespace in memory over.
    pub(crate) async fn adopt(&self, namespace: &str, records: Piece) -> Result<(), StoreError> {
        self.call(namespace, &Call::Adopt(records)).await.map(drop)
    }
}

fn malformed() -> StoreError {
    StoreError::Failed("the other process of the upgrade sent a malformed reply".to_owned())
}

#[cfg(test)]
mod tests;
