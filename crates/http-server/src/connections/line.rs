//! [`Line`]: connections in the order in which they began to wait; any of them may leave it at once.
//!
//! The links lie in the connections themselves, so that waiting takes no memory. Invariant: one that
//! is in no line has no links.

use super::Open;
use slab::Slab;

/// The two ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    first: Option<usize>,
    last: Option<usize>,
}

/// The neighbours of one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Links {
    before: Option<usize>,
    after: Option<usize>,
}

impl Line {
    /// The one that has waited longest.
    pub(super) fn first(&self) -> Option<usize> {
        self.first
    }

    /// Puts one at the end; `which` says which of its links are this line's.
    pub(super) fn push(&mut self, open: &mut Slab<Open>, which: usize, key: usize) {
        open[key].links[which] = Links { before: self.last, after: None };
        match self.last.replace(key) {
            Some(last) => open[last].links[which].after = Some(key),
            None => self.first = Some(key),
        }
    }

    /// Takes one out that is in it.
    pub(super) fn remove(&mut self, open: &mut Slab<Open>, which: usize, key: usize) {
        let Links { before, after } = std::mem::take(&mut open[key].links[which]);
        match before {
            Some(before) => open[before].links[which].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => open[after].links[which].before = before,
            None => self.last = before,
        }
    }
}
