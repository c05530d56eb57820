//! [`HeadReader`]: validates the fields of a request or its trailers as they are decoded
//! (RFC 9113 8.1, 8.2, 8.3).
//!
//! Called by `connection` for each field block. Invariants: a malformed message is reported as such
//! once the block is complete, because the state of the decoder depends on all of it; the number of
//! fields is limited here, their bytes by the decoder.

use crate::fields::{
    Span, is_connection_specific, is_token, is_valid_name, is_valid_value, is_visible,
};
use crate::request_head::RequestHead;
use std::ops::ControlFlow;

/// What a field block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Request {
        /// SETTINGS_ENABLE_CONNECT_PROTOCOL was sent (RFC 8441 3).
        allows_protocol: bool,
    },
    Trailers,
    /// Of a stream that is closed; only the decoder needs it.
    Ignored,
}

/// The result of a field block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockResult {
    Valid,
    /// RFC 9113 8.1.1.
    Malformed,
    /// There are too many fields or bytes.
    TooLarge,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct HeadReader<'a> {
    head: &'a mut RequestHead,
    kind: BlockKind,
    fields_max: usize,
    /// Pseudo fields come first.
    has_fields: bool,
    host: Option<Span>,
    cookies: u32,
    result: BlockResult,
}

impl<'a> HeadReader<'a> {
    /// The head is cleared.
    pub(crate) fn new(head: &'a mut RequestHead, kind: BlockKind, fields_max: usize) -> Self {
        head.clear();
        let result = BlockResult::Valid;
        Self { head, kind, fields_max, has_fields: false, host: None, cookies: 0, result }
    }

    /// Adds a decoded field; after a `Break`, further ones are of no use.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> ControlFlow<()> {
        if self.kind == BlockKind::Ignored {
            return ControlFlow::Break(());
        }
        if self.head.fields.len() >= self.fields_max {
            self.result = BlockResult::TooLarge;
        } else if self.try_add(name, value).is_none() {
            self.result = BlockResult::Malformed;
        }
        match self.result {
            BlockResult::Valid => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// `None` if the field makes the message malformed.
    fn try_add(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        if name.first() == Some(&b':') {
            return self.add_pseudo_field(name, value);
        }
        self.has_fields = true;
        if !is_valid_name(name) || !is_valid_value(value) || is_connection_specific(name) {
            return None;
        }
        match name {
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => return None,
            _ if self.kind == BlockKind::Trailers => {}
            b"host" => {
                // RFC 9112 3.2: a second one is an error even if it is equal.
                let host = self.host.is_none().then(|| self.head.fields.store(value));
                self.host = Some(host?);
                return Some(());
            }
            b"content-length" => {
                let length = self.head.content_length.is_none().then(|| parse_length(value))?;
                self.head.content_length = Some(length?);
            }
            b"cookie" => self.cookies += 1,
            b"priority" => {
                let priority = self.head.priority.unwrap_or_default();
                self.head.priority = Some(priority.merged(value));
            }
            _ => {}
        }
        self.head.fields.push(name, value);
        Some(())
    }

    /// RFC 9113 8.3.1, RFC 8441 4.
    fn add_pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let BlockKind::Request { allows_protocol } = self.kind else { return None };
        if self.has_fields {
            return None;
        }
        let (is_valid, slot) = match name {
            b":method" => (is_token(value), &mut self.head.method),
            b":scheme" => (is_valid_scheme(value), &mut self.head.scheme),
            b":path" => (is_valid_path(value), &mut self.head.path),
            b":authority" => (is_valid_authority(value), &mut self.head.authority),
            b":protocol" => (allows_protocol && is_token(value), &mut self.head.protocol),
            _ => return None,
        };
        if !is_valid || slot.is_some() {
            return None;
        }
        *slot = Some(self.head.fields.store(value));
        Some(())
    }

    /// Call it after the last field.
    pub(crate) fn finish(mut self) -> BlockResult {
        let is_request = matches!(self.kind, BlockKind::Request { .. });
        if self.result == BlockResult::Valid && is_request && self.finish_request().is_none() {
            self.result = BlockResult::Malformed;
        }
        self.result
    }

    fn finish_request(&mut self) -> Option<()> {
        let head = &mut *self.head;
        let method = head.method?;
        let is_connect = head.fields.stored(method) == b"CONNECT";
        let has_target = head.scheme.is_some() && head.path.is_some();
        let has_part_of_target = head.scheme.is_some() || head.path.is_some();
        match (is_connect, head.protocol.is_some()) {
            // RFC 9113 8.5.
            (true, false) if has_part_of_target || head.authority.is_none() => return None,
            (true, false) => {}
            // RFC 8441 4.
            (true, true) if !has_target || head.authority.is_none() => return None,
            (true, true) => {}
            (false, true) => return None,
            (false, false) if !has_target => return None,
            (false, false) => {}
        }
        // RFC 9113 8.3.1: `*` is the path of OPTIONS only.
        let path = head.path();
        if path == b"*" && head.method() != b"OPTIONS" {
            return None;
        }
        self.finish_authority()?;
        if self.cookies > 1 {
            self.head.fields.join(b"cookie", b"; ");
        }
        Some(())
    }

    /// The two may not differ (RFC 9113 8.3.1).
    fn finish_authority(&mut self) -> Option<()> {
        let head = &mut *self.head;
        let Some(host) = self.host else { return Some(()) };
        let value = head.fields.stored(host);
        match head.authority {
            Some(authority) if !are_same(head.fields.stored(authority), value) => None,
            Some(_) => Some(()),
            None if is_valid_authority(value) => {
                head.authority = Some(host);
                Some(())
            }
            None => None,
        }
    }
}

/// Whether two authorities are the same host and port; 443 is the default (RFC 3986 6.2.3).
fn are_same(authority: &[u8], host: &[u8]) -> bool {
    let bare = |value: &'_ [u8]| value.len() - if value.ends_with(b":443") { 4 } else { 0 };
    authority == host || authority[..bare(authority)].eq_ignore_ascii_case(&host[..bare(host)])
}

/// RFC 3986 3.1.
fn is_valid_scheme(scheme: &[u8]) -> bool {
    let is_valid = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_valid)
}

/// RFC 9113 8.3.1: no userinfo.
fn is_valid_authority(authority: &[u8]) -> bool {
    is_visible(authority) && !authority.contains(&b'@')
}

/// RFC 9113 8.3.1; a fragment is not sent (RFC 9110 7.1).
fn is_valid_path(path: &[u8]) -> bool {
    let has_form = path.first() == Some(&b'/') || path == b"*";
    has_form
        && path
            .iter()
            .fold(true, |valid, byte| valid & (*byte > 32) & (*byte < 127) & (*byte != b'#'))
}

/// RFC 9110 8.6: digits alone.
fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests;
