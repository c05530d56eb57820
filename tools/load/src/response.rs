//! [`Response`]: the parsed parts of one response, whatever its protocol.
//!
//! Filled by `http1`, `http2`, `http3`, `fastcgi` and `redis`; checked by the worker. Each connection
//! reuses its own.

use crate::failures::Failure;
use crate::plan::Expect;
use crate::recorder::First;

/// Only the parts that are used are stored; the rest is counted.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    /// Whether the connection can take another request.
    pub(crate) keep_alive: bool,
    /// Whether header fields are read, which costs a walk through the head.
    pub(crate) wants_fields: bool,
    /// `name=value` of every `Set-Cookie`.
    pub(crate) cookies: Vec<String>,
    /// The `Server` field.
    pub(crate) server: String,
    pub(crate) wants_body: bool,
    pub(crate) body: Vec<u8>,
}

/// The limit of a stored body.
const BODY_MAX_BYTES: usize = 16 << 20;

impl Response {
    pub(crate) fn clear(&mut self) {
        self.status = 0;
        self.body_bytes = 0;
        self.keep_alive = false;
        self.cookies.clear();
        self.body.clear();
    }

    pub(crate) fn take_body(&mut self, bytes: &[u8]) {
        self.body_bytes += bytes.len() as u64;
        if self.wants_body && self.body.len() < BODY_MAX_BYTES {
            self.body.extend_from_slice(bytes);
        }
    }

    /// Stores a field that is used.
    pub(crate) fn take_field(&mut self, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(b"set-cookie") {
            let pair = value.split(|&byte| byte == b';').next().unwrap_or_default();
            self.cookies.push(String::from_utf8_lossy(pair.trim_ascii()).into_owned());
        } else if name.eq_ignore_ascii_case(b"server") {
            self.server = String::from_utf8_lossy(value).into_owned();
        }
    }

    pub(crate) fn first(&self) -> First {
        let server = self.server.clone();
        First { status: self.status, body_bytes: self.body_bytes, server }
    }

    /// Why the response is not as expected, if it is not.
    pub(crate) fn judge(&self, expect: &Expect) -> Option<Failure> {
        let is_good = match expect.status {
            Some(status) => self.status == status,
            None => self.status < 400,
        };
        if !is_good {
            return Some(Failure::Status);
        }
        if expect.length_bytes.is_some_and(|length| length != self.body_bytes) {
            return Some(Failure::Length);
        }
        let lacks = |text: &String| memchr::memmem::find(&self.body, text.as_bytes()).is_none();
        let is_other = expect.body_is.as_ref().is_some_and(|body| **body != *self.body);
        let is_bad = is_other || expect.body_contains.as_ref().is_some_and(lacks);
        is_bad.then_some(Failure::Body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_checked_by_status_then_length_then_body() {
        let mut response = Response { status: 200, wants_body: true, ..Response::default() };
        response.take_body(b"hello");
        let judge = |status, length_bytes, body: Option<&str>| {
            let body_contains = body.map(str::to_owned);
            response.judge(&Expect { status, length_bytes, body_contains, ..Expect::default() })
        };
        assert_eq!(judge(None, None, None), None);
        assert_eq!(judge(Some(200), Some(5), Some("ell")), None);
        assert_eq!(judge(Some(204), Some(6), None), Some(Failure::Status));
        assert_eq!(judge(None, Some(6), Some("x")), Some(Failure::Length));
        assert_eq!(judge(None, Some(5), Some("x")), Some(Failure::Body));
    }

    #[test]
    fn a_body_must_be_the_expected_one_to_the_last_byte() {
        let mut response = Response { status: 200, wants_body: true, ..Response::default() };
        response.take_body(b"hello");
        let judge = |body: &[u8]| {
            response.judge(&Expect { body_is: Some(body.into()), ..Expect::default() })
        };
        assert_eq!(judge(b"hello"), None);
        assert_eq!(judge(b"hellO"), Some(Failure::Body));
        assert_eq!(judge(b"hell"), Some(Failure::Body));
    }

    #[test]
    fn a_status_from_400_has_failed_unless_it_was_expected() {
        let response = Response { status: 404, ..Response::default() };
        assert_eq!(response.judge(&Expect::default()), Some(Failure::Status));
        assert_eq!(response.judge(&Expect { status: Some(404), ..Expect::default() }), None);
    }
}
