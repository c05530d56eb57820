//! [`HeadReader`]: validates the fields of a request or its trailers as they are decoded (RFC 9113 8.1 to
//! 8.3, RFC 9114 4.2 and 4.3).
//!
//! Called by `http2` and `http3` for each field section. Invariant: a field that is not accepted is the
//! last one; the caller limits the number of fields and their bytes.

use crate::field_syntax::{check_field, is_token, is_visible, parse_content_length};
use crate::fields::Span;
use crate::malformed::MalformedFields;
use crate::request_head::RequestHead;

/// What a field section is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionKind {
    /// The head of a request.
    Request {
        /// Whether extended CONNECT was announced (RFC 8441 3, RFC 9220 3).
        allows_protocol: bool,
    },
    /// The fields after the body.
    Trailers,
}

/// See the module.
#[derive(Debug)]
pub struct HeadReader<'a> {
    head: &'a mut RequestHead,
    kind: SectionKind,
    /// Pseudo-header fields come first.
    has_fields: bool,
    host: Option<Span>,
    cookies: u32,
}

impl<'a> HeadReader<'a> {
    /// Reads into a head, which is cleared.
    pub fn new(head: &'a mut RequestHead, kind: SectionKind) -> Self {
        head.clear();
        Self { head, kind, has_fields: false, host: None, cookies: 0 }
    }

    /// The number of fields that were added, without pseudo-header fields and Host.
    #[inline]
    pub fn field_count(&self) -> usize {
        self.head.fields.len()
    }

    /// Adds a decoded field.
    ///
    /// # Errors
    /// The message is malformed; further fields are of no use.
    #[inline]
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
        if name.first() == Some(&b':') {
            return self.add_pseudo_field(name, value);
        }
        self.has_fields = true;
        check_field(name, value)?;
        match name {
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => {
                return Err(MalformedFields::ConnectionField);
            }
            _ if self.kind == SectionKind::Trailers => {}
            b"host" => return self.add_host(value),
            b"content-length" if self.head.content_length.is_some() => {
                return Err(MalformedFields::DuplicateField);
            }
            b"content-length" => self.head.content_length = Some(parse_content_length(value)?),
            b"cookie" => self.cookies += 1,
            b"priority" => {
                let priority = self.head.priority.unwrap_or_default();
                self.head.priority = Some(priority.merged(value));
            }
            _ => {}
        }
        self.head.fields.push(name, value);
        Ok(())
    }

    /// RFC 9112 3.2: a second one is an error even if it is equal.
    fn add_host(&mut self, value: &[u8]) -> Result<(), MalformedFields> {
        let host = self.head.fields.store(value);
        match self.host.replace(host) {
            None => Ok(()),
            Some(_) => Err(MalformedFields::DuplicateField),
        }
    }

    /// RFC 9113 8.3.1, RFC 9114 4.3.1, RFC 8441 4.
    #[inline]
    fn add_pseudo_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
        use MalformedFields::*;
        let SectionKind::Request { allows_protocol } = self.kind else {
            return Err(UnexpectedPseudoField);
        };
        if self.has_fields {
            return Err(LatePseudoField);
        }
        let head = &mut *self.head;
        let (is_valid, error, slot) = match name {
            b":method" => (is_token(value), InvalidMethod, &mut head.method),
            b":scheme" => (is_valid_scheme(value), InvalidScheme, &mut head.scheme),
            b":path" => (is_valid_path(value), InvalidPath, &mut head.path),
            b":authority" => (is_valid_authority(value), InvalidAuthority, &mut head.authority),
            b":protocol" if allows_protocol => {
                (is_token(value), InvalidProtocol, &mut head.protocol)
            }
            _ => return Err(UnexpectedPseudoField),
        };
        if !is_valid {
            return Err(error);
        }
        if slot.is_some() {
            return Err(DuplicateField);
        }
        *slot = Some(head.fields.store(value));
        Ok(())
    }

    /// Checks the complete section.
    ///
    /// # Errors
    /// The message is malformed.
    pub fn finish(mut self) -> Result<(), MalformedFields> {
        match self.kind {
            SectionKind::Request { .. } => self.finish_request(),
            SectionKind::Trailers => Ok(()),
        }
    }

    fn finish_request(&mut self) -> Result<(), MalformedFields> {
        let head = &mut *self.head;
        if head.method.is_none() {
            return Err(MalformedFields::MissingPseudoField);
        }
        let has_target = head.scheme.is_some() && head.path.is_some();
        let has_part_of_target = head.scheme.is_some() || head.path.is_some();
        match (head.is_connect(), head.protocol.is_some()) {
            // RFC 9113 8.5, RFC 9114 4.4.
            (true, false) if has_part_of_target => {
                return Err(MalformedFields::UnexpectedPseudoField);
            }
            // RFC 8441 4.
            (false, true) => return Err(MalformedFields::UnexpectedPseudoField),
            (true, _) if head.authority.is_none() => {
                return Err(MalformedFields::MissingPseudoField);
            }
            (true, false) => {}
            _ if !has_target => return Err(MalformedFields::MissingPseudoField),
            _ => {}
        }
        // RFC 9113 8.3.1: `*` is the path of OPTIONS only.
        if head.path() == b"*" && head.method() != b"OPTIONS" {
            return Err(MalformedFields::InvalidPath);
        }
        self.finish_authority()?;
        if self.cookies > 1 {
            self.head.fields.join(b"cookie", b"; ");
        }
        Ok(())
    }

    /// The two may not differ (RFC 9113 8.3.1, RFC 9114 4.3.1).
    fn finish_authority(&mut self) -> Result<(), MalformedFields> {
        let Some(host) = self.host else { return Ok(()) };
        let head = &mut *self.head;
        let value = head.fields.stored(host);
        let is_valid = match head.authority {
            Some(authority) => are_same(head.fields.stored(authority), value),
            None => is_valid_authority(value),
        };
        head.authority.get_or_insert(host);
        if is_valid { Ok(()) } else { Err(MalformedFields::InvalidAuthority) }
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

#[cfg(test)]
mod tests;
