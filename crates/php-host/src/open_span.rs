//! The span of the script that the running code is part of (`span.c`), for the operations that it begins.

unsafe extern "C" {
    static outboard_open_span: u32;
}

/// Its number; 0: none.
pub(crate) fn number() -> u32 {
    // SAFETY: `span.c` defines it as a `uint32_t`, and only the thread of PHP, which calls this, writes it.
    unsafe { outboard_open_span }
}
