//! Configuration errors: one [`Diagnostic`] per error, all of them together as [`Diagnostics`].
//!
//! The command line prints them (plain, coloured or as JSON) and exits with status 2. Text from the
//! file is made printable first, so a file cannot send escape sequences to a terminal.

mod render;
#[cfg(test)]
mod tests;

use crate::secret;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use std::fmt;
use std::path::{Path, PathBuf};

/// All errors of one configuration, in the order of the file. Never empty.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    path: PathBuf,
    list: Vec<Diagnostic>,
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind; stable, for programs.
    pub kind: Kind,
    /// Its position; `None` if it concerns the file as a whole.
    pub position: Option<Position>,
    /// The key, such as `app.shop.root`, if the error is that of a key.
    pub key: Option<String>,
    /// The error in one sentence.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// A position in the file, with the text of its line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The included file; `None`: the configuration itself.
    pub file: Option<PathBuf>,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// Number of characters to underline, at least 1.
    pub length: usize,
    /// The whole line, without its line ending.
    pub text: String,
}

/// Kinds of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// The file cannot be opened or read, or is not UTF-8.
    Unreadable,
    /// Not TOML.
    Syntax,
    /// A key that does not exist.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A value of another type.
    WrongType,
    /// A value of the right type that is out of range or not one of the choices.
    OutOfRange,
    /// An invalid value: an address, a size, a pattern.
    BadValue,
    /// A file or directory that does not exist or cannot be used.
    Path,
    /// Two conflicting entries of the same kind: listeners, apps.
    Duplicate,
    /// Two settings that contradict each other.
    Conflict,
}

impl Diagnostics {
    /// Sorts `list` into file order. It has at least one error.
    pub(crate) fn new(path: &Path, mut list: Vec<Diagnostic>) -> Self {
        let place = |p: &Position| (p.file.clone(), p.line, p.column);
        list.sort_by_cached_key(|d| d.position.as_ref().map(place));
        // The same value is checked for each app that inherits it.
        list.dedup_by(|one, other| {
            (&one.position, &one.message, &one.hint)
                == (&other.position, &other.message, &other.hint)
        });
        Diagnostics { path: path.to_owned(), list }
    }

    /// The same errors without the secrets in their texts.
    pub(crate) fn redacted(mut self, secrets: &[String]) -> Self {
        for diagnostic in &mut self.list {
            diagnostic.message = secret::redact(&diagnostic.message, secrets);
            diagnostic.hint = diagnostic.hint.as_ref().map(|hint| secret::redact(hint, secrets));
        }
        self
    }

    /// The file of an error.
    pub fn file_of<'d>(&'d self, diagnostic: &'d Diagnostic) -> &'d Path {
        let included = diagnostic.position.as_ref().and_then(|position| position.file.as_deref());
        included.unwrap_or(&self.path)
    }

    /// An error that appears only when a file is used, such as a key that does not match its
    /// certificate.
    pub fn unusable(path: &Path, message: String) -> Self {
        let error = Diagnostic { kind: Kind::Path, position: None, key: None, message, hint: None };
        Self::new(path, vec![error])
    }

    /// The same errors for a configuration that is not a file.
    pub(crate) fn without_positions(mut self, path: &Path) -> Self {
        self.path = path.to_owned();
        for diagnostic in &mut self.list {
            diagnostic.position = None;
        }
        self
    }

    /// The errors, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// How many errors there are.
    #[allow(clippy::len_without_is_empty, reason = "there is always at least one")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The configuration's path, as messages name it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The errors as lines of a log: `file:line:column: message; hint`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.list.iter().map(|one| render::line(&self.file_of(one).to_string_lossy(), one))
    }

    /// Text for people: per error a line `file:line:column: message`, the line of the file with
    /// the place underlined, and the hint. `color` adds ANSI colours.
    pub fn render(&self, color: bool) -> String {
        render::all(self, color)
    }
}

impl<'d> IntoIterator for &'d Diagnostics {
    type Item = &'d Diagnostic;
    type IntoIter = std::slice::Iter<'d, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Diagnostics", 3)?;
        out.serialize_field("file", &self.path.to_string_lossy())?;
        out.serialize_field("valid", &false)?;
        let list: Vec<InFile<'_>> = self
            .list
            .iter()
            .map(|one| InFile { file: self.file_of(one), diagnostic: one })
            .collect();
        out.serialize_field("diagnostics", &list)?;
        out.end()
    }
}

/// A diagnostic with its file.
struct InFile<'d> {
    file: &'d Path,
    diagnostic: &'d Diagnostic,
}

impl Serialize for InFile<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (one, at) = (self.diagnostic, self.diagnostic.position.as_ref());
        let mut out = serializer.serialize_struct("Diagnostic", 10)?;
        out.serialize_field("severity", "error")?;
        out.serialize_field("kind", &one.kind)?;
        out.serialize_field("file", &self.file.to_string_lossy())?;
        out.serialize_field("line", &at.map(|at| at.line))?;
        out.serialize_field("column", &at.map(|at| at.column))?;
        out.serialize_field("length", &at.map(|at| at.length))?;
        out.serialize_field("text", &at.map(|at| &at.text))?;
        out.serialize_field("key", &one.key)?;
        out.serialize_field("message", &one.message)?;
        out.serialize_field("hint", &one.hint)?;
        out.end()
    }
}
