//! Translates configurations of nginx and Apache httpd into `outboard.toml`.
//!
//! `outboard import` calls [`import`]. Each format has a parser, which produces a tree of
//! [`Directive`]s, and a translator, which fills a [`Draft`]. Invariant: every directive is carried over,
//! has no effect on what Outboard does, or is listed as an [`Omission`] with the reason.

#![forbid(unsafe_code)]

mod access;
mod directive;
mod draft;
mod httpd;
mod includes;
mod nginx;
mod pattern;

pub use directive::Directive;
pub use draft::{Draft, Omission};

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The server whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// Apache httpd.
    Httpd,
}

/// Reads a file as text.
pub type Read<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// A translated configuration.
#[derive(Debug)]
pub struct Imported {
    /// The server whose configuration it was.
    pub kind: Kind,
    /// The text of `outboard.toml`.
    pub toml: String,
    /// What was not carried over, in the order of the files.
    pub omissions: Vec<Omission>,
}

/// Why a file is not understood.
#[derive(Debug)]
pub enum ImportError {
    /// The file cannot be read.
    Read(PathBuf, io::Error),
    /// The file is not in the format of the server.
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// There is no site in it.
    NoSite(PathBuf),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(file, error) => write!(f, "{} cannot be read: {error}", file.display()),
            Self::Syntax { file, line, message } => {
                write!(f, "{}:{line}: {message}", file.display())
            }
            Self::NoSite(file) => {
                write!(f, "{} has no site with a document root", file.display())
            }
        }
    }
}

impl std::error::Error for ImportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Translates a file. Without a kind it is recognised by its content.
///
/// # Errors
/// The file cannot be read or is not understood.
pub fn import(file: &Path, kind: Option<Kind>, read: Read<'_>) -> Result<Imported, ImportError> {
    let text = read(file).map_err(|error| ImportError::Read(file.to_owned(), error))?;
    let kind = kind.unwrap_or_else(|| recognise(&text));
    let mut draft = Draft::default();
    match kind {
        Kind::Nginx => nginx::translate(&nginx::parse(file, &text, read)?, &mut draft),
        Kind::Httpd => httpd::translate(&httpd::parse(file, &text, read)?, &mut draft),
    }
    if draft.apps.is_empty() {
        return Err(ImportError::NoSite(file.to_owned()));
    }
    let (toml, omissions) = draft.finish();
    Ok(Imported { kind, toml, omissions })
}

/// A section of Apache is written as a tag at the start of a line.
fn recognise(text: &str) -> Kind {
    let is_tag = |line: &str| line.trim_start().starts_with('<') && line.trim_end().ends_with('>');
    let statement = |line: &str| line.trim_end().ends_with([';', '{', '}']);
    match (text.lines().any(is_tag), text.lines().any(statement)) {
        (true, _) | (false, false) => Kind::Httpd,
        (false, true) => Kind::Nginx,
    }
}
