//! The texts of a configuration, and the conversion of a byte offset to a file, a line and a column.
//!
//! Filled by [`crate::includes`]; every diagnostic takes its position and its line of text from here.
//! Invariant: the files share one range of offsets, one after the other, so that a span identifies a
//! place in any of them.

use crate::diagnostic::Position;
use crate::places::Span;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// All files of a configuration; the first is the one that includes the others.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    files: Vec<SourceFile<'t>>,
}

/// One file.
#[derive(Debug)]
pub(crate) struct SourceFile<'t> {
    /// How messages name it; `None`: the configuration itself.
    pub(crate) path: Option<PathBuf>,
    pub(crate) text: Cow<'t, str>,
    /// The offset of its first byte.
    pub(crate) start: usize,
    /// Where each line starts, from the start of the file; the first starts at 0.
    line_starts: Vec<usize>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Source { files: vec![SourceFile::new(None, Cow::Borrowed(text), 0)] }
    }

    /// Adds an included file, and returns the offset of its first byte.
    pub(crate) fn add(&mut self, path: &Path, text: String) -> usize {
        // The end of a file is a place of its own.
        let start = self.files.last().map_or(0, |last| last.start + last.text.len() + 1);
        self.files.push(SourceFile::new(Some(path.to_owned()), Cow::Owned(text), start));
        start
    }

    pub(crate) fn files(&self) -> &[SourceFile<'t>] {
        &self.files
    }

    /// Where `span` starts, with the line of text it starts on. A span that runs past the end of
    /// its line is cut there: the underline never spans lines.
    pub(crate) fn position(&self, span: Span) -> Position {
        let at = self.files.partition_point(|file| file.start <= span.start).saturating_sub(1);
        self.files[at].position(span)
    }
}

impl<'t> SourceFile<'t> {
    fn new(path: Option<PathBuf>, text: Cow<'t, str>, start: usize) -> Self {
        let after_newlines = text.match_indices('\n').map(|(newline, _)| newline + 1);
        let line_starts = std::iter::once(0).chain(after_newlines).collect();
        SourceFile { path, text, start, line_starts }
    }

    /// The line that holds the byte, counted from 0.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset - self.start) - 1
    }

    fn position(&self, span: Span) -> Position {
        let start = self.text.floor_char_boundary(span.start - self.start);
        let line = self.line(self.start + start);
        let line_start = self.line_starts[line];
        let line_end = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        let line_text = self.text[line_start..line_end].trim_end_matches(['\n', '\r']);
        let end = self
            .text
            .floor_char_boundary(span.end - self.start)
            .min(line_start + line_text.len())
            .max(start);
        Position {
            file: self.path.clone(),
            line: line + 1,
            column: self.text[line_start..start].chars().count() + 1,
            length: self.text[start..end].chars().count().max(1),
            text: line_text.to_owned(),
        }
    }
}
