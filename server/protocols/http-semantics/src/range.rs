//! Byte ranges (RFC 9110 14). Pure. Every selected range lies inside of the representation, and no
//! two overlap or nearly touch.

/// A field with more specs is ignored as abuse (RFC 9110 17.15).
const SPECS_MAX: usize = 32;

/// Ranges closer than about one part header are cheaper sent together (RFC 9110 15.3.7.2).
const GAP_BYTES: u64 = 128;

/// Bytes `start..end` of a representation; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

impl ByteRange {
    /// Length in bytes, at least 1.
    pub fn length(self) -> u64 {
        self.end - self.start
    }

    /// The value of Content-Range in a representation of `size` bytes (RFC 9110 14.4).
    pub fn content_range(self, size: u64) -> String {
        format!("bytes {}-{}/{size}", self.start, self.end - 1)
    }

    fn nearly_touches(self, other: Self) -> bool {
        self.start <= other.end.saturating_add(GAP_BYTES)
            && other.start <= self.end.saturating_add(GAP_BYTES)
    }
}

/// What a Range field selects.
#[derive(Debug, PartialEq, Eq)]
pub enum RangeSelection {
    /// Everything: the field is ignored as another unit, malformed or abusive.
    Whole,
    /// One range or several, in the order of the request.
    Ranges(Vec<ByteRange>),
    /// No range overlaps the representation: 416.
    Unsatisfiable,
}

/// Selects the ranges of a representation of `size` bytes.
///
/// ```
/// use outboard_http_semantics::{ByteRange, RangeSelection, select_ranges};
///
/// let last_ten = ByteRange { start: 90, end: 100 };
/// assert_eq!(select_ranges(b"bytes=-10", 100), RangeSelection::Ranges(vec![last_ten]));
/// assert_eq!(select_ranges(b"bytes=100-", 100), RangeSelection::Unsatisfiable);
/// ```
pub fn select_ranges(field: &[u8], size: u64) -> RangeSelection {
    let Some(specs) = byte_specs(field) else { return RangeSelection::Whole };
    let mut ranges = Vec::new();
    let mut count = 0;
    for spec in specs.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        // Empty list elements are allowed (RFC 9110 5.6.1.2), in reasonable number.
        count += 1;
        if count > SPECS_MAX {
            return RangeSelection::Whole;
        }
        if spec.is_empty() {
            continue;
        }
        match Spec::parse(spec) {
            None => return RangeSelection::Whole,
            // A suffix of empty content is satisfiable, and no Content-Range can express it.
            Some(Spec::Suffix(length)) if size == 0 && length > 0 => return RangeSelection::Whole,
            Some(spec) => ranges.extend(spec.within(size)),
        }
    }
    match coalesced(ranges) {
        ranges if !ranges.is_empty() => RangeSelection::Ranges(ranges),
        // A list of nothing but commas is malformed rather than unsatisfiable.
        _ if specs.iter().all(|byte| matches!(byte, b',' | b' ' | b'\t')) => RangeSelection::Whole,
        _ => RangeSelection::Unsatisfiable,
    }
}

/// What follows `bytes=`.
fn byte_specs(field: &[u8]) -> Option<&[u8]> {
    let equals = memchr::memchr(b'=', field)?;
    field[..equals].trim_ascii().eq_ignore_ascii_case(b"bytes").then(|| &field[equals + 1..])
}

/// One `range-spec` as written.
enum Spec {
    From(u64),
    Between(u64, u64),
    Suffix(u64),
}

impl Spec {
    fn parse(spec: &[u8]) -> Option<Self> {
        let dash = memchr::memchr(b'-', spec)?;
        match (&spec[..dash], &spec[dash + 1..]) {
            (b"", length) => Some(Self::Suffix(number(length)?)),
            (first, b"") => Some(Self::From(number(first)?)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::Between(first, last))
            }
        }
    }

    /// `None` when it does not overlap the representation.
    fn within(self, size: u64) -> Option<ByteRange> {
        let (start, end) = match self {
            Self::From(first) => (first, size),
            Self::Between(first, last) => (first, size.min(last.saturating_add(1))),
            Self::Suffix(length) => (size.saturating_sub(length), size),
        };
        (start < end).then_some(ByteRange { start, end })
    }
}

/// `1*DIGIT`; a number that does not fit is as good as infinite.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |value: u64, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
}

/// Joins ranges that overlap or nearly touch; a joined range takes the place of its earliest part.
fn coalesced(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut joined: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        let mut place = joined.len();
        // A grown range may touch one that was passed already, so each search starts over.
        while let Some(index) = joined.iter().position(|other| other.nearly_touches(range)) {
            let other = joined.remove(index);
            range =
                ByteRange { start: range.start.min(other.start), end: range.end.max(other.end) };
            place = place.min(index);
        }
        joined.insert(place.min(joined.len()), range);
    }
    joined
}

#[cfg(test)]
mod tests;
