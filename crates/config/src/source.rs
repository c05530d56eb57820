//! The text of one configuration file and the way from a byte offset to a line and a column.
//!
//! Built once per parse; every diagnostic takes its position and its line of text from here.

use crate::diagnostic::Position;
use std::ops::Range;

/// The file as it was read.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    /// Its whole text; empty when the configuration does not come from a file.
    pub(crate) text: &'t str,
}

impl Source<'_> {
    /// Where `span` starts, with the line of text it starts on. A span that runs past the end of
    /// its line is cut there: the underline never spans lines.
    pub(crate) fn position(&self, span: Range<usize>) -> Position {
        let start = self.boundary(span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |len| start + len);
        let line_text = self.text[line_start..line_end].trim_end_matches('\r');
        let end = self
            .boundary(span.end)
            .clamp(start, line_start + line_text.len().max(start - line_start));
        Position {
            line: self.text[..start].matches('\n').count() + 1,
            column: self.text[line_start..start].chars().count() + 1,
            length: self.text[start..end].chars().count().max(1),
            text: line_text.to_owned(),
        }
    }

    /// The nearest character boundary at or before `offset`.
    fn boundary(&self, offset: usize) -> usize {
        let mut at = offset.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}
