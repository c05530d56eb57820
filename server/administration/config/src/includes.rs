//! The files of a configuration: the main one, and those that `include` names.
//!
//! Called before [`crate::structure`]. Invariants: each file is read once, files are in the order in
//! which they are named, and of one pattern in alphabetical order; depth, number and size are bounded.

mod pattern;

use crate::diagnostic::{Diagnostic, Kind};
use crate::disk::{Found, reason};
use crate::expansion::{Expansion, Unexpanded};
use crate::places::Span;
use crate::scalar::Fault;
use crate::source::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Of all files, in addition to the main one.
const FILES_MAX: usize = 1000;
const TOTAL_MAX_BYTES: usize = 16 << 20;
const DEPTH_MAX: usize = 8;

/// The texts of a configuration, and what is wrong with its includes.
pub(crate) struct Gathered<'t> {
    pub(crate) source: Source<'t>,
    /// The included files, absolute.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads the files that `text` and its included files include. `shown` is the main file as messages
/// name it, `file` its absolute path.
pub(crate) fn gather<'t>(
    text: &'t str,
    shown: &Path,
    file: &Path,
    expansion: Expansion<'_>,
) -> Gathered<'t> {
    let mut gathered =
        Gathered { source: Source::new(text), files: Vec::new(), diagnostics: Vec::new() };
    let own = expansion.disk.canonical(file).unwrap_or_else(|_| file.to_owned());
    let mut gatherer = Gatherer {
        expansion,
        total_bytes: text.len(),
        places: BTreeMap::from([(own, None)]),
        gathered: &mut gathered,
    };
    let directory = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
    gatherer.follow(text, 0, &Including { shown: directory(shown), directory: directory(file) }, 1);
    gathered
}

/// The directory of the including file.
struct Including {
    /// As messages name it.
    shown: PathBuf,
    directory: PathBuf,
}

struct Gatherer<'a, 't> {
    expansion: Expansion<'a>,
    total_bytes: usize,
    /// Where each file is included; the main file is not.
    places: BTreeMap<PathBuf, Option<Span>>,
    gathered: &'a mut Gathered<'t>,
}

impl Gatherer<'_, '_> {
    fn follow(&mut self, text: &str, start: usize, including: &Including, depth: usize) {
        // Syntax errors are reported later, and so is an `include` of another type in the main file.
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            return;
        }
        let Some(include) = table.get_ref().get("include") else { return };
        let span =
            |value: &Spanned<DeValue<'_>>| value.span().start + start..value.span().end + start;
        let patterns: Vec<&Spanned<DeValue<'_>>> = match include.get_ref() {
            DeValue::Array(many) => many.iter().collect(),
            _ => vec![include],
        };
        for pattern in patterns {
            let place = span(pattern);
            match pattern.get_ref() {
                DeValue::String(_) if depth > DEPTH_MAX => {
                    let fault = format!("includes are nested more than {DEPTH_MAX} deep");
                    return self.report(Kind::BadValue, &place, Fault::new(fault));
                }
                DeValue::String(pattern) => self.include(pattern, &place, including, depth),
                _ if start == 0 => {}
                _ => {
                    let fault = Fault::new("`include`: expected a string or an array of strings");
                    self.report(Kind::WrongType, &place, fault);
                }
            }
        }
    }

    fn include(&mut self, written: &str, place: &Span, including: &Including, depth: usize) {
        let pattern = match self.expansion.expand(written) {
            Ok(expanded) => expanded.text,
            // The main file is walked later, and then the same error is found.
            Err(_) if depth == 1 => return,
            Err(Unexpanded { kind, fault }) => return self.report(kind, place, fault),
        };
        let found = match pattern::expand(&pattern, &including.directory, self.expansion.disk) {
            Ok(found) => found,
            Err(fault) => return self.report(Kind::Path, place, fault),
        };
        for path in found {
            if self.gathered.files.len() >= FILES_MAX {
                let fault = Fault::new(format!("more than {FILES_MAX} files are included"));
                return self.report(Kind::BadValue, place, fault);
            }
            let shown = path
                .strip_prefix(&including.directory)
                .map_or_else(|_| path.clone(), |below| including.shown.join(below));
            self.add(&path, &shown, place, depth);
        }
    }

    fn add(&mut self, path: &Path, shown: &Path, place: &Span, depth: usize) {
        let disk = self.expansion.disk;
        let own = disk.canonical(path).unwrap_or_else(|_| path.to_owned());
        match self.places.get(&own) {
            Some(None) => {
                let fault = Fault::new(format!("`{}` includes itself", shown.display()))
                    .hint("put the included files into a directory of their own");
                return self.report(Kind::Duplicate, place, fault);
            }
            Some(Some(first)) => {
                let at = self.gathered.source.position(first.clone());
                let of = at.file.map_or(String::new(), |file| format!(" of {}", file.display()));
                let fault =
                    format!("`{}` is also included in line {}{of}", shown.display(), at.line);
                return self.report(Kind::Duplicate, place, Fault::new(fault));
            }
            None => self.places.insert(own, Some(place.clone())),
        };
        match self.read(path, shown) {
            Ok(text) => {
                let start = self.gathered.source.add(shown, text.clone());
                self.gathered.files.push(path.to_owned());
                let directory = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
                let including = Including { shown: directory(shown), directory: directory(path) };
                self.follow(&text, start, &including, depth + 1);
            }
            Err(fault) => self.report(Kind::Path, place, fault),
        }
    }

    fn read(&mut self, path: &Path, shown: &Path) -> Result<String, Fault> {
        let disk = self.expansion.disk;
        let shown = shown.display();
        if let Ok(Found::Directory) = disk.look(path) {
            return Err(Fault::new(format!("`{shown}` is a directory"))
                .hint(format!("write \"{shown}/*.toml\"")));
        }
        let bytes = disk
            .read(path, crate::FILE_MAX_BYTES)
            .map_err(|error| Fault::new(format!("`{shown}` cannot be read: {}", reason(&error))))?;
        self.total_bytes += bytes.len();
        if bytes.len() as u64 > crate::FILE_MAX_BYTES {
            return Err(Fault::new(format!("`{shown}` is larger than 1 MiB")));
        }
        if self.total_bytes > TOTAL_MAX_BYTES {
            return Err(Fault::new("the files of the configuration are larger than 16 MiB"));
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            Fault::new(format!("`{shown}` has invalid UTF-8 in line {line}"))
                .hint("save it as UTF-8")
        })
    }

    fn report(&mut self, kind: Kind, place: &Span, fault: Fault) {
        let position = Some(self.gathered.source.position(place.clone()));
        let key = Some("include".to_owned());
        let Fault { message, hint } = fault;
        self.gathered.diagnostics.push(Diagnostic { kind, position, key, message, hint });
    }
}
