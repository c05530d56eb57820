//! Why compressed fields are rejected.
//!
//! Returned by every decoder of this crate. Each error makes the state of the two sides differ, so it
//! ends the connection (RFC 9113 4.3, RFC 9204 2.2).

use std::fmt;

/// Why a field block, a field section or a stream of instructions cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeError {
    /// The input ends within a field line or an instruction.
    Truncated,
    /// An integer is larger than 2^62 - 1, or its encoding is longer than it has to be for that
    /// (RFC 7541 5.1, RFC 9204 4.1.1).
    IntegerOverflow,
    /// A string is not valid Huffman code (RFC 7541 5.2).
    InvalidHuffmanCode,
    /// An index refers to no entry of its table (RFC 7541 2.3.3, RFC 9204 3.1 and 2.2.3).
    InvalidIndex,
    /// The peer sets a table larger than was announced (RFC 7541 6.3, RFC 9204 4.3.1).
    TableTooLarge,
    /// A table size update after a field line (RFC 7541 4.2).
    LateTableSizeUpdate,
    /// No table size update, although the announced size was reduced (RFC 7541 4.2).
    MissingTableSizeUpdate,
    /// The fields are many times larger than the limit, so that decoding them is too much work.
    ListFarTooLong,
    /// An entry is larger than the table, or its insertion into the table of QPACK is not possible
    /// (RFC 9204 3.2.2).
    EntryTooLarge,
    /// The Required Insert Count is invalid, or not that of the references (RFC 9204 4.5.1.1).
    InvalidRequiredInsertCount,
    /// The Base is negative (RFC 9204 4.5.1.2).
    InvalidBase,
    /// More streams are blocked than was announced (RFC 9204 2.1.2).
    TooManyBlockedStreams,
    /// An acknowledgment of what was not sent (RFC 9204 4.4.1 and 4.4.3).
    InvalidAcknowledgment,
}

impl DecodeError {
    fn description(self) -> &'static str {
        match self {
            Self::Truncated => "field line is incomplete",
            Self::IntegerOverflow => "integer is too large",
            Self::InvalidHuffmanCode => "string is not valid Huffman code",
            Self::InvalidIndex => "index refers to no entry of its table",
            Self::TableTooLarge => "dynamic table is larger than announced",
            Self::LateTableSizeUpdate => "table size update after a field line",
            Self::MissingTableSizeUpdate => "required table size update is missing",
            Self::ListFarTooLong => "fields are many times larger than the limit",
            Self::EntryTooLarge => "entry is larger than the dynamic table",
            Self::InvalidRequiredInsertCount => "required insert count is invalid",
            Self::InvalidBase => "base is negative",
            Self::TooManyBlockedStreams => "more streams are blocked than announced",
            Self::InvalidAcknowledgment => "acknowledgment of what was not sent",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

impl std::error::Error for DecodeError {}
