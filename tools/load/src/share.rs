//! [`Share`]: the part of a run that one of its threads takes.

/// The index of a thread among the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) thread: usize,
    pub(crate) threads: usize,
}

impl Share {
    /// This thread's part of `count`.
    pub(crate) fn of(self, count: u64) -> u64 {
        let (thread, threads) = (self.thread as u64, self.threads as u64);
        count / threads + u64::from(thread < count % threads)
    }
}
