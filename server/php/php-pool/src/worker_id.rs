//! [`WorkerId`]: the identity of a worker.

/// See the module. It is unique in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId {
    pub(crate) pool: u64,
    /// Its slot in the pool.
    pub(crate) slot: usize,
    /// Its number in the zygote.
    pub(crate) number: u64,
}

impl WorkerId {
    /// The pool and the worker's number in it.
    pub fn numbers(self) -> (u64, u64) {
        (self.pool, self.number)
    }
}
