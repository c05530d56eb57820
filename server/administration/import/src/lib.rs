//! Translates configurations of nginx and Apache httpd into `outboard.toml`.
//!
//! `outboard import` calls [`import`]. Each format has a parser, which produces a tree of
//! [`Directive`]s, and a translator, which fills a [`Draft`]. Invariant: every directive is carried over,
//! has no effect on what Outboard does, or is listed as an [`Omission`] with the reason.

#![forbid(unsafe_code)]

mod access;
mod condition;
mod directive;
mod draft;
mod globs;
mod httpd;
mod includes;
mod log_format;
mod nginx;
mod pattern;
mod read;

pub use directive::Directive;
pub use draft::{Draft, Omission};
pub use read::{ImportError, Read};

use std::path::Path;

/// The server whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// Apache httpd.
    Httpd,
}

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
