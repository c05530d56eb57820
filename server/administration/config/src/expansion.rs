//! `${NAME}` and `${file:PATH}` in values: environment variables, and files with secrets.
//!
//! Used by [`crate::structure`] for each value that contains `${`, and by [`crate::includes`].
//! Invariant: what a file contains is in [`Expanded`] only; no error of this module repeats it.

use crate::diagnostic::Kind;
use crate::disk::{Disk, reason};
use crate::scalar::Fault;
use crate::secret;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// More than keys, passwords and tokens need.
const FILE_MAX_BYTES: u64 = 64 << 10;

/// Where the parts of a value come from.
#[derive(Clone, Copy)]
pub(crate) struct Expansion<'a> {
    pub(crate) disk: &'a dyn Disk,
    /// Base directory of relative paths.
    pub(crate) directory: &'a Path,
    /// An environment variable.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// A value after its expansion.
#[derive(Debug, Default)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    pub(crate) sources: Vec<ValueSource>,
    /// The parts that must not be printed.
    pub(crate) secrets: Vec<String>,
}

/// Where a part of a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueSource {
    /// An environment variable that was set.
    Variable(String),
    /// The content of a file.
    File(PathBuf),
}

impl ValueSource {
    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Variable(_) => None,
        }
    }
}

/// Why a value cannot be expanded.
#[derive(Debug)]
pub(crate) struct Unexpanded {
    pub(crate) kind: Kind,
    pub(crate) fault: Fault,
}

impl From<Fault> for Unexpanded {
    fn from(fault: Fault) -> Self {
        Self { kind: Kind::BadValue, fault }
    }
}

impl Expansion<'_> {
    /// Replaces each `${…}`; `$${` becomes `${`.
    pub(crate) fn expand(self, written: &str) -> Result<Expanded, Unexpanded> {
        let mut out = Expanded::default();
        let mut rest = written;
        while let Some(at) = rest.find("${") {
            if let Some(before) = rest[..at].strip_suffix('$') {
                out.text.push_str(before);
                out.text.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            out.text.push_str(&rest[..at]);
            let Some((inner, after)) = rest[at + 2..].split_once('}') else {
                return Err(Fault::new("`${` has no closing brace")
                    .hint("write `$${` for the characters `${`")
                    .into());
            };
            self.insert(inner, &mut out)?;
            rest = after;
        }
        out.text.push_str(rest);
        Ok(out)
    }

    fn insert(self, inner: &str, out: &mut Expanded) -> Result<(), Unexpanded> {
        match inner.strip_prefix("file:") {
            Some(path) => self.insert_file(path, out),
            None => Ok(self.insert_variable(inner, out)?),
        }
    }

    fn insert_variable(self, inner: &str, out: &mut Expanded) -> Result<(), Fault> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_name(name) {
            return Err(Fault::new(format!("`${{{inner}}}` is not an environment variable"))
                .hint("write `${NAME}`, `${NAME:-default}` or `${file:/path}`, and `$${` for the characters `${`"));
        }
        let value = (self.variable)(name).filter(|value| default.is_none() || !value.is_empty());
        let Some(value) = value else {
            let Some(default) = default else {
                return Err(Fault::new(format!("the environment variable `{name}` is not set"))
                    .hint(format!("set it, or write a default: `${{{name}:-value}}`")));
            };
            out.text.push_str(default);
            return Ok(());
        };
        let Ok(value) = value.into_string() else {
            return Err(Fault::new(format!("the environment variable `{name}` is not UTF-8")));
        };
        out.text.push_str(&value);
        out.sources.push(ValueSource::Variable(name.to_owned()));
        if secret::is_named(name) {
            out.secrets.push(value);
        }
        Ok(())
    }

    fn insert_file(self, written: &str, out: &mut Expanded) -> Result<(), Unexpanded> {
        let path = self.directory.join(written);
        let shown = path.display();
        let bytes = self.disk.read(&path, FILE_MAX_BYTES).map_err(|error| Unexpanded {
            kind: Kind::Path,
            fault: Fault::new(format!("the file `{shown}` cannot be read: {}", reason(&error))),
        })?;
        if bytes.len() as u64 > FILE_MAX_BYTES {
            return Err(Fault::new(format!("the file `{shown}` is larger than 64 KiB")).into());
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(Fault::new(format!("the file `{shown}` is not UTF-8")).into());
        };
        let content = text
            .strip_suffix('\n')
            .map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
        out.text.push_str(content);
        out.sources.push(ValueSource::File(path.clone()));
        out.secrets.push(content.to_owned());
        Ok(())
    }
}

/// POSIX: the name of an environment variable.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests;
