//! A static table, searched by name.
//!
//! Called by the encoders, each with its own table. Invariant: a name needs one comparison, in any case
//! of its letters.

/// The names and values of a static table.
pub(crate) type StaticField = (&'static [u8], &'static [u8]);

const SLOTS: usize = 256;

/// No entry.
const NONE: u8 = u8::MAX;

/// A perfect hash of the names of a table with `N` entries.
pub(crate) struct StaticNames<const N: usize> {
    table: &'static [StaticField; N],
    /// Makes the hashes of all names different.
    multiplier: u32,
    /// The first entry with a name of that hash.
    slots: [u8; SLOTS],
    /// The next entry with the same name.
    next: [u8; N],
}

impl<const N: usize> StaticNames<N> {
    /// Does not compile with a `multiplier` by which two names have the same hash.
    pub(crate) const fn new(table: &'static [StaticField; N], multiplier: u32) -> Self {
        let mut names = Self { table, multiplier, slots: [NONE; SLOTS], next: [NONE; N] };
        let mut index = N;
        while index > 0 {
            index -= 1;
            let name = table[index].0;
            let slot = hash(name, multiplier);
            let first = names.slots[slot];
            if first != NONE {
                assert!(is_equal(table[first as usize].0, name), "two names have the same hash");
                names.next[index] = first;
            }
            names.slots[slot] = index as u8;
        }
        names
    }

    /// The first entry with this name.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        if name.is_empty() {
            return None;
        }
        let first = self.slots[hash(name, self.multiplier)];
        let (found, _) = self.table.get(usize::from(first))?;
        name.eq_ignore_ascii_case(found).then_some(usize::from(first))
    }

    /// The entry with this value, of those with the name of `first`.
    #[inline]
    pub(crate) fn find_value(&self, first: usize, value: &[u8]) -> Option<usize> {
        let mut index = first;
        while let Some((_, found)) = self.table.get(index) {
            if *found == value {
                return Some(index);
            }
            index = usize::from(self.next[index]);
        }
        None
    }
}

/// Samples of a name that is not empty; the static names differ in them.
const fn hash(name: &[u8], multiplier: u32) -> usize {
    let len = name.len();
    let samples = [name[0], name[len - 1], name[len.saturating_sub(4)], len as u8];
    let samples = u32::from_le_bytes(samples) | 0x20_2020;
    (samples.wrapping_mul(multiplier) >> 24) as usize
}

/// Equality of bytes, for constants.
pub(crate) const fn is_equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
