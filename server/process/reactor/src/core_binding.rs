//! [`CoreBinding`]: the core that a thread keeps to while processes on that core depend on it.
//!
//! Used by a pool whose workers run on the core of their loop (sched_setaffinity(2)). Without it the
//! kernel moves the thread to an idle core as soon as a worker wakes it. Invariants: no two threads are
//! bound to the same core; a thread or process that is started within [`unbound`] may run on all cores,
//! although it inherits those of the thread that starts it.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    static BOUND: RefCell<Weak<Bound>> = RefCell::default();
}

/// The cores of all bound threads.
static CORES: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// See the module. The thread may run on all of its cores again when the last one is dropped.
#[derive(Debug)]
pub struct CoreBinding(Rc<Bound>);

#[derive(Debug)]
struct Bound {
    core: u16,
    /// The cores that the thread had before.
    all: CpuSet,
}

impl CoreBinding {
    /// Binds this thread to the core on which it runs, unless it is bound already. `None` if it has no
    /// other core, or if another thread is bound to this one.
    pub fn bind() -> Option<Self> {
        if let Some(bound) = bound() {
            return Some(Self(bound));
        }
        let all = sched_getaffinity(None).ok().filter(|all| all.count() > 1)?;
        let core = u16::try_from(sched_getcpu()).ok()?;
        if usize::from(core) >= CpuSet::MAX_CPU || !cores().insert(core) {
            return None;
        }
        // Gives the core back if the next step fails.
        let bound = Rc::new(Bound { core, all });
        sched_setaffinity(None, &bound.only()).ok()?;
        BOUND.with(|current| current.replace(Rc::downgrade(&bound)));
        Some(Self(bound))
    }

    /// Lets the processes run that wait for this core. One that a doorbell has woken answers before this
    /// thread goes on, which need not sleep and be woken (sched_yield(2)).
    pub fn yield_core(&self) {
        std::thread::yield_now();
    }

    /// The number of the core.
    pub fn core(&self) -> u16 {
        self.0.core
    }
}

impl Bound {
    fn only(&self) -> CpuSet {
        let mut set = CpuSet::new();
        set.set(usize::from(self.core));
        set
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // It fails if none of the cores exists any more; the kernel has chosen others then.
        let _ = sched_setaffinity(None, &self.all);
        let was_bound = cores().remove(&self.core);
        debug_assert!(was_bound, "another thread may have bound itself to the core {}", self.core);
    }
}

/// Runs `start`, which starts a thread or a process, on all cores of this thread.
pub fn unbound<T>(start: impl FnOnce() -> T) -> T {
    let Some(bound) = bound() else { return start() };
    // If either fails, the thread keeps the cores that it has.
    let _ = sched_setaffinity(None, &bound.all);
    let started = start();
    let _ = sched_setaffinity(None, &bound.only());
    started
}

fn bound() -> Option<Rc<Bound>> {
    BOUND.try_with(|bound| bound.borrow().upgrade()).ok().flatten()
}

fn cores() -> MutexGuard<'static, BTreeSet<u16>> {
    CORES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_cores() -> u32 {
        sched_getaffinity(None).unwrap().count()
    }

    #[test]
    fn a_seat_binds_its_thread_and_nothing_that_it_starts() {
        let all = own_cores();
        if all < 2 {
            return assert!(CoreBinding::bind().is_none(), "there is nothing to choose");
        }
        let binding = CoreBinding::bind().unwrap();
        let same = CoreBinding::bind().unwrap();
        assert_eq!((own_cores(), same.core()), (1, binding.core()));
        let inheriting = std::thread::spawn(own_cores);
        let started = unbound(|| std::thread::spawn(own_cores));
        assert_eq!((inheriting.join().unwrap(), started.join().unwrap()), (1, all));
        assert_eq!(own_cores(), 1);
        drop(binding);
        assert_eq!(own_cores(), 1, "one is left");
        let core = same.core();
        assert!(cores().contains(&core), "no other thread can be bound to it");
        drop(same);
        assert_eq!((own_cores(), cores().contains(&core)), (all, false));
        assert_eq!(unbound(own_cores), all);
    }
}
