//! Which fields are worth an entry in a dynamic table, and which must not have one (RFC 7541 7.1).
//!
//! Called by the encoders. Invariant: credentials are never indexed by any intermediary.

use crate::static_names::{StaticField, is_equal};

/// How a field is represented that is not in a table yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// An entry at once: the value is the same for many messages.
    Immediate,
    /// An entry when the field occurs again.
    Repeated,
    /// No entry: the value is different for most messages.
    None,
    /// No entry in the table of any intermediary (RFC 7541 6.2.3).
    Never,
    /// `Never` for a value that is short enough to be guessed, otherwise `Repeated` (RFC 7541 7.1.3).
    NeverIfShort,
}

impl Indexing {
    /// That of a field with this value: never [`Self::NeverIfShort`].
    #[inline]
    pub(crate) fn of_value(self, value: &[u8]) -> Self {
        match self {
            Self::NeverIfShort if value.len() < GUESSABLE_BYTES => Self::Never,
            Self::NeverIfShort => Self::Repeated,
            indexing => indexing,
        }
    }
}

const IMMEDIATE: [&[u8]; 17] = [
    b":authority",
    b":status",
    b"accept",
    b"accept-encoding",
    b"accept-language",
    b"accept-ranges",
    b"access-control-allow-origin",
    b"allow",
    b"cache-control",
    b"content-encoding",
    b"content-language",
    b"content-type",
    b"server",
    b"strict-transport-security",
    b"user-agent",
    b"vary",
    b"via",
];

const NONE: [&[u8]; 14] = [
    b"age",
    b"content-length",
    b"content-range",
    b"date",
    b"etag",
    b"if-match",
    b"if-modified-since",
    b"if-none-match",
    b"if-range",
    b"if-unmodified-since",
    b"last-modified",
    b"location",
    b"range",
    b"retry-after",
];

const NEVER: [&[u8]; 3] = [b"authorization", b"proxy-authorization", b"set-cookie"];

/// A shorter cookie could be guessed.
const GUESSABLE_BYTES: usize = 20;

/// The indexing of the fields of a static table, by their names.
pub(crate) const fn indexing_of_all<const N: usize>(table: &[StaticField; N]) -> [Indexing; N] {
    let mut indexing = [Indexing::None; N];
    let mut at = 0;
    while at < N {
        indexing[at] = indexing_of(table[at].0);
        at += 1;
    }
    indexing
}

/// The indexing of the fields with a name in lower case.
const fn indexing_of(name: &[u8]) -> Indexing {
    if contains(&IMMEDIATE, name) {
        Indexing::Immediate
    } else if contains(&NONE, name) {
        Indexing::None
    } else if contains(&NEVER, name) {
        Indexing::Never
    } else if is_equal(name, b"cookie") {
        Indexing::NeverIfShort
    } else {
        Indexing::Repeated
    }
}

const fn contains(names: &[&[u8]], name: &[u8]) -> bool {
    let mut at = 0;
    while at < names.len() {
        if is_equal(names[at], name) {
            return true;
        }
        at += 1;
    }
    false
}
