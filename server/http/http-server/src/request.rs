//! [`Request`]: the request that a connection is at: its head, its client, and how far its body was read.
//!
//! Owned by the connection; a service reads it. Invariants: it changes only before a handler has it, by access
//! rules, and a change ends with it; reading the body does not move the head.

use crate::buffers::Buffers;
use crate::client::Client;
use crate::direct::DirectParts;
use outboard_config::Limits;
use outboard_http1::{BodyFraming, Method, RequestHead, Version};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// See the module.
pub struct Request {
    /// Who has sent it.
    pub client: Rc<Client>,
    /// Present while a request is processed.
    pub(crate) buffers: Option<Box<Buffers>>,
    /// Length of the head in the input.
    pub(crate) head_len: usize,
    /// Whether it is served before the client's handshake is complete (RFC 8470).
    pub is_early: bool,
    pub(crate) body: BodyProgress,
    /// Its part in another process.
    pub direct: DirectParts,
}

/// How far the body was read.
#[derive(Debug, Default)]
pub(crate) struct BodyProgress {
    /// Bytes of the input that belong to the request; the next request follows.
    pub(crate) consumed: Cell<usize>,
    /// Bytes that were read after the body.
    pub(crate) read_ahead: RefCell<Vec<u8>>,
    /// The longest body that access rules admit.
    limit: Cell<Option<u64>>,
}

impl BodyProgress {
    /// There is no request.
    pub(crate) fn clear(&self) {
        self.consumed.set(0);
        self.read_ahead.take();
    }
}

/// Accessors of the head: see [`RequestHead`].
impl Request {
    pub(crate) fn new(client: Rc<Client>) -> Self {
        Self {
            client,
            buffers: None,
            head_len: 0,
            is_early: false,
            body: BodyProgress::default(),
            direct: DirectParts::default(),
        }
    }

    /// The buffers of the request; they exist from its first byte to the end of the response.
    pub(crate) fn buffers_mut(&mut self) -> &mut Buffers {
        self.buffers.get_or_insert_with(|| {
            let pool = &self.client.context.buffers;
            match self.client.transport.message() {
                Some(_) => pool.take_of_stream(),
                None => pool.take(),
            }
        })
    }

    fn buffers(&self) -> &Buffers {
        self.buffers.as_deref().expect("a request is being processed")
    }

    /// The head and the bytes that it refers to.
    pub fn head(&self) -> (&RequestHead, &[u8]) {
        let Buffers { head, input, .. } = self.buffers();
        (head, input)
    }

    /// The length of the head.
    pub fn head_bytes(&self) -> usize {
        self.head_len
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.buffers().head.method_kind()
    }

    /// The method as received.
    pub fn method_name(&self) -> &[u8] {
        let (head, input) = self.head();
        head.method(input)
    }

    /// The version of HTTP.
    pub fn version(&self) -> Version {
        self.buffers().head.version()
    }

    /// The request target as received.
    pub fn target(&self) -> &[u8] {
        let (head, input) = self.head();
        head.target(input)
    }

    /// The decoded, normalised path, once [`Request::normalize_path`] has set it.
    pub fn path(&self) -> &[u8] {
        &self.buffers().path
    }

    /// The path as received, still encoded.
    pub fn encoded_path(&self) -> &[u8] {
        let (head, input) = self.head();
        head.path(input)
    }

    /// The query, still encoded.
    pub fn query(&self) -> Option<&[u8]> {
        let (head, input) = self.head();
        head.query(input)
    }

    /// The encoded path, and the query.
    pub fn path_and_query(&self) -> (&[u8], Option<&[u8]>) {
        let (head, input) = self.head();
        head.path_and_query(input)
    }

    /// Encoded path and query in one.
    pub fn origin_form(&self) -> Cow<'_, [u8]> {
        let (head, input) = self.head();
        head.origin_form(input)
    }

    /// The host that the client has named, with a port.
    pub fn named_host(&self) -> Option<&[u8]> {
        let (head, input) = self.head();
        head.host(input)
    }

    /// The fields in order.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (head, input) = self.head();
        head.headers(input)
    }

    /// The value of the first field called `name`.
    pub fn header(&self, name: &[u8]) -> Option<&[u8]> {
        let (head, input) = self.head();
        head.header(input, name)
    }

    /// The value of the only field called `name`; `None` if there are several.
    pub fn only_header(&self, name: &[u8]) -> Option<&[u8]> {
        let (head, input) = self.head();
        head.only_header(input, name)
    }

    /// The value of the field called `name`, which is empty if there are several.
    pub fn header_if_alone(&self, name: &[u8]) -> Option<&[u8]> {
        let (head, input) = self.head();
        head.header_if_alone(input, name)
    }

    /// The protocols that the client offers to switch to.
    pub fn upgrade(&self) -> Option<&[u8]> {
        let (head, input) = self.head();
        head.upgrade(input)
    }

    /// How the body is delimited.
    pub fn body_framing(&self) -> BodyFraming {
        self.buffers().head.body()
    }

    /// The bytes of a head that could not be read.
    pub fn unread_head(&self) -> &[u8] {
        self.buffers.as_ref().map_or(&[], |buffers| &buffers.input)
    }

    /// The longest body that is admitted.
    pub(crate) fn max_body_bytes(&self, limits: &Limits) -> u64 {
        self.body.limit.get().map_or(limits.body_bytes, |own| own.min(limits.body_bytes))
    }

    /// The bytes of the body that arrived with the head and are not read yet, up to those of the next request.
    pub(crate) fn received(&self) -> &[u8] {
        &self.buffers().input[self.body.consumed.get()..]
    }

    /// The next head follows these bytes.
    pub(crate) fn begin_body(&mut self, head_len: usize) {
        self.head_len = head_len;
        self.body.consumed.set(head_len);
        self.body.limit.set(None);
        let has_body = !matches!(self.body_framing(), BodyFraming::None | BodyFraming::Length(0));
        self.client.has_unread_body.set(has_body);
    }

    /// Whether nothing of a next request has been read.
    pub(crate) fn has_no_input(&self) -> bool {
        self.buffers.as_ref().is_none_or(|buffers| buffers.input.is_empty())
    }

    /// Forgets the request, and keeps the bytes of the next one.
    pub(crate) fn forget(&mut self) {
        let consumed = self.body.consumed.replace(0);
        let read_ahead = self.body.read_ahead.take();
        let input = &mut self.buffers_mut().input;
        input.drain(..consumed.min(input.len()));
        input.extend_from_slice(&read_ahead);
    }

    /// The bytes that followed the request.
    pub(crate) fn into_rest(self) -> (Rc<Client>, Vec<u8>) {
        let Self { client, buffers, body, .. } = self;
        let mut rest = Vec::new();
        if let Some(mut buffers) = buffers {
            rest = buffers.input.split_off(body.consumed.get().min(buffers.input.len()));
            rest.append(&mut body.read_ahead.take());
            client.context.buffers.give_back(buffers);
        }
        (client, rest)
    }
}

/// What access rules change, before a handler has the request.
impl Request {
    /// Decodes and normalises the path.
    ///
    /// # Errors
    /// The path is invalid.
    pub fn normalize_path(&mut self) -> Result<(), outboard_http1::PathError> {
        let Buffers { head, input, path, .. } = self.buffers_mut();
        outboard_http1::normalize_path(head.path(input), path)
    }

    /// Removes fields.
    pub fn remove_fields(&mut self, is_removed: impl Fn(&[u8]) -> bool) {
        let Buffers { head, input, .. } = self.buffers_mut();
        head.remove_fields(input, is_removed);
    }

    /// Adds a field.
    pub fn insert_field(&mut self, name: &[u8], value: &[u8]) {
        let before = self.head_len;
        let Buffers { head, input, .. } = self.buffers_mut();
        self.head_len = head.insert_field(input, before, (name, value));
        let consumed = &self.body.consumed;
        consumed.set(consumed.get() + self.head_len - before);
    }

    /// Joins Cookie fields in one, as those of HTTP/2 are (RFC 9113 8.2.3), so that all readers see the same.
    pub fn join_cookies(&mut self) {
        let (head, input) = self.head();
        if !head.repeats_cookie() {
            return;
        }
        let is_cookie = |name: &[u8]| name.eq_ignore_ascii_case(b"cookie");
        let cookies = head.headers(input).filter(|(name, _)| is_cookie(name));
        let joined = cookies.map(|(_, value)| value).collect::<Vec<_>>().join(&b"; "[..]);
        self.remove_fields(is_cookie);
        self.insert_field(b"Cookie", &joined);
    }

    /// Sets the longest body for this request, if that is shorter than before.
    pub fn limit_body(&mut self, bytes: u64) {
        let limit = &self.body.limit;
        limit.set(Some(limit.get().map_or(bytes, |before| before.min(bytes))));
    }
}
