//! One client connection: reads request heads, has each answered, and goes on or closes.
//!
//! Spawned by the listener as one task. Invariants: requests are answered in the order in which
//! they came (RFC 9112 9.3.2); an idle connection holds no buffers; after an answer that left
//! request bytes unread the connection is closed, with a lingering close so that the client can
//! read the answer first (RFC 9112 9.6).

use crate::admin;
use crate::answer::{Sent, write_within};
use crate::buffers::Buffers;
use crate::client::Ends;
use crate::connections::Entry;
use crate::gateway::Gateway;
use crate::listener::{ListenerFacts, Serves};
use crate::pace::Pace;
use crate::spool::Spool;
use crate::turn;
use crate::upgrade::{Speak, Upgraded};
use crate::wire::Wire;
use outboard_http1::{BodyFraming, HeadLimits, HeadStatus};
use outboard_log::Reason;
use outboard_log::{AccessEntry, Wall};
use outboard_reactor::{self as reactor, with_deadline};
use std::io::IoSlice;
use std::rc::Rc;
use std::task::Poll;

/// Time and bytes that a lingering close spends on what the client still sends.
const LINGER_MS: u64 = 2_000;
const LINGER_BYTES: usize = 1 << 20;
/// Most bytes of a first line that cannot be read that stand in the access log.
const LOGGED_BYTES: usize = 2 << 10;

/// What a request takes that came with others, as bytes that are moved: a few are answered before
/// others have their turn.
const PIPELINED_BYTES: usize = 64 << 10;

/// A connection and what its requests share.
pub(crate) struct Connection {
    pub(crate) gateway: Rc<Gateway>,
    pub(crate) listener: Rc<ListenerFacts>,
    pub(crate) wire: Wire,
    pub(crate) ends: Ends,
    /// Present while a request is worked on.
    pub(crate) buffers: Option<Box<Buffers>>,
    /// Length of the present request's head in the input.
    pub(crate) head_len: usize,
    /// Bytes of the input that belong to the present request; more are the next one's.
    pub(crate) consumed: usize,
    /// Whether all of the present request's body was read.
    pub(crate) body_read: bool,
    /// What its client has not taken of the present answer.
    pub(crate) spool: Option<Spool>,
    /// Why the client could not be written to.
    pub(crate) lost: Option<Reason>,
    /// What another protocol does with the connection, once it is switched to.
    pub(crate) switched: Option<Speak>,
    served: u32,
    /// How the client takes the present answer.
    pub(crate) pace: Pace,
    /// Its place in the account of what is open.
    entry: Entry,
}

/// What waiting for a head came to.
enum Next {
    Request,
    /// It is no request, for a reason and for a closer one.
    Refuse(Reason, &'static str),
    Close,
}

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may come.
    KeepAlive,
    /// Everything was read and written: close.
    Close,
    /// The client may still be sending: close gently.
    Linger,
    /// Another protocol goes on with it.
    Switch,
    /// The answer could not be finished: close at once, so that the client notices.
    Abort,
}

impl Connection {
    pub(crate) fn new(
        gateway: Rc<Gateway>,
        listener: Rc<ListenerFacts>,
        wire: Wire,
        ends: Ends,
        entry: Entry,
    ) -> Self {
        let pace = Pace::of_response(&gateway.limits());
        Self {
            gateway,
            listener,
            wire,
            ends,
            buffers: None,
            head_len: 0,
            consumed: 0,
            body_read: false,
            spool: None,
            lost: None,
            switched: None,
            served: 0,
            pace,
            entry,
        }
    }

    /// Serves requests until the connection ends or another protocol has it.
    pub(crate) async fn serve(mut self) {
        loop {
            let after = match self.next_head().await {
                Next::Request => self.answer().await,
                Next::Refuse(reason, detail) => self.refuse_unread(reason, detail).await,
                Next::Close => After::Close,
            };
            match after {
                After::KeepAlive if self.may_go_on() => {
                    self.forget_request();
                    if !self.buffers().input.is_empty() {
                        reactor::share_turn(PIPELINED_BYTES).await;
                    }
                }
                After::Linger => {
                    self.linger().await;
                    break;
                }
                After::Abort => {
                    self.wire.abandon();
                    break;
                }
                _ => break,
            }
        }
        // The connection counts until its protocol has ended.
        let Self { gateway, wire, buffers, consumed, switched, entry: _entry, .. } = self;
        let mut read_ahead = Vec::new();
        if let Some(mut buffers) = buffers {
            if switched.is_some() {
                read_ahead = buffers.input.split_off(consumed);
            }
            gateway.buffers.give_back(buffers);
        }
        if let Some(speak) = switched {
            speak(Upgraded::new(wire, read_ahead, gateway)).await;
        }
    }

    /// The working memory; there is some from the first byte of a request to the end of its
    /// answer.
    pub(crate) fn buffers(&mut self) -> &mut Buffers {
        self.buffers.get_or_insert_with(|| take_buffers(&self.gateway, &self.wire))
    }

    /// Whether another request may follow the present one.
    pub(crate) fn may_go_on(&self) -> bool {
        let most = self.gateway.limits().keepalive_requests;
        !self.gateway.is_draining() && most.is_none_or(|most| self.served < most)
    }

    fn forget_request(&mut self) {
        let consumed = self.consumed;
        let input = &mut self.buffers().input;
        if consumed >= input.len() {
            input.clear();
        } else {
            input.drain(..consumed);
        }
        self.consumed = 0;
    }

    /// Reads until a whole head is in the input. Until then the connection is one that waits, however
    /// much of a head has come.
    async fn next_head(&mut self) -> Next {
        let next = self.read_head().await;
        if !matches!(next, Next::Request) && self.entry.is_unwanted() {
            return Next::Close;
        }
        self.entry.go_on();
        next
    }

    async fn read_head(&mut self) -> Next {
        if self.buffers.as_ref().is_none_or(|buffers| buffers.input.is_empty()) {
            if let Some(buffers) = self.buffers.take() {
                self.gateway.buffers.give_back(buffers);
            }
            if !self.wait_for_first_byte().await {
                return Next::Close;
            }
        }
        let limits = self.gateway.head_limits();
        let header_timeout_ms = self.gateway.limits().header_timeout_ms;
        reactor::set_deadline(reactor::now_ms() + header_timeout_ms);
        let next = loop {
            if let Some(next) = self.try_parse(&limits) {
                break next;
            }
            let started = {
                let buffers = self.buffers();
                buffers.head.has_started(&buffers.input)
            };
            self.entry.wait();
            match self.read_more().await {
                Read::Some => {}
                Read::Closed if started => {
                    break Next::Refuse(Reason::BadRequest, "head_cut");
                }
                Read::TimedOut if started => {
                    break Next::Refuse(Reason::HeaderTimeout, "head_incomplete");
                }
                Read::Closed | Read::TimedOut => break Next::Close,
            }
        };
        reactor::clear_deadline();
        next
    }

    fn try_parse(&mut self, limits: &HeadLimits) -> Option<Next> {
        let buffers = self.buffers();
        if buffers.input.is_empty() {
            return None;
        }
        match buffers.head.parse(&buffers.input, limits) {
            Ok(HeadStatus::Complete { head_len }) => {
                self.head_len = head_len;
                self.consumed = head_len;
                self.body_read = false;
                self.served += 1;
                Some(Next::Request)
            }
            Ok(HeadStatus::Partial) => None,
            Err(error) => Some(Next::Refuse(Reason::from(error), error.reason())),
        }
    }

    /// Waits without holding any buffer. False when the connection should be closed.
    async fn wait_for_first_byte(&self) -> bool {
        let idle_timeout_ms = self.gateway.limits().idle_timeout_ms;
        let readable = std::future::poll_fn(|_| {
            if self.gateway.is_draining() {
                return Poll::Ready(false);
            }
            if self.wire.poll_readable().is_ready() {
                return Poll::Ready(true);
            }
            self.entry.wait();
            if self.entry.is_unwanted() { Poll::Ready(false) } else { Poll::Pending }
        });
        with_deadline(reactor::now_ms() + idle_timeout_ms, readable).await.unwrap_or(false)
    }

    /// Reads once; the caller has set the deadline.
    pub(crate) async fn read_more(&mut self) -> Read {
        let (wire, entry) = (&self.wire, &self.entry);
        let input =
            &mut self.buffers.get_or_insert_with(|| take_buffers(&self.gateway, wire)).input;
        if input.capacity() == input.len() {
            input.reserve(input.len().max(4096));
        }
        std::future::poll_fn(|_| {
            while wire.poll_readable().is_ready() {
                match wire.try_read(input) {
                    Ok(Some(0)) | Err(_) => return Poll::Ready(Read::Closed),
                    Ok(Some(_)) => return Poll::Ready(Read::Some),
                    Ok(None) => {}
                }
            }
            if entry.is_unwanted() {
                return Poll::Ready(Read::Closed);
            }
            if reactor::deadline_passed() { Poll::Ready(Read::TimedOut) } else { Poll::Pending }
        })
        .await
    }

    /// Reads once, waiting `timeout_ms` at most.
    pub(crate) async fn read_within(&mut self, timeout_ms: u64) -> Read {
        reactor::set_deadline(reactor::now_ms() + timeout_ms);
        let read = self.read_more().await;
        reactor::clear_deadline();
        read
    }

    async fn answer(&mut self) -> After {
        let started = Wall::now();
        self.pace = Pace::of_response(&self.gateway.limits());
        let sent = match self.listener.serves {
            Serves::Apps | Serves::Entities => turn::answer(self, started).await,
            Serves::Admin | Serves::Metrics => admin::answer(self).await,
        };
        let unread = self.has_unread_body();
        match sent {
            Sent::Broken => After::Abort,
            Sent::Switched => After::Switch,
            Sent::Whole { keep_alive: true } if !unread => After::KeepAlive,
            Sent::Whole { .. } if unread => After::Linger,
            Sent::Whole { .. } => After::Close,
        }
    }

    /// Whether some of the body of the present request is still on the wire. Where it ends is not
    /// known then, so nothing can follow it.
    pub(crate) fn has_unread_body(&mut self) -> bool {
        match self.buffers().head.body() {
            BodyFraming::None | BodyFraming::Length(0) => false,
            BodyFraming::Length(_) | BodyFraming::Chunked => !self.body_read,
        }
    }

    /// Whether nobody can be answered any more: the client is gone, or has closed its side where that
    /// counts as going.
    pub(crate) fn poll_gone(&self) -> Poll<()> {
        match self.gateway.limits().aborts_on_close {
            true => self.wire.poll_hangup(),
            false => self.wire.poll_gone(),
        }
    }

    /// Answers a request whose head could not be read; nothing of it is known.
    async fn refuse_unread(&mut self, reason: Reason, detail: &str) -> After {
        let started = Wall::now();
        let text = format!("client={} {detail}", self.ends.peer_text);
        self.gateway.log_refusal(None, 0, reason, &text);
        self.gateway.counters.borrow_mut().refused(reason);
        self.gateway.counters.borrow_mut().answered(reason.status(), 0);
        let sent = crate::answer::refuse_unparsed(self, reason).await;
        self.log_unread(started, reason);
        match sent {
            Sent::Broken => After::Abort,
            Sent::Whole { .. } | Sent::Switched => After::Linger,
        }
    }

    /// Makes the access entry of a request whose head could not be read, with as much of its first
    /// line as has come.
    fn log_unread(&self, started: Wall, reason: Reason) {
        let generation = self.gateway.generation();
        let log = generation.access_log(None);
        if !log.sink().is_on() {
            return;
        }
        let input = self.buffers.as_ref().map_or(&[][..], |buffers| &buffers.input);
        let [method, target, protocol] = first_line(input);
        let now = Wall::now();
        let entry = AccessEntry {
            client: &self.ends.peer_text,
            method,
            target,
            protocol: &protocol.escape_ascii().to_string(),
            status: reason.status(),
            body_bytes: 0,
            duration_us: now.unix_us.saturating_sub(started.unix_us),
            referer: b"",
            user_agent: b"",
            request: 0,
            app: "",
        };
        log.write(now, &entry);
    }

    /// Writes bytes that fit no other place (`100 Continue`).
    pub(crate) async fn write_plain(&mut self, bytes: &[u8]) -> bool {
        let slices = &mut [IoSlice::new(bytes)];
        write_within(&self.wire, slices, &mut self.pace).await.is_ok()
    }

    /// Ends the sending side and reads what still comes for a while: closing with unread bytes
    /// makes the kernel send a reset, which can destroy the answer on its way.
    async fn linger(&mut self) {
        self.wire.shutdown_write();
        let until_ms = reactor::now_ms() + LINGER_MS;
        let mut total = 0;
        while total < LINGER_BYTES && reactor::now_ms() < until_ms {
            self.buffers().input.clear();
            match self.read_within(until_ms - reactor::now_ms()).await {
                Read::Some => total += self.buffers().input.len(),
                Read::Closed | Read::TimedOut => return,
            }
        }
    }
}

fn take_buffers(gateway: &Gateway, wire: &Wire) -> Box<Buffers> {
    if wire.is_http2() { Buffers::of_stream() } else { gateway.buffers.take() }
}

/// Method, target and protocol as they may be meant; what is not there is a hyphen.
fn first_line(input: &[u8]) -> [&[u8]; 3] {
    let input = &input[..input.len().min(LOGGED_BYTES)];
    let line = input.trim_ascii_start().split(|byte| b"\r\n".contains(byte)).next();
    let mut words = line.unwrap_or_default().splitn(3, |&byte| byte == b' ');
    std::array::from_fn(|_| words.next().filter(|word| !word.is_empty()).unwrap_or(b"-"))
}

/// What a read came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Some,
    Closed,
    TimedOut,
}
