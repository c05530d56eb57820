//! What a task may do before others have their turn.
//!
//! Renewed by the loop before each poll, spent by reads, writes and other work through input that
//! a peer may fill without end. Invariant: a socket that can always be read or written keeps its
//! task no longer than the budget lasts; then the socket says that it would block, and waiting for it
//! is over in the next turn.

use std::cell::Cell;

/// Bytes of a poll: they take about a tenth of a millisecond.
const BYTES: usize = 256 * 1024;
/// What an operation takes however few its bytes are: a system call.
const OPERATION_BYTES: usize = 4 * 1024;

thread_local! {
    /// `None` outside of tasks.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs one poll of a task with a budget of its own.
pub(crate) fn with_budget<T>(poll: impl FnOnce() -> T) -> T {
    let _outer = Outer(LEFT.replace(Some(BYTES)));
    poll()
}

/// Runs what looks at a socket once, whatever is left of the budget.
pub fn without_budget<T>(look: impl FnOnce() -> T) -> T {
    let _outer = Outer(LEFT.take());
    look()
}

/// Puts the outer budget back, however the inner work ends.
struct Outer(Option<usize>);

impl Drop for Outer {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Counts work that takes about as long as moving so many bytes.
pub fn spend(bytes: usize) {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(bytes.max(OPERATION_BYTES))));
}

/// How many bytes may still be moved.
pub(crate) fn left() -> usize {
    LEFT.get().unwrap_or(usize::MAX)
}

/// Whether the current task has to let others go on.
pub fn is_spent() -> bool {
    LEFT.get() == Some(0)
}
