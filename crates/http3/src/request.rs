//! The head of a request: its pseudo-header fields and fields (RFC 9114 4.3.1, RFC 9220 3).
//!
//! Called by `connection` with each field as it is decoded. Invariant: a head that is accepted has one
//! meaning: one method, one target, one host, one length.

use crate::error::MalformedFields;
use crate::fields::{FieldList, is_token};
use std::ops::Range;

/// The pseudo-header fields, in the order of [`RequestHead::pseudo`].
const PSEUDO_FIELDS: [&[u8]; 5] = [b":method", b":scheme", b":authority", b":path", b":protocol"];

/// The head of a request.
#[derive(Debug, Clone, Default)]
pub struct RequestHead {
    /// The values of the pseudo-header fields, stored with the fields.
    pseudo: [Option<Range<usize>>; PSEUDO_FIELDS.len()],
    fields: FieldList,
    content_length: Option<u64>,
    has_host: bool,
}

impl RequestHead {
    /// `:method`.
    pub fn method(&self) -> &[u8] {
        self.pseudo_field(0).unwrap_or_default()
    }

    /// `:scheme`; `None` for CONNECT.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.pseudo_field(1)
    }

    /// `:authority`.
    pub fn authority(&self) -> Option<&[u8]> {
        self.pseudo_field(2)
    }

    /// `:path`; `None` for CONNECT.
    pub fn path(&self) -> Option<&[u8]> {
        self.pseudo_field(3)
    }

    /// `:protocol` of extended CONNECT (RFC 9220 3).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.pseudo_field(4)
    }

    /// The authority, or the value of Host; they are the same if there are both.
    pub fn host(&self) -> Option<&[u8]> {
        self.authority().or_else(|| self.fields.get(b"host"))
    }

    /// All other fields.
    pub fn fields(&self) -> &FieldList {
        &self.fields
    }

    /// Content-Length; the body that arrives has this length, or the request ends with an error.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Whether this is CONNECT, extended or not.
    pub fn is_connect(&self) -> bool {
        self.method() == b"CONNECT"
    }

    fn pseudo_field(&self, index: usize) -> Option<&[u8]> {
        self.pseudo[index].clone().map(|range| self.fields.stored(range))
    }

    pub(crate) fn clear(&mut self) {
        self.fields.clear();
        self.pseudo = Default::default();
        self.content_length = None;
        self.has_host = false;
    }

    /// Adds a field.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
        if name.first() == Some(&b':') {
            return self.push_pseudo(name, value);
        }
        match name {
            b"host" if self.has_host => return Err(MalformedFields::DuplicateField),
            b"host" => self.has_host = true,
            b"content-length" if self.content_length.is_some() => {
                return Err(MalformedFields::DuplicateField);
            }
            b"content-length" => self.content_length = Some(read_length(value)?),
            _ => {}
        }
        self.fields.push(name, value)
    }

    fn push_pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), MalformedFields> {
        let index = PSEUDO_FIELDS.iter().position(|pseudo| *pseudo == name);
        let index = index.ok_or(MalformedFields::UnexpectedPseudoField)?;
        if !self.fields.is_empty() {
            return Err(MalformedFields::LatePseudoField);
        }
        let stored = self.fields.store(value);
        match self.pseudo[index].replace(stored) {
            Some(_) => Err(MalformedFields::DuplicateField),
            None => Ok(()),
        }
    }

    /// Checks the complete head.
    pub(crate) fn check(&self, is_connect_protocol: bool) -> Result<(), MalformedFields> {
        if self.pseudo[0].is_none() {
            return Err(MalformedFields::MissingPseudoField);
        }
        if !is_token(self.method()) {
            return Err(MalformedFields::InvalidMethod);
        }
        self.check_authority()?;
        match (self.is_connect(), self.protocol()) {
            (true, None) => self.check_connect(),
            (true, Some(protocol)) if is_connect_protocol && is_token(protocol) => {
                self.check_target()
            }
            (_, Some(_)) => Err(MalformedFields::UnexpectedPseudoField),
            (false, None) => self.check_target(),
        }
    }

    /// CONNECT has a host and a port, and nothing else (RFC 9114 4.4).
    fn check_connect(&self) -> Result<(), MalformedFields> {
        if self.scheme().is_some() || self.path().is_some() {
            return Err(MalformedFields::UnexpectedPseudoField);
        }
        let authority = self.authority().ok_or(MalformedFields::MissingPseudoField)?;
        let has_port = outboard_http1::split_host_port(authority).1.is_some();
        if has_port { Ok(()) } else { Err(MalformedFields::InvalidAuthority) }
    }

    fn check_target(&self) -> Result<(), MalformedFields> {
        let (Some(scheme), Some(path)) = (self.scheme(), self.path()) else {
            return Err(MalformedFields::MissingPseudoField);
        };
        if !is_scheme(scheme) {
            return Err(MalformedFields::InvalidScheme);
        }
        let is_asterisk = path == b"*" && self.method() == b"OPTIONS";
        let is_path = path.first() == Some(&b'/') && path.iter().all(|byte| is_path_byte(*byte));
        if is_path || is_asterisk { Ok(()) } else { Err(MalformedFields::InvalidPath) }
    }

    /// There is a host, and not two of them (RFC 9114 4.3.1).
    fn check_authority(&self) -> Result<(), MalformedFields> {
        let host = self.host().ok_or(MalformedFields::InvalidAuthority)?;
        let is_same = !self.has_host
            || self.fields.get(b"host").is_some_and(|field| field.eq_ignore_ascii_case(host));
        let is_valid = is_same && outboard_http1::is_valid_authority(host);
        if is_valid { Ok(()) } else { Err(MalformedFields::InvalidAuthority) }
    }
}

/// RFC 9110 8.6; at most 18 digits, so that sums do not overflow.
pub(crate) fn read_length(value: &[u8]) -> Result<u64, MalformedFields> {
    let is_number = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    if !is_number {
        return Err(MalformedFields::InvalidContentLength);
    }
    Ok(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

/// RFC 3986 3.1.
fn is_scheme(scheme: &[u8]) -> bool {
    let is_scheme_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_scheme_byte)
}

/// The bytes that HTTP/1.1 accepts in a request target: visible, without the start of a fragment.
fn is_path_byte(byte: u8) -> bool {
    !matches!(byte, 0..=b' ' | b'#' | 127)
}

#[cfg(test)]
mod tests;
