//! The output of a process, written to a log line by line.
//!
//! [`relay`] runs for each pipe, started by what starts the process. Invariants: a process with unlimited output gets a few
//! KiB of each turn of the loop and no more lines in the log than its [`Allowance`]; beyond that it blocks on the pipe now
//! and then, as on a terminal. A read has room.

use crate::allowance::Allowance;
use outboard_reactor::{Interest, Source, sleep, yield_now};
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::ops::ControlFlow;

/// The size of a read, and the longest line that is not cut.
const BUFFER_BYTES: usize = 4096;
/// Reads before other tasks run: 16 KiB.
const READS_PER_TURN: usize = 4;
/// Reads from the pipe of a dead process: the capacity of a pipe (pipe(7)).
const FINAL_READS: usize = 16;
/// The pause between turns while the lines of a process are dropped: 3 MB per second.
const DROPPING_PAUSE_MS: u64 = 5;

/// Where the lines of a process go.
pub(crate) trait OutputLog {
    /// How many lines are written.
    fn allowance(&self) -> &Allowance;

    /// The process has printed this, which need not be a complete line.
    fn printed(&self, _bytes: &[u8]) {}

    /// Adds a line, which [`Self::flush`] writes.
    fn add(&self, text: &str);

    /// A line was dropped.
    fn dropping(&self) {}

    /// Whether the allowance ends with the output, so that the last dropped lines are reported.
    fn ends_with_output(&self) -> bool {
        true
    }

    /// Writes what was added.
    fn flush(&self);
}

/// Logs the output from a pipe until all writers have closed it.
pub(crate) async fn relay(log: impl OutputLog, output: OwnedFd) {
    let Ok(source) = Source::new(output, Interest::Read) else { return };
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        source.readable().await;
        match read_lines(&log, &source, &mut buffer, READS_PER_TURN) {
            ControlFlow::Break(Errno::AGAIN) => source.clear_readable(),
            ControlFlow::Break(_) => break,
            ControlFlow::Continue(()) if log.allowance().is_dropping() => {
                sleep(DROPPING_PAUSE_MS).await;
            }
            ControlFlow::Continue(()) => yield_now().await,
        }
    }
    finish(&log, buffer);
}

/// Logs the unread output of a dead process, without blocking.
pub(crate) fn log_remaining(log: &impl OutputLog, output: &OwnedFd) {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let _ = read_lines(log, output, &mut buffer, FINAL_READS);
    finish(log, buffer);
}

/// Reads up to `reads` times; stops at an error, and at the end as at `EPIPE`.
fn read_lines(
    log: &impl OutputLog,
    output: impl AsFd,
    buffer: &mut Vec<u8>,
    reads: usize,
) -> ControlFlow<Errno> {
    let mut outcome = ControlFlow::Continue(());
    for _ in 0..reads {
        debug_assert!(buffer.len() < buffer.capacity(), "a read without room looks like the end");
        match rustix::io::read(&output, spare_capacity(buffer)) {
            Ok(0) => outcome = ControlFlow::Break(Errno::PIPE),
            Ok(len) => {
                log.printed(&buffer[buffer.len() - len..]);
                log_lines(log, buffer);
            }
            Err(Errno::INTR) => {}
            Err(error) => outcome = ControlFlow::Break(error),
        }
        if outcome.is_break() {
            break;
        }
    }
    log.flush();
    outcome
}

/// Logs an unterminated last line, and how much was dropped.
fn finish(log: &impl OutputLog, mut buffer: Vec<u8>) {
    if !buffer.is_empty() {
        buffer.push(b'\n');
        log_lines(log, &mut buffer);
    }
    if log.ends_with_output()
        && let Some(dropped) = log.allowance().take_all_dropped()
    {
        log.add(&log.allowance().describe_dropped(dropped));
    }
    log.flush();
}

/// Logs the complete lines of the buffer, and removes them from it.
fn log_lines(log: &impl OutputLog, buffer: &mut Vec<u8>) {
    // A line longer than the buffer is cut.
    let end = match memchr::memrchr(b'\n', buffer) {
        Some(end) => end + 1,
        None if buffer.len() == buffer.capacity() => buffer.len(),
        None => return,
    };
    // Empty lines count as well, since they cost as much to read, but they are not logged.
    for line in buffer[..end].split(|&byte| byte == b'\n') {
        match log.allowance().admit(line.len()) {
            true if line.is_empty() => {}
            true => log.add(&String::from_utf8_lossy(line)),
            false => log.dropping(),
        }
    }
    buffer.drain(..end);
}
