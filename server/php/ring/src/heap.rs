//! [`trim`]: returns free heap pages to the system.
//!
//! Called by the gateway when it uses much less memory than before. It is in this crate because
//! only this crate of the gateway may call C.

#[cfg(target_env = "gnu")]
use std::ffi::c_int;

#[cfg(target_env = "gnu")]
// SAFETY: the declaration is that of malloc_trim(3), which may be called at any time by any thread and
// takes a number.
unsafe extern "C" {
    safe fn malloc_trim(pad: usize) -> c_int;
}

/// Returns unused pages of the heap to the system; malloc(3) by itself returns only those at its
/// end. Takes some milliseconds for a large heap.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // The result says whether there were any.
    let _ = malloc_trim(0);
}

#[cfg(test)]
mod tests {
    #[test]
    fn freed_memory_is_returned_to_the_system() {
        // The pieces are too small to be mapped each on its own, and the last one stays, so that
        // the end of the heap does.
        let mut pieces: Vec<Vec<u8>> = (0..4_000).map(|_| vec![1; 16 << 10]).collect();
        let last = pieces.pop();
        drop(pieces);
        let before_kib = resident_kib();
        super::trim();
        if cfg!(target_env = "gnu") {
            assert!(resident_kib() + (32 << 10) < before_kib, "{before_kib} KiB before");
        }
        drop(last);
    }

    fn resident_kib() -> u64 {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}
