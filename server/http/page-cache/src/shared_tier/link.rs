//! One connection to Redis or Valkey: commands, their replies in order, and pushed messages.
//!
//! [`super::SharedTier`] queues commands at any time, and its task drives the connection. Invariants:
//! no caller waits for the connection, only for replies; a reply that does not arrive in time ends the
//! connection, and every pending reply fails.

use outboard_reactor::{Event, now_ms, with_deadline};
use outboard_resp::{Error, Limits, Reader, Value, command};
use outboard_upstream::Channel;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// How often an idle connection is checked.
const IDLE_MS: u64 = 1_000;
/// With more bytes that wait to be written the server is congested.
const CONGESTED_BYTES: usize = 8 << 20;

/// The largest reply has all variants of a page, and the longest all purges that the server stores.
const LIMITS: Limits = Limits { bytes: 256 << 20, values: 1 << 16 };

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Link {
    outgoing: RefCell<Vec<u8>>,
    expected: RefCell<VecDeque<Expected>>,
    changed: Event,
    /// Why it has ended.
    ended: RefCell<Option<String>>,
}

#[derive(Debug)]
struct Expected {
    reply: Rc<Reply>,
    sent_ms: u64,
}

/// The reply to a command.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// `None` until it arrives.
    outcome: RefCell<Option<Result<Value, Disconnected>>>,
    arrived: Event,
}

/// The connection ended before the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Disconnected;

/// An event of a connection.
pub(super) enum LinkEvent {
    Pushed(Vec<Value>),
    /// Nothing arrived for a while.
    Idle,
    Ended(String),
}

impl Reply {
    /// Waits for it; one task only.
    pub(super) async fn wait(&self) -> Result<Value, Disconnected> {
        poll_fn(|_| match self.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => self.arrived.poll().map(|()| self.outcome.take().unwrap_or(Err(Disconnected))),
        })
        .await
    }

    fn settle(&self, outcome: Result<Value, Disconnected>) {
        self.outcome.replace(Some(outcome));
        self.arrived.set();
    }
}

impl Link {
    /// Sends a command.
    pub(super) fn request(&self, words: &[&[u8]]) -> Rc<Reply> {
        let reply = Rc::new(Reply::default());
        if self.ended.borrow().is_some() {
            reply.settle(Err(Disconnected));
            return reply;
        }
        command(&mut self.outgoing.borrow_mut(), words);
        let expected = Expected { reply: reply.clone(), sent_ms: now_ms() };
        self.expected.borrow_mut().push_back(expected);
        self.changed.set();
        reply
    }

    /// Sends a command whose reply is a push.
    pub(super) fn send(&self, words: &[&[u8]]) {
        command(&mut self.outgoing.borrow_mut(), words);
        self.changed.set();
    }

    /// Whether the server is too slow for optional commands.
    pub(super) fn is_congested(&self) -> bool {
        self.outgoing.borrow().len() > CONGESTED_BYTES
    }

    /// The bytes that wait to be sent.
    #[cfg(test)]
    pub(super) fn outgoing(&self) -> Vec<u8> {
        self.outgoing.borrow().clone()
    }

    /// Ends the connection; all pending replies fail.
    pub(super) fn disconnect(&self, why: &str) {
        self.ended.borrow_mut().get_or_insert_with(|| why.to_owned());
        self.changed.set();
        self.expected.take().into_iter().for_each(|one| one.reply.settle(Err(Disconnected)));
    }

    /// Writes and reads until there is an event.
    pub(super) async fn next_event(
        &self,
        channel: &mut Channel,
        input: &mut Input,
        timeout_ms: u64,
    ) -> LinkEvent {
        loop {
            match self.next_push(input) {
                Ok(Some(pushed)) => return LinkEvent::Pushed(pushed),
                Ok(None) => {}
                Err(error) => return LinkEvent::Ended(error.to_string()),
            }
            if let Some(why) = &*self.ended.borrow() {
                return LinkEvent::Ended(why.clone());
            }
            if self.is_overdue(timeout_ms) {
                return LinkEvent::Ended(format!("no reply in {timeout_ms} ms"));
            }
            let outgoing = self.outgoing.take();
            let until_ms = now_ms() + IDLE_MS.min(timeout_ms);
            let step = async {
                if !outgoing.is_empty() {
                    channel.write_all(&outgoing).await?;
                }
                poll_fn(|_| match self.changed.poll() {
                    Poll::Ready(()) => Poll::Ready(Ok(None)),
                    Poll::Pending => channel.poll_read(&mut input.bytes).map_ok(Some),
                })
                .await
            };
            match with_deadline(until_ms, step).await {
                Ok(Ok(Some(0))) => return LinkEvent::Ended("it closed the connection".to_owned()),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return LinkEvent::Ended(error.to_string()),
                // The server may have received half of it.
                Err(_) if !outgoing.is_empty() => {
                    return LinkEvent::Ended("it does not read".to_owned());
                }
                Err(_) if self.expected.borrow().is_empty() => return LinkEvent::Idle,
                Err(_) => {}
            }
        }
    }

    /// Settles the replies that have arrived, up to the next push.
    fn next_push(&self, input: &mut Input) -> Result<Option<Vec<Value>>, Error> {
        let mut rest = &input.bytes[input.at..];
        while let Some(value) = input.reader.read(&mut rest)? {
            match value {
                Value::Push(values) => {
                    input.at = input.bytes.len() - rest.len();
                    return Ok(Some(values));
                }
                value => {
                    let expected =
                        self.expected.borrow_mut().pop_front().ok_or(Error::Malformed)?;
                    expected.reply.settle(Ok(value));
                }
            }
        }
        input.bytes.clear();
        input.at = 0;
        Ok(None)
    }

    fn is_overdue(&self, timeout_ms: u64) -> bool {
        let expected = self.expected.borrow();
        expected.front().is_some_and(|first| now_ms() > first.sent_ms + timeout_ms)
    }
}

/// Received bytes.
#[derive(Debug)]
pub(super) struct Input {
    reader: Reader,
    bytes: Vec<u8>,
    /// The start of the bytes that have not been decoded.
    at: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self { reader: Reader::new(LIMITS), bytes: Vec::new(), at: 0 }
    }
}

#[cfg(test)]
mod tests;
