//! [`Affinity`]: the cores that the workers of a zygote may run on (sched_setaffinity(2)).
//!
//! Called by the zygote, which never changes its own cores. Invariant: a worker starts with them, as
//! fork(2) copies them.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// The cores of the zygote at its start; `None` if the kernel has more than fit a [`CpuSet`].
#[derive(Debug)]
pub(crate) struct Affinity(Option<CpuSet>);

impl Affinity {
    /// That of this process.
    pub(crate) fn of_zygote() -> Self {
        Self(sched_getaffinity(None).ok())
    }

    /// Moves a worker to these cores; none: to those of the zygote. Cores beyond [`CpuSet::MAX_CPU`] are
    /// left out.
    ///
    /// It moves the main thread, which runs PHP. A thread that the worker has started stays where it
    /// is, one that it starts later has the cores of the main thread.
    pub(crate) fn place(&self, worker: i32, cores: &[u16]) -> io::Result<()> {
        let cores = if cores.is_empty() { self.0 } else { Some(set_of(cores)) };
        let cores = cores.ok_or(io::ErrorKind::Unsupported)?;
        // 0 would be the zygote itself.
        let worker = Pid::from_raw(worker).ok_or(io::ErrorKind::NotFound)?;
        Ok(sched_setaffinity(Some(worker), &cores)?)
    }
}

fn set_of(cores: &[u16]) -> CpuSet {
    let mut set = CpuSet::new();
    let numbers = cores.iter().map(|core| usize::from(*core));
    numbers.filter(|core| *core < CpuSet::MAX_CPU).for_each(|core| set.set(core));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_no_set_has_are_left_out() {
        let set = set_of(&[0, 63, 1023, 1024, u16::MAX]);
        assert_eq!(set.count(), 3);
        assert!(set.is_set(0) && set.is_set(63) && set.is_set(1023));
    }
}
