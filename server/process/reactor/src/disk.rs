//! Threads for work that may wait for a disk: one set reads files, another looks them up.
//!
//! Invariants: reads of large files do not delay lookups; the lookups of one owner, such as the directory
//! of an app, do not delay those of others.

use crate::threads::{THREADS, Threads};

/// The threads that the lookups of one owner may take.
const LOOKUPS_PER_OWNER: usize = 8;
/// Copying what a fast disk reads takes a processor.
const NICENESS: i32 = 10;
const _: () = assert!(
    LOOKUPS_PER_OWNER < THREADS,
    "an owner whose directory hangs leaves threads for others"
);

static READS: Threads = Threads::nice(THREADS, NICENESS);
/// They take microseconds, unless they wait.
static LOOKUPS: Threads = Threads::new(LOOKUPS_PER_OWNER);

/// Reads files: runs `work` on one of a few threads and waits for its result without blocking the loop.
/// A panic of `work` continues in the waiting task.
pub async fn on_disk_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    READS.run(0, work).await
}

/// The same for the lookup of a file.
pub async fn on_lookup_thread<T: Send + 'static>(
    owner: u64,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    LOOKUPS.run(owner, work).await
}
