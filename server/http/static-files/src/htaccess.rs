//! [`Htaccess`]: the restrictions of one `.htaccess` file, as Apache httpd would apply them.
//!
//! Read by `restrictions` for the directories of a file that is about to be served, and by the search of
//! `outboard check`. Only what restricts access is understood; rewrites, types and headers are not.
//!
//! Invariant: a directive that may refuse a visitor denies, unless every visitor may read the same elsewhere
//! (a list of blocked clients): that is listed in [`Htaccess::not_applied`]. What is not understood within
//! a restriction makes it wider, and a grant narrower.

mod reader;
mod restrictions;

use regex::bytes::Regex;

pub use reader::without_look_around;
pub(crate) use restrictions::{Restriction, restriction};

/// More than a file that people write has; the rest of a larger one is not read, so that it denies.
pub const FILE_MAX_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug, Default)]
pub struct Htaccess {
    rules: Vec<Rule>,
    /// Lines that restrict clients, and that have no effect here: the number, counted from 1, and the text.
    pub not_applied: Vec<(usize, String)>,
}

/// A rule for the files below the file's directory.
#[derive(Debug)]
struct Rule {
    scope: Scope,
    effect: Effect,
}

/// The files that a rule is about.
#[derive(Clone, Debug)]
enum Scope {
    All,
    /// Those with such a name.
    Name(Regex),
    /// Those with such a path below the directory, or with another one.
    Path {
        regex: Regex,
        is_negated: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Deny,
    Grant,
    NoPhp,
}

impl Htaccess {
    /// Reads the text of a file. The root's own may not turn PHP off for the whole application, except by
    /// `engine off`.
    pub fn read(text: &[u8], is_in_root: bool) -> Self {
        let mut all = Self::default();
        if text.len() > FILE_MAX_BYTES {
            all.rules.push(Rule { scope: Scope::All, effect: Effect::Deny });
        } else {
            reader::read(&String::from_utf8_lossy(text), is_in_root, &mut all);
        }
        all
    }

    /// The file cannot be read.
    pub(crate) fn unreadable() -> Self {
        let rules = vec![Rule { scope: Scope::All, effect: Effect::Deny }];
        Self { rules, not_applied: Vec::new() }
    }

    /// Whether some file is denied, or some script is not run.
    pub fn restricts(&self) -> bool {
        self.rules.iter().any(|rule| rule.effect != Effect::Grant)
    }

    /// What it says of its whole directory.
    fn of_directory(&self) -> Option<bool> {
        self.access(|scope| matches!(scope, Scope::All))
    }

    /// What it says of a file of this name.
    fn of_name(&self, name: &[u8]) -> Option<bool> {
        self.access(|scope| matches!(scope, Scope::Name(regex) if regex.is_match(name)))
    }

    /// Whether access is denied by rules with such a scope; `None` without one. Denials precede grants.
    fn access(&self, has: impl Fn(&Scope) -> bool) -> Option<bool> {
        let mut found = None;
        for rule in self.rules.iter().filter(|rule| has(&rule.scope)) {
            match rule.effect {
                Effect::Deny => return Some(true),
                Effect::Grant => found = Some(false),
                Effect::NoPhp => {}
            }
        }
        found
    }

    /// Whether a rewrite rule refuses a path below the directory.
    fn refuses(&self, path: &[u8]) -> bool {
        self.rules.iter().any(|rule| match &rule.scope {
            Scope::Path { regex, is_negated } => regex.is_match(path) != *is_negated,
            _ => false,
        })
    }

    fn forbids_script(&self, name: &[u8]) -> bool {
        self.rules.iter().filter(|rule| rule.effect == Effect::NoPhp).any(|rule| {
            match &rule.scope {
                Scope::Name(regex) => regex.is_match(name),
                _ => true,
            }
        })
    }
}

#[cfg(test)]
mod tests;
