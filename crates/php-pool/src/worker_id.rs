//! [`WorkerId`]: the identity of a worker.

/// See the module. No two workers of this process ever have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId {
    pub(crate) pool: u64,
    /// Its place in the pool.
    pub(crate) slot: usize,
    /// Its number in the zygote.
    pub(crate) number: u64,
}
