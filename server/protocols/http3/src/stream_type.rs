//! Types of unidirectional streams, which are their first bytes (RFC 9114 11.2.4, RFC 9204 8.2).

pub(crate) const CONTROL: u64 = 0x0;
pub(crate) const PUSH: u64 = 0x1;
pub(crate) const QPACK_ENCODER: u64 = 0x2;
pub(crate) const QPACK_DECODER: u64 = 0x3;
