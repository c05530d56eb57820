//! What access rules change of a request and of its response, before a handler sees it.
//!
//! Called by the service. Invariant: a change ends with its request.

use crate::buffers::Buffers;
use crate::connection::Connection;
use crate::response_fields::ResponseFields;
use outboard_config::Limits;

impl Connection {
    /// Removes fields of the request, before its body is read.
    pub fn remove_fields(&mut self, is_removed: impl Fn(&[u8]) -> bool) {
        let Buffers { head, input, .. } = self.buffers();
        head.remove_fields(input, is_removed);
    }

    /// Adds a field to the request, before its body is read.
    pub fn insert_field(&mut self, name: &[u8], value: &[u8]) {
        let before = self.head_len;
        let Buffers { head, input, .. } = self.buffers();
        self.head_len = head.insert_field(input, before, (name, value));
        self.consumed += self.head_len - before;
    }

    /// Joins Cookie fields in one, as those of HTTP/2 are (RFC 9113 8.2.3), so that all readers see the same.
    pub fn join_cookies(&mut self) {
        let Buffers { head, input, .. } = self.buffers();
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
        self.body_limit = Some(self.body_limit.map_or(bytes, |before| before.min(bytes)));
    }

    pub(crate) fn max_body_bytes(&self, limits: &Limits) -> u64 {
        self.body_limit.map_or(limits.body_bytes, |own| own.min(limits.body_bytes))
    }

    /// Sets fields of the response to this request.
    pub fn set_response_fields(&mut self, fields: ResponseFields) {
        self.response_fields = Some(Box::new(fields));
    }
}
