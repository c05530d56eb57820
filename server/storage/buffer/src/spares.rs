//! [`Spares`]: unused objects, whose memory is used again.
//!
//! Used for what every request needs. Invariants: their number is limited; those that were not
//! needed for a while are freed, so that memory follows the load.

use std::cell::RefCell;

/// Unused objects that are stored by default.
const MAX_SPARES: usize = 1024;
/// Objects that were unused for so long are freed.
const UNUSED_MS: u64 = 1000;

/// See the module.
#[derive(Debug)]
pub struct Spares<T> {
    inner: RefCell<Inner<T>>,
    most: usize,
}

#[derive(Debug)]
struct Inner<T> {
    #[allow(clippy::vec_box, reason = "its users hold the pointer, not the object")]
    spares: Vec<Box<T>>,
    /// The minimum number of spares since `since_ms`: that many were not needed.
    fewest: usize,
    since_ms: u64,
}

impl<T> Default for Spares<T> {
    fn default() -> Self {
        Self::at_most(MAX_SPARES)
    }
}

impl<T> Spares<T> {
    /// Stores so many objects.
    pub fn at_most(most: usize) -> Self {
        let inner = Inner { spares: Vec::new(), fewest: 0, since_ms: 0 };
        Self { inner: RefCell::new(inner), most }
    }

    /// The object that was returned last.
    pub fn take(&self) -> Option<Box<T>> {
        let mut inner = self.inner.borrow_mut();
        let spare = inner.spares.pop();
        inner.fewest = inner.fewest.min(inner.spares.len());
        spare
    }

    /// Returns an object, and frees unused ones.
    pub fn give_back(&self, object: Box<T>, now_ms: u64) {
        // Freed while nothing is borrowed.
        let _unused = {
            let mut inner = self.inner.borrow_mut();
            if inner.spares.len() < self.most {
                inner.spares.push(object);
            }
            inner.take_unused(now_ms)
        };
    }

    /// Frees objects that were not needed for a while.
    pub fn free_unused(&self, now_ms: u64) {
        // Freed while nothing is borrowed.
        let _unused = self.inner.borrow_mut().take_unused(now_ms);
    }
}

impl<T> Inner<T> {
    #[allow(clippy::vec_box, reason = "as above")]
    fn take_unused(&mut self, now_ms: u64) -> Vec<Box<T>> {
        if now_ms.saturating_sub(self.since_ms) < UNUSED_MS {
            return Vec::new();
        }
        let unused = self.spares.split_off(self.spares.len() - self.fewest);
        self.fewest = self.spares.len();
        self.since_ms = now_ms;
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spares(count: usize) -> Spares<usize> {
        let spares = Spares::default();
        (0..count).for_each(|number| spares.give_back(Box::new(number), 0));
        spares.inner.borrow_mut().fewest = count;
        spares
    }

    fn count(spares: &Spares<usize>) -> usize {
        spares.inner.borrow().spares.len()
    }

    #[test]
    fn the_object_that_was_returned_last_is_used_next() {
        let spares = spares(3);
        assert_eq!((spares.take(), spares.take()), (Some(Box::new(2)), Some(Box::new(1))));
        spares.give_back(Box::new(7), 0);
        assert_eq!(spares.take(), Some(Box::new(7)));
        assert_eq!((spares.take(), spares.take()), (Some(Box::new(0)), None));
    }

    #[test]
    fn unused_objects_are_freed() {
        let spares = spares(10);
        let taken: Vec<_> = (0..6).filter_map(|_| spares.take()).collect();
        for (number, object) in taken.into_iter().enumerate() {
            assert_eq!(count(&spares), 4 + number);
            spares.give_back(object, UNUSED_MS - 1);
        }
        let object = spares.take().unwrap();
        spares.give_back(object, UNUSED_MS);
        assert_eq!(count(&spares), 6, "four were unused all the time");
        let object = spares.take().unwrap();
        spares.give_back(object, 2 * UNUSED_MS);
        assert_eq!(count(&spares), 1, "and then one was enough");
    }

    #[test]
    fn more_than_the_maximum_are_not_stored() {
        let spares = spares(MAX_SPARES);
        spares.give_back(Box::new(0), 0);
        assert_eq!(count(&spares), MAX_SPARES);
    }
}
