//! Chunk extensions, `;name=value` after a chunk size (RFC 9112 7.1.1), byte by byte.
//!
//! Called by the chunked decoder. The values are not used, but only the strict grammar makes every
//! parser find the same end.

use crate::scan;

/// The state before the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extension {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Token,
    Quoted,
    Escaped,
    AfterValue,
}

impl Extension {
    /// The state after one more byte; `None` if it is not allowed here.
    pub(crate) fn after(self, byte: u8) -> Option<Self> {
        let is_space = matches!(byte, b' ' | b'\t');
        match (self, byte) {
            (Self::Quoted, b'"') => Some(Self::AfterValue),
            (Self::Quoted, b'\\') => Some(Self::Escaped),
            (Self::Quoted | Self::Escaped, _) => {
                (is_space || (byte > b' ' && byte != 0x7f)).then_some(Self::Quoted)
            }
            (Self::BeforeValue, b'"') => Some(Self::Quoted),
            (Self::Name | Self::AfterName, b'=') => Some(Self::BeforeValue),
            (Self::Name | Self::AfterName | Self::Token | Self::AfterValue, b';') => {
                Some(Self::BeforeName)
            }
            (Self::Name | Self::AfterName, _) if is_space => Some(Self::AfterName),
            (Self::Token | Self::AfterValue, _) if is_space => Some(Self::AfterValue),
            (Self::BeforeName | Self::BeforeValue, _) if is_space => Some(self),
            (Self::BeforeName | Self::Name, _) => scan::is_token(&[byte]).then_some(Self::Name),
            (Self::BeforeValue | Self::Token, _) => scan::is_token(&[byte]).then_some(Self::Token),
            (Self::AfterName | Self::AfterValue, _) => None,
        }
    }

    /// Whether the line may end here.
    pub(crate) fn may_end(self) -> bool {
        matches!(self, Self::Name | Self::Token | Self::AfterValue)
    }
}
