//! [`IdleList`]: idle connections, longest first, as a doubly linked list.
//!
//! The links are in the entries, so that idling takes no memory and removal no search. Invariant: an entry
//! that is in no list has no links.

use super::table::Open;
use slab::Slab;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IdleList {
    first: Option<usize>,
    last: Option<usize>,
}

/// The neighbours of an entry.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Links {
    before: Option<usize>,
    after: Option<usize>,
}

impl IdleList {
    /// The entry that has been idle longest.
    pub(super) fn first(&self) -> Option<usize> {
        self.first
    }

    /// Appends an entry; `index` is that of this list's links.
    pub(super) fn push(&mut self, open: &mut Slab<Open>, index: usize, key: usize) {
        open[key].links[index] = Links { before: self.last, after: None };
        match self.last.replace(key) {
            Some(last) => open[last].links[index].after = Some(key),
            None => self.first = Some(key),
        }
    }

    /// Removes an entry of the list.
    pub(super) fn remove(&mut self, open: &mut Slab<Open>, index: usize, key: usize) {
        let Links { before, after } = std::mem::take(&mut open[key].links[index]);
        match before {
            Some(before) => open[before].links[index].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => open[after].links[index].before = before,
            None => self.last = before,
        }
    }
}
