//! When connections are spread over more threads, and when over fewer.
//!
//! Called by [`super::SpreadPlace`] of each thread. Invariants: a thread that does not look counts as one without load;
//! no more threads are used while the processors are full, since they would only take them from each other.

use outboard_supervisor::thread_times::Times;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The interval of looks.
pub(super) const LOOK_MS: u64 = 100;
/// A thread that computes for more of the time needs others.
const FULL_PERMILLE: u32 = 700;
/// So much of it is left to each thread when there are fewer.
const ROOM_PERMILLE: u32 = 450;
/// A thread that waits for its processor for more of the time has no other to go to.
const STARVED_PERMILLE: u32 = 250;
/// A thread that computes so much more than the others gives connections away.
const UNEVEN_PERMILLE: u32 = 150;
/// A load that was not reported for longer is over.
const FRESH_MS: u64 = 500;
/// A load has to be low for so long; twice as long each time that it was soon high again.
const CALM_MS: u64 = 2_000;
const MOST_CALM_MS: u64 = 60_000;

/// What a thread finds when it looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) index: usize,
    pub(super) now_ms: u64,
    /// Since its last look.
    pub(super) elapsed_ms: u64,
    pub(super) times: Times,
    /// Connections that had a response in that time.
    pub(super) responded: u32,
}

impl Look {
    fn permille(&self, ns: u64) -> u32 {
        let permille = ns / (self.elapsed_ms.max(1) * 1_000);
        u32::try_from(permille).unwrap_or(u32::MAX).min(1_000)
    }
}

/// See [`super`].
#[derive(Debug)]
pub(crate) struct Spread {
    active: AtomicUsize,
    gathers: AtomicBool,
    loads: Box<[Load]>,
    /// Since when fewer threads would do; 0: they would not.
    low_since_ms: AtomicU64,
    calm_ms: AtomicU64,
    /// The number that the kernel was told; 0: none.
    steered: AtomicUsize,
    /// When there were made fewer, if they have not become more since; 0: they have.
    shrunk_ms: AtomicU64,
}

/// What a thread has reported.
#[derive(Debug, Default)]
struct Load {
    permille: AtomicU32,
    at_ms: AtomicU64,
}

impl Load {
    fn report(&self, permille: u32, now_ms: u64) {
        self.permille.store(permille, Relaxed);
        self.at_ms.store(now_ms, Relaxed);
    }

    fn is_fresh(&self, now_ms: u64) -> bool {
        self.at_ms.load(Relaxed) + FRESH_MS >= now_ms
    }
}

impl Spread {
    /// For so many threads. See [`Spread::set_gathers`].
    pub(crate) fn new(count: usize, gathers: bool) -> Self {
        assert!(count > 0, "a server has a thread");
        let spread = Self {
            active: AtomicUsize::new(1),
            gathers: AtomicBool::new(true),
            loads: (0..count).map(|_| Load::default()).collect(),
            low_since_ms: AtomicU64::new(0),
            calm_ms: AtomicU64::new(CALM_MS),
            steered: AtomicUsize::new(0),
            shrunk_ms: AtomicU64::new(0),
        };
        spread.set_gathers(gathers);
        spread
    }

    /// Whether connections are spread over as many threads as they need, or always over all.
    pub(crate) fn set_gathers(&self, gathers: bool) {
        self.gathers.store(gathers, Relaxed);
        if !gathers {
            self.active.store(self.count(), Relaxed);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.loads.len()
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Relaxed)
    }

    /// The number that the kernel is to be told, unless it was; the caller tells it.
    pub(super) fn to_steer(&self) -> Option<usize> {
        let active = self.active();
        (self.count() > 1 && self.steered.swap(active, Relaxed) != active).then_some(active)
    }

    /// The kernel has to be told again.
    pub(super) fn forget_steered(&self) {
        self.steered.store(0, Relaxed);
    }

    /// Takes a thread's report, and decides. Returns how many of its connections should leave it.
    pub(super) fn decide(&self, look: &Look) -> u32 {
        let own = look.permille(look.times.run_ns);
        self.loads[look.index].report(own, look.now_ms);
        let active = self.active();
        let total = self.total(look.now_ms);
        if !self.gathers.load(Relaxed) {
            self.active.store(self.count(), Relaxed);
        } else if own >= FULL_PERMILLE && look.index < active {
            self.low_since_ms.store(0, Relaxed);
            if active < self.count() && look.permille(look.times.wait_ns) < STARVED_PERMILLE {
                self.grow(active, total, look.now_ms);
            }
        } else {
            self.shrink_if_calm(active, total, look.now_ms);
        }
        self.leaving(look, own, total)
    }

    /// The load of all threads.
    fn total(&self, now_ms: u64) -> u32 {
        self.loads
            .iter()
            .filter(|load| load.is_fresh(now_ms))
            .map(|load| load.permille.load(Relaxed))
            .sum()
    }

    fn grow(&self, active: usize, total: u32, now_ms: u64) {
        let needed = threads_for(total).clamp(active + 1, 2 * active).min(self.count());
        if self.active.compare_exchange(active, needed, Relaxed, Relaxed).is_err() {
            return;
        }
        let shrunk_ms = self.shrunk_ms.swap(0, Relaxed);
        if shrunk_ms == 0 {
            return;
        }
        let calm_ms = self.calm_ms.load(Relaxed);
        let was_too_early = now_ms < shrunk_ms + 2 * calm_ms;
        let next_ms = if was_too_early { 2 * calm_ms } else { CALM_MS };
        self.calm_ms.store(next_ms.min(MOST_CALM_MS), Relaxed);
    }

    fn shrink_if_calm(&self, active: usize, total: u32, now_ms: u64) {
        let needed = threads_for(total);
        if needed >= active {
            return self.low_since_ms.store(0, Relaxed);
        }
        let since_ms = match self.low_since_ms.load(Relaxed) {
            0 => {
                self.low_since_ms.store(now_ms, Relaxed);
                now_ms
            }
            since_ms => since_ms,
        };
        let is_calm = now_ms.saturating_sub(since_ms) >= self.calm_ms.load(Relaxed);
        if is_calm && self.active.compare_exchange(active, needed, Relaxed, Relaxed).is_ok() {
            self.low_since_ms.store(0, Relaxed);
            self.shrunk_ms.store(now_ms, Relaxed);
        }
    }

    /// As many as make its load that of the others if it has too much. From a thread that rests all leave.
    fn leaving(&self, look: &Look, own: u32, total: u32) -> u32 {
        let active = self.active();
        let mean = total / u32::try_from(active).unwrap_or(u32::MAX);
        let is_uneven =
            look.index < active && own >= FULL_PERMILLE && own >= mean + UNEVEN_PERMILLE;
        if !is_uneven || look.responded < 2 {
            return 0;
        }
        let leaving = u64::from(look.responded) * u64::from(own - mean) / u64::from(own);
        u32::try_from(leaving).unwrap_or(u32::MAX).clamp(1, look.responded - 1)
    }

    /// The thread with the least load of those that serve; `None` if that is this one.
    pub(super) fn calmest_beside(&self, index: usize, now_ms: u64) -> Option<usize> {
        let of = |load: &Load| if load.is_fresh(now_ms) { load.permille.load(Relaxed) } else { 0 };
        let serving = self.loads.iter().take(self.active()).enumerate();
        let (calmest, load) = serving.min_by_key(|(_, load)| of(load))?;
        // Until it reports: what comes now goes to the next.
        load.report(of(load) + 1, now_ms);
        Some(calmest).filter(|calmest| *calmest != index)
    }
}

/// As many as have room for this load.
fn threads_for(total_permille: u32) -> usize {
    total_permille.div_ceil(ROOM_PERMILLE).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each thread looks every 100 ms, with these loads.
    struct Threads {
        spread: Spread,
        now_ms: u64,
    }

    impl Threads {
        fn new(count: usize) -> Self {
            Self { spread: Spread::new(count, true), now_ms: 1_000_000 }
        }

        fn look(&mut self, loads: &[(u64, u64)], times: usize) -> Vec<u32> {
            let mut leaving = Vec::new();
            for _ in 0..times {
                self.now_ms += LOOK_MS;
                leaving.clear();
                for (index, (run, wait)) in loads.iter().enumerate() {
                    let (run_ns, wait_ns) = (run * LOOK_MS * 1_000, wait * LOOK_MS * 1_000);
                    let times = Times { run_ns, wait_ns };
                    let (now_ms, elapsed_ms) = (self.now_ms, LOOK_MS);
                    let look = Look { index, now_ms, elapsed_ms, times, responded: 10 };
                    leaving.push(self.spread.decide(&look));
                }
            }
            leaving
        }
    }

    #[test]
    fn a_thread_that_is_full_gets_others_and_gives_connections_away() {
        let mut threads = Threads::new(8);
        assert_eq!((threads.look(&[(500, 0)], 50), threads.spread.active()), (vec![0], 1));
        let leaving = threads.look(&[(900, 0)], 1);
        assert_eq!((leaving, threads.spread.active()), (vec![5], 2));
        threads.look(&[(900, 0), (900, 0)], 1);
        assert_eq!(threads.spread.active(), 4);
        threads.look(&[(950, 0); 8], 5);
        assert_eq!(threads.spread.active(), 8);
        // All are full: nobody has anything to give.
        assert_eq!(threads.look(&[(950, 0); 8], 1), [0; 8]);
    }

    #[test]
    fn full_processors_get_no_more_threads() {
        let mut threads = Threads::new(8);
        threads.look(&[(700, 300)], 50);
        assert_eq!(threads.spread.active(), 1);
    }

    #[test]
    fn a_low_load_has_to_last_and_then_needs_fewer() {
        let mut threads = Threads::new(4);
        threads.look(&[(900, 0); 4], 3);
        assert_eq!(threads.spread.active(), 4);
        let rounds = (CALM_MS / LOOK_MS) as usize;
        threads.look(&[(150, 0); 4], rounds);
        assert_eq!(threads.spread.active(), 4, "not yet");
        let leaving = threads.look(&[(150, 0); 4], 2);
        assert_eq!(threads.spread.active(), 2);
        assert_eq!(leaving, [0; 4], "those that rest need not be told");
        // Soon high again: next time it takes twice as long.
        threads.look(&[(900, 0); 2], 1);
        assert_eq!(threads.spread.active(), 4);
        threads.look(&[(100, 0); 4], rounds + 3);
        assert_eq!(threads.spread.active(), 4);
        threads.look(&[(100, 0); 4], rounds);
        assert_eq!(threads.spread.active(), 1);
    }

    #[test]
    fn a_thread_that_reports_nothing_has_no_load() {
        let mut threads = Threads::new(4);
        threads.look(&[(900, 0); 4], 3);
        threads.look(&[(100, 0)], 40);
        assert_eq!(threads.spread.active(), 1);
    }

    #[test]
    fn connections_go_to_the_threads_with_the_least_load() {
        let mut threads = Threads::new(4);
        threads.look(&[(900, 0), (800, 0), (600, 0), (600, 0)], 3);
        assert_eq!(threads.spread.active(), 4);
        let to: Vec<_> = (0..4).map(|_| threads.spread.calmest_beside(0, threads.now_ms)).collect();
        assert_eq!(to, [Some(2), Some(3), Some(2), Some(3)]);
        assert_eq!(
            threads.spread.calmest_beside(2, threads.now_ms),
            None,
            "it is the calmest itself"
        );
    }

    #[test]
    fn without_gathering_all_threads_serve() {
        let mut threads = Threads { spread: Spread::new(4, false), now_ms: 1_000_000 };
        threads.look(&[(10, 0); 4], 1_000);
        assert_eq!(threads.spread.active(), 4);
    }
}
