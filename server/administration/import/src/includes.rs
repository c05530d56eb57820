//! [`Includes`]: statements of other files, in the place of the statement that includes them.
//!
//! Invariants: a file that cannot be read, or a pattern, remains a statement, which the translators list; the
//! depth and the number of files are bounded.

use crate::directive::Directive;
use crate::read::{ImportError, Read};
use std::path::Path;

const DEPTH_MAX: usize = 32;
const FILES_MAX: usize = 200;

/// See the module.
pub(crate) struct Includes<'a> {
    read: Read<'a>,
    /// What relative paths are relative to.
    base: &'a Path,
    /// Names of the statements.
    names: &'a [&'a str],
    parse: fn(&Path, &str) -> Result<Vec<Directive>, ImportError>,
    count: usize,
}

impl<'a> Includes<'a> {
    pub(crate) fn new(
        read: Read<'a>,
        base: &'a Path,
        names: &'a [&'a str],
        parse: fn(&Path, &str) -> Result<Vec<Directive>, ImportError>,
    ) -> Self {
        Self { read, base, names, parse, count: 0 }
    }

    /// The statements, with those of included files.
    pub(crate) fn resolve(&mut self, statements: Vec<Directive>) -> Vec<Directive> {
        self.resolve_at(statements, 0)
    }

    fn resolve_at(&mut self, statements: Vec<Directive>, depth: usize) -> Vec<Directive> {
        let mut all = Vec::new();
        for mut one in statements {
            one.children = self.resolve_at(std::mem::take(&mut one.children), depth);
            match self.included(&one, depth) {
                Some(included) => all.extend(included),
                None => all.push(one),
            }
        }
        all
    }

    fn included(&mut self, one: &Directive, depth: usize) -> Option<Vec<Directive>> {
        let is_include = self.names.contains(&one.name.as_str());
        if !is_include || depth >= DEPTH_MAX || self.count >= FILES_MAX {
            return None;
        }
        self.count += 1;
        let path = self.base.join(one.argument(0));
        let text = (self.read)(&path).ok()?;
        let statements = (self.parse)(&path, &text).ok()?;
        Some(self.resolve_at(statements, depth + 1))
    }
}
