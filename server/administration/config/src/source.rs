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

#[cfg(test)]
mod tests {
    use super::*;

    /// Line, column, length and text.
    fn of(source: &Source<'_>, span: Span) -> (usize, usize, usize, String) {
        let at = source.position(span);
        (at.line, at.column, at.length, at.text)
    }

    #[test]
    fn a_place_is_a_line_and_a_column_of_characters() {
        let source = Source::new("a = 1\r\nü = \"é\"\n\nlast");
        for (span, expected) in [
            (0..1, (1, 1, 1, "a = 1")),
            (4..5, (1, 5, 1, "a = 1")),
            // The end of a line is at its line.
            (5..7, (1, 6, 1, "a = 1")),
            (7..9, (2, 1, 1, "ü = \"é\"")),
            (12..16, (2, 5, 3, "ü = \"é\"")),
            // Within a character is at it.
            (8..9, (2, 1, 1, "ü = \"é\"")),
            (17..18, (3, 1, 1, "")),
            (18..22, (4, 1, 4, "last")),
            // An underline ends with its line.
            (18..99, (4, 1, 4, "last")),
            (22..22, (4, 5, 1, "last")),
        ] {
            let (line, column, length, text) = expected;
            assert_eq!(
                of(&source, span.clone()),
                (line, column, length, text.to_owned()),
                "{span:?}"
            );
        }
    }

    #[test]
    fn an_empty_file_has_one_place() {
        assert_eq!(of(&Source::new(""), 0..0), (1, 1, 1, String::new()));
    }

    #[test]
    fn a_span_is_in_exactly_one_of_the_files() {
        let mut source = Source::new("main = 1\n");
        let first = source.add(Path::new("a.toml"), "a = 1\nb = 2".to_owned());
        let empty = source.add(Path::new("empty.toml"), String::new());
        let last = source.add(Path::new("c.toml"), "c = 3\n".to_owned());
        assert_eq!((first, empty, last), (10, 22, 23));
        let file = |at: usize| source.position(at..at + 1).file;
        let named = |name: &str| Some(PathBuf::from(name));
        for (at, expected) in [
            (0, None),
            (9, None),
            (10, named("a.toml")),
            (21, named("a.toml")),
            (22, named("empty.toml")),
            (23, named("c.toml")),
            (28, named("c.toml")),
        ] {
            assert_eq!(file(at), expected, "{at}");
        }
        let at = source.position(first + 6..first + 7);
        assert_eq!((at.line, at.column, &*at.text), (2, 1, "b = 2"));
        assert_eq!(source.files()[1].line(first + 6), 1);
    }
}
