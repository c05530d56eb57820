//! Finds the entries that a purge selects without a scan of all of them.
//!
//! Owned by [`crate::Store`] and [`crate::DiskIndex`], each with numbers of its own. URLs are ordered by
//! path, so that equal prefixes are adjacent whatever their host; tags by their hash. Invariant: an
//! entry is indexed exactly as long as its owner has it.

use crate::entry::Entry;
use crate::key::Key;
use crate::purge::Selector;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The entries by path and by tag. `N` is the owner's number of an entry.
#[derive(Debug)]
pub(crate) struct PurgeIndex<N> {
    by_path: BTreeSet<Place<N>>,
    by_tag: BTreeSet<(u64, N)>,
}

#[derive(Debug)]
struct Place<N> {
    key: Key,
    number: N,
}

impl<N: Copy + Ord> PurgeIndex<N> {
    /// The memory of one element: a node of the tree has room for eleven and holds six after ordered
    /// insertion; inner nodes add a twelfth.
    const PATH_BYTES: usize = size_of::<Place<N>>() * 2 + 8;
    const TAG_BYTES: usize = size_of::<(u64, N)>() * 2 + 8;

    /// Adds an entry.
    pub(crate) fn add(&mut self, entry: &Entry, number: N) {
        self.by_path.insert(Place { key: entry.key.clone(), number });
        self.by_tag.extend(entry.tags.iter().map(|&tag| (tag, number)));
    }

    /// Removes an entry that was added under this number.
    pub(crate) fn remove(&mut self, entry: &Entry, number: N) {
        self.by_path.remove(&Place { key: entry.key.clone(), number });
        for &tag in &entry.tags {
            self.by_tag.remove(&(tag, number));
        }
    }

    /// The numbers of the selected entries, each once.
    pub(crate) fn selected(&self, selector: &Selector) -> Vec<N>
    where
        N: Bounded,
    {
        match selector {
            Selector::All => self.by_path.iter().map(|place| place.number).collect(),
            Selector::Url(text) | Selector::Prefix(text) => {
                let path = path_of(text);
                let first =
                    Place { key: Key { bytes: path.into(), path_start: 0 }, number: N::MIN };
                let candidates = self.by_path.range(first..);
                candidates
                    .take_while(|place| place.key.path_and_query().starts_with(path))
                    .filter(|place| selector.selects(&place.key, &[]))
                    .map(|place| place.number)
                    .collect()
            }
            Selector::Tags(tags) => {
                let with = |tag: u64| self.by_tag.range((tag, N::MIN)..=(tag, N::MAX));
                let mut numbers: Vec<N> =
                    tags.iter().flat_map(|&tag| with(tag)).map(|&(_, number)| number).collect();
                numbers.sort_unstable();
                numbers.dedup();
                numbers
            }
        }
    }

    /// The memory of the index, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.by_path.len() * Self::PATH_BYTES + self.by_tag.len() * Self::TAG_BYTES
    }
}

impl<N> Default for PurgeIndex<N> {
    fn default() -> Self {
        Self { by_path: BTreeSet::new(), by_tag: BTreeSet::new() }
    }
}

/// A number with bounds.
pub(crate) trait Bounded {
    const MIN: Self;
    const MAX: Self;
}

impl Bounded for u32 {
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
}

impl Bounded for u64 {
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
}

/// The path prefix of all URLs that a text selects; empty if it has none.
fn path_of(text: &[u8]) -> &[u8] {
    if text.starts_with(b"/") {
        return text;
    }
    let after_scheme = memchr::memmem::find(text, b"://").map_or(text.len(), |at| at + 3);
    let rest = &text[after_scheme..];
    memchr::memchr(b'/', rest).map_or(b"", |at| &rest[at..])
}

impl<N: Ord> Ord for Place<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_path = self.key.path_and_query().cmp(other.key.path_and_query());
        by_path
            .then_with(|| self.key.bytes().cmp(other.key.bytes()))
            .then_with(|| self.number.cmp(&other.number))
    }
}

impl<N: Ord> PartialOrd for Place<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N: Ord> PartialEq for Place<N> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<N: Ord> Eq for Place<N> {}
