//! The heap of this process, and what of it the system gets back.
//!
//! Called by the gateway once it holds much less than it did. Here because it is the one crate of
//! the gateway's that may call what is declared in C.

#[cfg(target_env = "gnu")]
use std::ffi::c_int;

#[cfg(target_env = "gnu")]
// SAFETY: the declaration is that of malloc_trim(3), which may be called at any time by any thread and
// takes a number.
unsafe extern "C" {
    safe fn malloc_trim(pad: usize) -> c_int;
}

/// Gives pages that nothing of the heap is on back to the system: malloc(3) keeps all but those at
/// its end. Takes some milliseconds where there are many.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // It says whether there were any.
    let _ = malloc_trim(0);
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_freed_goes_back_to_the_system() {
        // Below the threshold from which each has pages of its own; the last one stays, so that the
        // end of the heap does.
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
