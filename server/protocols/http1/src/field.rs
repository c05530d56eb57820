//! One field line (RFC 9112 5), and the table of the fields of a head.
//!
//! Called by `request` and `response` line by line, and by `chunked_decoder` for trailers.
//! Invariant: a line that is accepted has exactly one reading: token, colon, value, CRLF.

use crate::error::HeadError;
use crate::head::{Span, Step};
use crate::scan;

/// A line of the field section.
pub(crate) enum FieldLine {
    /// A field.
    Field {
        name: Span,
        /// Trimmed.
        value: Span,
        /// The start of the next line.
        next: usize,
    },
    /// The empty line that ends the section; what follows starts at `next`.
    End { next: usize },
}

/// Reads the field line that starts at `start`.
pub(crate) fn read_field_line(buf: &[u8], start: usize) -> Result<Step<FieldLine>, HeadError> {
    let Some(name_len) = scan::token_end(&buf[start..]) else {
        return Ok(Step::NeedMore);
    };
    let colon = start + name_len;
    if buf[colon] != b':' || name_len == 0 {
        return read_line_without_name(buf, start, colon);
    }
    let value_start = colon + 1;
    let Some(value_len) = scan::find_control(&buf[value_start..]) else {
        return Ok(Step::NeedMore);
    };
    let line_end = value_start + value_len;
    let Step::Line(next) = read_line_end(buf, line_end)? else {
        return Ok(Step::NeedMore);
    };
    let value = trimmed(buf, value_start, line_end);
    Ok(Step::Line(FieldLine::Field { name: Span::new(start, colon), value, next }))
}

/// The span from `start` to `end`, trimmed.
fn trimmed(buf: &[u8], mut start: usize, mut end: usize) -> Span {
    while start < end && scan::is_ows(buf[start]) {
        start += 1;
    }
    while start < end && scan::is_ows(buf[end - 1]) {
        end -= 1;
    }
    Span::new(start, end)
}

/// Reads a line without `name:`; `stop` is its first byte that is no part of a name.
#[cold]
fn read_line_without_name(
    buf: &[u8],
    start: usize,
    stop: usize,
) -> Result<Step<FieldLine>, HeadError> {
    match buf[stop] {
        b'\r' | b'\n' => match read_line_end(buf, stop)? {
            Step::NeedMore => Ok(Step::NeedMore),
            Step::Line(next) if stop == start => Ok(Step::Line(FieldLine::End { next })),
            Step::Line(_) => Err(HeadError::MissingColon),
        },
        b':' => Err(HeadError::EmptyHeaderName),
        b' ' | b'\t' if stop == start => Err(HeadError::ObsFold),
        b' ' | b'\t' => Err(HeadError::SpaceBeforeColon),
        _ => Err(HeadError::InvalidHeaderName),
    }
}

/// Reads the CRLF at `at`, where a control byte is, and returns the start of the next line.
pub(crate) fn read_line_end(buf: &[u8], at: usize) -> Result<Step<usize>, HeadError> {
    match (buf[at], buf.get(at + 1)) {
        (b'\r', Some(b'\n')) => Ok(Step::Line(at + 2)),
        (b'\r', None) => Ok(Step::NeedMore),
        (b'\r', Some(_)) => Err(HeadError::BareCr),
        (b'\n', _) => Err(HeadError::BareLf),
        _ => Err(HeadError::ControlInHeaderValue),
    }
}

/// The fields of a head as spans of the buffer that the head was parsed from.
#[derive(Debug, Default)]
pub(crate) struct FieldTable {
    spans: Vec<(Span, Span)>,
}

impl FieldTable {
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
    }

    pub(crate) fn push(
        &mut self,
        name: Span,
        value: Span,
        count_max: usize,
    ) -> Result<(), HeadError> {
        if self.spans.len() >= count_max {
            return Err(HeadError::TooManyHeaders);
        }
        self.spans.push((name, value));
        Ok(())
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(Span) -> bool) {
        self.spans.retain(|(name, _)| is_kept(*name));
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn iter<'b>(&self, buf: &'b [u8]) -> impl Iterator<Item = (&'b [u8], &'b [u8])> {
        self.spans.iter().map(|(name, value)| (name.of(buf), value.of(buf)))
    }

    /// The value of the first field called `wanted`, whatever its case.
    pub(crate) fn find<'b>(&self, buf: &'b [u8], wanted: &[u8]) -> Option<&'b [u8]> {
        let found = self.iter(buf).find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value)
    }
}
