//! The memory that allocations take, for accounts of memory.

/// The memory that the allocator uses for an allocation of this size.
pub(crate) fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (bytes + 8).next_multiple_of(16).max(32) }
}
