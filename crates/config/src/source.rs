//! The text of one configuration file, and the conversion of a byte offset to a line and a column.
//!
//! Built once per parse; every diagnostic takes its position and its line of text from here.

use crate::diagnostic::Position;
use crate::places::Span;

/// The text of the file.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    pub(crate) text: &'t str,
    /// Where each line starts; the first starts at 0.
    line_starts: Vec<usize>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
        Source { text, line_starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// The line that holds the byte, counted from 0.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset) - 1
    }

    /// Where `span` starts, with the line of text it starts on. A span that runs past the end of
    /// its line is cut there: the underline never spans lines.
    pub(crate) fn position(&self, span: Span) -> Position {
        let start = self.text.floor_char_boundary(span.start);
        let line = self.line(start);
        let line_start = self.line_starts[line];
        let line_end = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        let line_text = self.text[line_start..line_end].trim_end_matches(['\n', '\r']);
        let end =
            self.text.floor_char_boundary(span.end).min(line_start + line_text.len()).max(start);
        Position {
            line: line + 1,
            column: self.text[line_start..start].chars().count() + 1,
            length: self.text[start..end].chars().count().max(1),
            text: line_text.to_owned(),
        }
    }
}
