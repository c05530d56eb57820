//! Byte ranges: RFC 9110 section 14. Pure; called by [`crate::plan`]. Every range that leaves here
//! lies inside of the representation, and no two overlap or nearly touch.

/// More specs than this make the field a nuisance, and it is ignored (RFC 9110 section 17.15).
const SPECS_MAX: usize = 32;

/// Ranges closer than about one part header are cheaper sent together (section 15.3.7.2).
const GAP_BYTES: u64 = 128;

/// `start..end` in bytes, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl ByteRange {
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }

    fn nearly_touches(self, other: Self) -> bool {
        self.start <= other.end.saturating_add(GAP_BYTES)
            && other.start <= self.end.saturating_add(GAP_BYTES)
    }
}

/// What a Range field asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The field is to be ignored: another unit, malformed, or abusive.
    Whole,
    /// One range or several, in the order of the request.
    Ranges(Vec<ByteRange>),
    /// No range overlaps the representation: 416.
    Unsatisfiable,
}

/// Reads a Range field against a representation of `size` bytes.
pub(crate) fn select(field: &[u8], size: u64) -> Selection {
    let Some(specs) = byte_specs(field) else { return Selection::Whole };
    let mut ranges = Vec::new();
    let mut count = 0;
    for spec in specs.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        // Empty list elements are allowed (section 5.6.1.2), in reasonable number.
        count += 1;
        if count > SPECS_MAX {
            return Selection::Whole;
        }
        if spec.is_empty() {
            continue;
        }
        match Spec::parse(spec) {
            None => return Selection::Whole,
            // The suffix of nothing is satisfiable and empty, and no Content-Range can say so.
            Some(Spec::Suffix(length)) if size == 0 && length > 0 => return Selection::Whole,
            Some(spec) => ranges.extend(spec.within(size)),
        }
    }
    match coalesced(ranges) {
        ranges if !ranges.is_empty() => Selection::Ranges(ranges),
        // Nothing but commas is malformed rather than unsatisfiable.
        _ if specs.iter().all(|byte| matches!(byte, b',' | b' ' | b'\t')) => Selection::Whole,
        _ => Selection::Unsatisfiable,
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

/// `1*DIGIT`; what does not fit is as good as infinite.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |value: u64, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
}

/// Joins ranges that overlap or nearly touch; a joined range takes the place of the earliest.
fn coalesced(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut kept: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        let mut place = kept.len();
        // Growing may bring the range in touch with one that was passed, so start again each time.
        while let Some(index) = kept.iter().position(|other| other.nearly_touches(range)) {
            let other = kept.remove(index);
            range =
                ByteRange { start: range.start.min(other.start), end: range.end.max(other.end) };
            place = place.min(index);
        }
        kept.insert(place.min(kept.len()), range);
    }
    kept
}

#[cfg(test)]
mod tests;
