//! One connection to Redis or Valkey: commands and their replies in order, and what is pushed.
//!
//! Fed by [`super::Commons`] at any time and driven by its task. Invariants: nobody waits for the
//! connection, only for replies; a reply that does not come in time breaks the connection, and then
//! each that is awaited is told.

use outboard_reactor::{Event, now_ms, with_deadline};
use outboard_resp::{Error, Limits, Reader, Value, command};
use outboard_upstream::Channel;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// How often a connection without news is asked whether it is alive.
const QUIET_MS: u64 = 1_000;
/// With more bytes that wait to be written the peer is behind.
const BEHIND_BYTES: usize = 8 << 20;

/// The largest reply has all variants of a page, and the longest all purges that the server stores.
const LIMITS: Limits = Limits { bytes: 256 << 20, values: 1 << 16 };

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Link {
    outgoing: RefCell<Vec<u8>>,
    expected: RefCell<VecDeque<Expected>>,
    news: Event,
    /// Why it is of no use any more.
    broken: RefCell<Option<String>>,
}

#[derive(Debug)]
struct Expected {
    reply: Rc<Reply>,
    asked_ms: u64,
}

/// What a command gets.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// `None` as long as it is awaited.
    outcome: RefCell<Option<Result<Value, Lost>>>,
    came: Event,
}

/// The connection broke before the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

/// What a connection has to tell.
pub(super) enum News {
    Pushed(Vec<Value>),
    /// Nothing came for a while.
    Quiet,
    Broken(String),
}

impl Reply {
    /// Waits for it; by one task only.
    pub(super) async fn wait(&self) -> Result<Value, Lost> {
        poll_fn(|_| match self.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => self.came.poll().map(|()| self.outcome.take().unwrap_or(Err(Lost))),
        })
        .await
    }

    fn settle(&self, outcome: Result<Value, Lost>) {
        self.outcome.replace(Some(outcome));
        self.came.set();
    }
}

impl Link {
    /// Sends a command behind those before it.
    pub(super) fn ask(&self, words: &[&[u8]]) -> Rc<Reply> {
        let reply = Rc::new(Reply::default());
        if self.broken.borrow().is_some() {
            reply.settle(Err(Lost));
            return reply;
        }
        command(&mut self.outgoing.borrow_mut(), words);
        let expected = Expected { reply: reply.clone(), asked_ms: now_ms() };
        self.expected.borrow_mut().push_back(expected);
        self.news.set();
        reply
    }

    /// Sends a command that is answered by a push.
    pub(super) fn tell(&self, words: &[&[u8]]) {
        command(&mut self.outgoing.borrow_mut(), words);
        self.news.set();
    }

    /// Whether the peer is too slow for more than what is needed.
    pub(super) fn is_behind(&self) -> bool {
        self.outgoing.borrow().len() > BEHIND_BYTES
    }

    /// PeerInfo the connection, and all waiting for it.
    pub(super) fn give_up(&self, why: &str) {
        self.broken.borrow_mut().get_or_insert_with(|| why.to_owned());
        self.news.set();
        self.expected.take().into_iter().for_each(|one| one.reply.settle(Err(Lost)));
    }

    /// Writes and reads until there is something to tell.
    pub(super) async fn converse(
        &self,
        channel: &mut Channel,
        input: &mut Input,
        timeout_ms: u64,
    ) -> News {
        loop {
            match self.next(input) {
                Ok(Some(pushed)) => return News::Pushed(pushed),
                Ok(None) => {}
                Err(error) => return News::Broken(error.to_string()),
            }
            if let Some(why) = &*self.broken.borrow() {
                return News::Broken(why.clone());
            }
            if self.is_overdue(timeout_ms) {
                return News::Broken(format!("no reply in {timeout_ms} ms"));
            }
            let outgoing = self.outgoing.take();
            let until_ms = now_ms() + QUIET_MS.min(timeout_ms);
            let step = async {
                if !outgoing.is_empty() {
                    channel.write_all(&outgoing).await?;
                }
                poll_fn(|_| match self.news.poll() {
                    Poll::Ready(()) => Poll::Ready(Ok(None)),
                    Poll::Pending => channel.poll_read(&mut input.bytes).map_ok(Some),
                })
                .await
            };
            match with_deadline(until_ms, step).await {
                Ok(Ok(Some(0))) => return News::Broken("it closed the connection".to_owned()),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return News::Broken(error.to_string()),
                // What was being written may be half there.
                Err(_) if !outgoing.is_empty() => {
                    return News::Broken("it takes nothing".to_owned());
                }
                Err(_) if self.expected.borrow().is_empty() => return News::Quiet,
                Err(_) => {}
            }
        }
    }

    /// Settles the replies that have arrived, up to the next push.
    fn next(&self, input: &mut Input) -> Result<Option<Vec<Value>>, Error> {
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
        expected.front().is_some_and(|first| now_ms() > first.asked_ms + timeout_ms)
    }
}

/// Bytes that have arrived.
#[derive(Debug)]
pub(super) struct Input {
    reader: Reader,
    bytes: Vec<u8>,
    /// Where what has not been read begins.
    at: usize,
}

impl Default for Input {
    fn default() -> Self {
        Self { reader: Reader::new(LIMITS), bytes: Vec::new(), at: 0 }
    }
}
