//! The span of the script that the running code is part of (`span.c`), for the operations that it begins.

unsafe extern "C" {
    fn outboard_open_span() -> u32;
}

/// Its number; 0: none.
pub(crate) fn number() -> u32 {
    // SAFETY: reads a number that only the thread of PHP, which calls this, writes.
    unsafe { outboard_open_span() }
}
