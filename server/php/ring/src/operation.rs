//! Operations that a worker requests from the gateway, and their completions.
//!
//! The host encodes operations and decodes completions, the gateway vice versa; each works on its
//! own copy. Invariants: decoding checks every length, and returns what was encoded; an operation is identified by a [`Tag`] that
//! the host numbers, and its completions repeat it.
//!
//! ```text
//!  Operation:   u32 slot │ u32 generation │ u32 span │ u8 kind │ rest by kind
//!  Completion:  u32 slot │ u32 generation │ u8 part │ rest by part
//! ```

use crate::corrupt::Corrupt;
use crate::frame::Tag;
use crate::purge::PurgeCall;
use crate::span::SpanCall;
use crate::stream::StreamCall;
use crate::task::TaskCall;

const TRUNCATED: Corrupt = Corrupt { what: "an operation is shorter than its lengths say" };

/// Worker → gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its identifier in completions.
    pub id: Tag,
    /// The number of the script's span that it is part of ([`crate::span`]); 0: none.
    pub span: u32,
    /// The operation.
    pub call: Call<'a>,
}

/// The kind of an operation, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call<'a> {
    /// Begin an HTTP request; `body_bytes` of its body follow in [`Call::FetchBody`].
    Fetch(FetchCall<'a>),
    /// Carry out a batch in the entity store; its bytes follow in [`Call::FetchBody`].
    Entities(EntitiesCall<'a>),
    /// Take tokens of a rate limit, or look at it.
    Rate(RateCall<'a>),
    /// Bytes of the body of the fetch, of the batch or of the task with this id, in order.
    FetchBody(&'a [u8]),
    /// The result is not needed any more; no completion follows.
    Forget,
    /// Purge pages of the page cache of the app.
    Purge(PurgeCall<'a>),
    /// Retire the snapshots of the app that depend on this key; empty: all of them.
    RetireSnapshot(&'a [u8]),
    /// Queue a task, whose data follow in [`Call::FetchBody`].
    Task(TaskCall<'a>),
    /// Do something with a raw connection; only a query has a completion.
    Stream(StreamCall<'a>),
    /// A span of the script has ended; no completion follows.
    Span(SpanCall<'a>),
}

impl<'a> Call<'a> {
    /// Whether the lead carries it out, for the workers of all threads; others are carried out by the worker's thread.
    /// [`Call::FetchBody`] and [`Call::Forget`] follow the operation that they belong to.
    pub fn is_for_lead(&self) -> bool {
        matches!(self, Call::Task(_) | Call::Entities(_))
    }

    /// The call of this number, from what follows the number in a payload.
    ///
    /// # Errors
    /// [`Corrupt`] when a length leads out of it or the number is unknown.
    pub fn decode(kind: u8, mut rest: &'a [u8]) -> Result<Self, Corrupt> {
        Ok(match kind {
            FETCH => Call::Fetch(FetchCall::decode(rest)?),
            ENTITIES => {
                let batch_bytes = take_u32(&mut rest)?;
                Call::Entities(EntitiesCall { namespace: rest, batch_bytes })
            }
            RATE => {
                let tokens = take_u32(&mut rest)?;
                let takes = take(&mut rest, 1)?[0] != 0;
                let limit = take_text(&mut rest)?;
                Call::Rate(RateCall { limit, key: rest, tokens, takes })
            }
            FETCH_BODY => Call::FetchBody(rest),
            FORGET => Call::Forget,
            PURGE => Call::Purge(PurgeCall::decode(rest)?),
            TASK => Call::Task(TaskCall::decode(rest)?),
            STREAM => Call::Stream(StreamCall::decode(rest)?),
            RETIRE_SNAPSHOT => Call::RetireSnapshot(rest),
            SPAN => Call::Span(SpanCall::decode(rest)?),
            _ => return Err(Corrupt { what: "an operation of an unknown kind" }),
        })
    }
}

/// An HTTP request that the gateway makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchCall<'a> {
    /// `http://…` or `https://…`.
    pub url: &'a [u8],
    /// `GET` and so on.
    pub method: &'a [u8],
    /// Header lines `Name: value`, each ended by a newline.
    pub headers: &'a [u8],
    /// Length of the body.
    pub body_bytes: u32,
    /// Longest time for name resolution, connection and TLS.
    pub connect_timeout_ms: u32,
    /// Longest time for all of it.
    pub timeout_ms: u32,
    /// The largest body of the response.
    pub max_body_bytes: u32,
    /// The most redirects to follow.
    pub max_redirects: u16,
    /// Retries of an idempotent call whose connection failed.
    pub retries: u8,
    /// Further options.
    pub options: FetchOptions,
}

/// A batch of operations in a namespace of the entity store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntitiesCall<'a> {
    /// The namespace.
    pub namespace: &'a [u8],
    /// Length of the batch.
    pub batch_bytes: u32,
}

/// A rate limit of the configuration, for one key of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateCall<'a> {
    /// The name of the limit.
    pub limit: &'a [u8],
    /// The key.
    pub key: &'a [u8],
    /// The number of tokens.
    pub tokens: u32,
    /// Whether they are taken; else it is a look.
    pub takes: bool,
}

/// Switches of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchOptions {
    /// Check the server's certificate.
    pub verify: bool,
    /// Decode gzip, deflate, br and zstd bodies.
    pub decompress: bool,
    /// Offer HTTP/2 to `https` servers.
    pub http2: bool,
}

impl FetchOptions {
    fn encode(self) -> u8 {
        u8::from(self.verify) | u8::from(self.decompress) << 1 | u8::from(self.http2) << 2
    }

    fn decode(raw: u8) -> Self {
        Self { verify: raw & 1 != 0, decompress: raw & 2 != 0, http2: raw & 4 != 0 }
    }
}

const FETCH: u8 = 1;
const FETCH_BODY: u8 = 2;
const FORGET: u8 = 3;
const PURGE: u8 = 8;
const TASK: u8 = 16;
const STREAM: u8 = 17;
const SPAN: u8 = 18;
const ENTITIES: u8 = 20;
const RATE: u8 = 21;
// C makes the public ones by `outboard_rs_number`, as `OUTBOARD_CALL_…`: they have a text or no content, and their
// completion is `Part::Number`.
/// The number of [`Call::RetireSnapshot`].
pub const RETIRE_SNAPSHOT: u8 = 19;

impl<'a> Operation<'a> {
    /// Appends the payload to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        put_tag(out, self.id);
        out.extend_from_slice(&self.span.to_le_bytes());
        match &self.call {
            Call::Fetch(call) => {
                out.push(FETCH);
                call.encode(out);
            }
            Call::Entities(call) => {
                out.push(ENTITIES);
                out.extend_from_slice(&call.batch_bytes.to_le_bytes());
                out.extend_from_slice(call.namespace);
            }
            Call::Rate(call) => {
                out.push(RATE);
                out.extend_from_slice(&call.tokens.to_le_bytes());
                out.push(call.takes.into());
                put_text(out, call.limit);
                out.extend_from_slice(call.key);
            }
            Call::FetchBody(bytes) => {
                out.push(FETCH_BODY);
                out.extend_from_slice(bytes);
            }
            Call::Forget => out.push(FORGET),
            Call::Purge(call) => {
                out.push(PURGE);
                call.encode(out);
            }
            Call::RetireSnapshot(key) => {
                out.push(RETIRE_SNAPSHOT);
                out.extend_from_slice(key);
            }
            Call::Task(call) => {
                out.push(TASK);
                call.encode(out);
            }
            Call::Stream(call) => {
                out.push(STREAM);
                call.encode(out);
            }
            Call::Span(call) => {
                out.push(SPAN);
                call.encode(out);
            }
        }
        debug_assert_eq!(Operation::decode(&out[at..]).as_ref(), Ok(self));
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// [`Corrupt`] when a length leads out of it or the kind is unknown.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let mut rest = payload;
        let id = take_tag(&mut rest)?;
        let span = take_u32(&mut rest)?;
        let kind = take(&mut rest, 1)?[0];
        Ok(Self { id, span, call: Call::decode(kind, rest)? })
    }
}

impl<'a> FetchCall<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        for number in
            [self.body_bytes, self.connect_timeout_ms, self.timeout_ms, self.max_body_bytes]
        {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.max_redirects.to_le_bytes());
        out.push(self.retries);
        out.push(self.options.encode());
        for text in [self.method, self.url, self.headers] {
            put_text(out, text);
        }
    }

    fn decode(mut rest: &'a [u8]) -> Result<Self, Corrupt> {
        let body_bytes = take_u32(&mut rest)?;
        let connect_timeout_ms = take_u32(&mut rest)?;
        let timeout_ms = take_u32(&mut rest)?;
        let max_body_bytes = take_u32(&mut rest)?;
        let max_redirects = take_u16(&mut rest)?;
        let switches = take(&mut rest, 2)?;
        Ok(Self {
            body_bytes,
            connect_timeout_ms,
            timeout_ms,
            max_body_bytes,
            max_redirects,
            retries: switches[0],
            options: FetchOptions::decode(switches[1]),
            method: take_text(&mut rest)?,
            url: take_text(&mut rest)?,
            headers: take_text(&mut rest)?,
        })
    }
}

/// Gateway → worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion<'a> {
    /// The operation.
    pub id: Tag,
    /// The content.
    pub part: Part<'a>,
}

/// The content of a completion: all at once; or a head, bodies and an end, in this order; or a
/// failure at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// A head and all of a body that is small.
    Whole(FetchedHead<'a>, &'a [u8]),
    /// The head of the response.
    Head(FetchedHead<'a>),
    /// Bytes of the body.
    Body(&'a [u8]),
    /// The response is complete.
    End,
    /// The operation failed.
    Failed {
        /// The kind of failure.
        failure: Failure,
        /// The message.
        message: &'a str,
    },
    /// The call is carried out, and this is its result, such as how many pages are purged.
    Number(u64),
    /// The result of a query about raw connections, as JSON.
    Queried(&'a [u8]),
}

/// The head of a fetched response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchedHead<'a> {
    /// The status.
    pub status: u16,
    /// The major version of HTTP: 1 or 2.
    pub http_version: u8,
    /// The URL after redirects.
    pub url: &'a [u8],
    /// Header lines `Name: value`, each ended by a newline.
    pub headers: &'a [u8],
}

impl<'a> FetchedHead<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.http_version);
        out.extend_from_slice(&self.status.to_le_bytes());
        put_text(out, self.url);
        put_text(out, self.headers);
    }

    fn decode(rest: &mut &'a [u8]) -> Result<Self, Corrupt> {
        let http_version = take(rest, 1)?[0];
        let status = take_u16(rest)?;
        let url = take_text(rest)?;
        let headers = take_text(rest)?;
        Ok(Self { status, http_version, url, headers })
    }
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Failure {
    /// The call itself is wrong: URL, method, header.
    BadCall = 1,
    /// The name has no address.
    Resolve = 2,
    /// No connection could be made.
    Connect = 3,
    /// TLS failed.
    Tls = 4,
    /// It took too long.
    Timeout = 5,
    /// The peer closed or broke HTTP.
    Protocol = 6,
    /// Too many redirects.
    Redirects = 7,
    /// The response is larger than allowed.
    TooLarge = 8,
    /// The gateway has too many operations for this host.
    Busy = 9,
    /// Every attempt at the task failed.
    Task = 10,
}

impl Failure {
    fn from_wire(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::BadCall,
            2 => Self::Resolve,
            3 => Self::Connect,
            4 => Self::Tls,
            5 => Self::Timeout,
            6 => Self::Protocol,
            7 => Self::Redirects,
            8 => Self::TooLarge,
            9 => Self::Busy,
            10 => Self::Task,
            _ => return None,
        })
    }
}

const HEAD: u8 = 1;
const BODY: u8 = 2;
const END: u8 = 3;
const FAILED: u8 = 4;
const WHOLE: u8 = 5;
const NUMBER: u8 = 8;
const QUERIED: u8 = 9;

impl<'a> Completion<'a> {
    /// Appends the payload to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        put_tag(out, self.id);
        match &self.part {
            Part::Whole(head, body) => {
                out.push(WHOLE);
                head.encode(out);
                out.extend_from_slice(body);
            }
            Part::Head(head) => {
                out.push(HEAD);
                head.encode(out);
            }
            Part::Body(bytes) => {
                out.push(BODY);
                out.extend_from_slice(bytes);
            }
            Part::End => out.push(END),
            Part::Failed { failure, message } => {
                out.push(FAILED);
                out.push(*failure as u8);
                out.extend_from_slice(message.as_bytes());
            }
            Part::Number(number) => {
                out.push(NUMBER);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Part::Queried(bytes) => {
                out.push(QUERIED);
                out.extend_from_slice(bytes);
            }
        }
        debug_assert_eq!(Completion::decode(&out[at..]).as_ref(), Ok(self));
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// [`Corrupt`] when a length leads out of it or a number is unknown.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let mut rest = payload;
        let id = take_tag(&mut rest)?;
        let part = match take(&mut rest, 1)?[0] {
            WHOLE => Part::Whole(FetchedHead::decode(&mut rest)?, rest),
            HEAD => Part::Head(FetchedHead::decode(&mut rest)?),
            BODY => Part::Body(rest),
            END => Part::End,
            FAILED => {
                let failure = Failure::from_wire(take(&mut rest, 1)?[0])
                    .ok_or(Corrupt { what: "an unknown failure" })?;
                let message = std::str::from_utf8(rest)
                    .map_err(|_| Corrupt { what: "a failure's message is not UTF-8" })?;
                Part::Failed { failure, message }
            }
            NUMBER => Part::Number(u64::from_le_bytes(*rest.first_chunk().ok_or(TRUNCATED)?)),
            QUERIED => Part::Queried(rest),
            _ => return Err(Corrupt { what: "an unknown part of a completion" }),
        };
        Ok(Self { id, part })
    }
}

fn put_tag(out: &mut Vec<u8>, tag: Tag) {
    out.extend_from_slice(&tag.slot.to_le_bytes());
    out.extend_from_slice(&tag.generation.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Corrupt> {
    let (head, tail) = rest.split_at_checked(len).ok_or(TRUNCATED)?;
    *rest = tail;
    Ok(head)
}

fn take_u16(rest: &mut &[u8]) -> Result<u16, Corrupt> {
    let raw = take(rest, 2)?;
    Ok(u16::from_le_bytes([raw[0], raw[1]]))
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, Corrupt> {
    let raw = take(rest, 4)?;
    Ok(u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]))
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Corrupt> {
    let len = take_u32(rest)? as usize;
    take(rest, len)
}

fn take_tag(rest: &mut &[u8]) -> Result<Tag, Corrupt> {
    Ok(Tag { slot: take_u32(rest)?, generation: take_u32(rest)? })
}

#[cfg(test)]
mod tests;
