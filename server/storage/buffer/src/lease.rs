//! [`Quota`]: how much of a limited number all shards have taken, and [`Lease`]: what one shard has of it.
//!
//! Used by the accounts, and by the HTTP server for streams and clients. A shard takes more than it needs at
//! once and counts within that without atomics; what is much more than it needs it gives back. Invariants:
//! what is taken exceeds the limit only by what has to be counted whatever the limit is; what all other
//! shards have taken and do not use is at most a sixteenth of it. The only shard takes everything at once, so
//! it counts exactly.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shard has at most two pieces unused.
const UNUSED_PIECES: usize = 2;
/// What the other shards have unused is at most this fraction of the limit.
const UNUSED_SHARE: usize = 16;

/// See the module.
#[derive(Debug)]
pub struct Quota {
    taken: AtomicUsize,
    other_shards: usize,
    largest_piece: usize,
}

impl Quota {
    /// For so many shards, of which each takes at most `largest_piece` in advance.
    pub fn new(shards: usize, largest_piece: usize) -> Arc<Self> {
        let other_shards = shards.saturating_sub(1);
        Arc::new(Self { taken: AtomicUsize::new(0), other_shards, largest_piece })
    }

    /// What all shards have taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// What a shard takes at once.
    fn piece(&self, limit: usize) -> usize {
        let share = limit / (UNUSED_SHARE * UNUSED_PIECES);
        share.checked_div(self.other_shards).map_or(limit, |piece| piece.min(self.largest_piece))
    }

    /// Takes at least `need`, and a piece if there is room for it. Returns what was taken; `None` if that
    /// were beyond the limit and is not forced.
    fn take(&self, need: usize, limit: usize, is_forced: bool) -> Option<usize> {
        let piece = self.piece(limit);
        let more = |taken: usize| match limit.saturating_sub(taken) {
            room if room >= need => Some(piece.clamp(need, room)),
            _ => is_forced.then_some(need),
        };
        let mut before = self.taken();
        loop {
            let more = more(before)?;
            let after = before.saturating_add(more);
            match self.taken.compare_exchange_weak(
                before,
                after,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(after - before),
                Err(now) => before = now,
            }
        }
    }
}

/// See the module. Given back when dropped.
#[derive(Debug)]
pub struct Lease {
    quota: Arc<Quota>,
    taken: Cell<usize>,
    used: Cell<usize>,
    /// More than this is given back.
    most_unused: Cell<usize>,
}

impl Lease {
    /// A lease of nothing.
    pub fn new(quota: &Arc<Quota>) -> Self {
        let (taken, used, most_unused) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Self { quota: quota.clone(), taken, used, most_unused }
    }

    /// What this shard uses.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// What all shards use; of the others what they have taken.
    pub fn used_by_all(&self) -> usize {
        self.quota.taken() - (self.taken.get() - self.used.get())
    }

    /// Uses more, whatever the limit.
    pub fn add(&self, count: usize, limit: usize) {
        let used = self.used.get().saturating_add(count);
        self.cover(used, limit, true);
        self.used.set(used);
    }

    /// Uses more if all shards together stay within the limit.
    pub fn try_add(&self, count: usize, limit: usize) -> bool {
        let within = self.used_by_all().checked_add(count).is_some_and(|all| all <= limit);
        let fits = within && self.cover(self.used.get() + count, limit, false);
        if fits {
            self.used.set(self.used.get() + count);
        }
        fits
    }

    /// Gives back what is too much for a limit that has changed.
    pub fn adapt(&self, limit: usize) {
        self.most_unused.set(self.quota.piece(limit).saturating_mul(UNUSED_PIECES));
        self.subtract(0);
    }

    /// Uses less.
    pub fn subtract(&self, count: usize) {
        self.used.set(self.used.get() - count);
        let unused = self.taken.get() - self.used.get();
        if unused > self.most_unused.get() {
            self.give_back(unused - self.most_unused.get() / UNUSED_PIECES);
        }
    }

    /// Has at least `used`; false if that is beyond the limit and not forced.
    fn cover(&self, used: usize, limit: usize, is_forced: bool) -> bool {
        let need = used.saturating_sub(self.taken.get());
        if need == 0 {
            return true;
        }
        let Some(taken) = self.quota.take(need, limit, is_forced) else { return false };
        self.taken.set(self.taken.get() + taken);
        self.most_unused.set(self.quota.piece(limit).saturating_mul(UNUSED_PIECES));
        true
    }

    fn give_back(&self, count: usize) {
        self.taken.set(self.taken.get() - count);
        self.quota.taken.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(self.taken.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_only_shard_takes_the_limit_once() {
        let quota = Quota::new(1, 10);
        let lease = Lease::new(&quota);
        assert!(lease.try_add(1, 100));
        assert_eq!((quota.taken(), lease.used_by_all()), (100, 1));
        assert!(lease.try_add(99, 100) && !lease.try_add(1, 100));
        lease.add(5, 100);
        assert_eq!((quota.taken(), lease.used_by_all()), (105, 105));
        lease.subtract(105);
        assert!(!lease.try_add(21, 20) && lease.try_add(20, 20), "a lower limit");
        drop(lease);
        assert_eq!(quota.taken(), 0);
    }

    #[test]
    fn a_shard_uses_what_the_others_have_given_back() {
        let (limit, quota) = (3200, Quota::new(2, usize::MAX));
        let (one, other) = (Lease::new(&quota), Lease::new(&quota));
        assert!(one.try_add(limit - 1, limit) && other.try_add(1, limit));
        assert!(!other.try_add(1, limit) && !one.try_add(1, limit));
        one.subtract(limit - 1);
        let piece = limit / 32;
        assert_eq!(quota.taken(), 1 + piece);
        assert!(other.try_add(limit - 1 - piece, limit), "all but the piece");
        assert!(!other.try_add(1, limit));
        assert_eq!(other.used_by_all(), limit);
    }

    #[test]
    fn small_changes_stay_within_the_lease() {
        let (limit, quota) = (3200, Quota::new(2, usize::MAX));
        let lease = Lease::new(&quota);
        lease.add(50, limit);
        let taken = quota.taken();
        for _ in 0..3 {
            assert!(lease.try_add(49, limit));
            lease.subtract(49);
            assert_eq!(quota.taken(), taken);
        }
    }

    #[test]
    fn a_lower_limit_leaves_less_unused() {
        let quota = Quota::new(2, usize::MAX);
        let lease = Lease::new(&quota);
        lease.add(1, 3200);
        assert_eq!(quota.taken(), 100);
        lease.adapt(320);
        assert_eq!(quota.taken(), 1 + 10);
    }

    #[test]
    fn threads_never_exceed_the_limit_together() {
        const LIMIT: usize = 1000;
        let quota = Quota::new(4, usize::MAX);
        let shards = (0..4).map(|shard| {
            let quota = quota.clone();
            thread::spawn(move || {
                let lease = Lease::new(&quota);
                for round in 0..2_000 {
                    let count = (round * 7 + shard * 13) % 300;
                    if lease.try_add(count, LIMIT) {
                        assert!(quota.taken() <= LIMIT);
                        lease.subtract(count);
                    }
                }
            })
        });
        let shards: Vec<_> = shards.collect();
        shards.into_iter().for_each(|shard| shard.join().unwrap());
        assert_eq!(quota.taken(), 0);
    }
}
