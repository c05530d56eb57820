//! The output of PHP's processes, written to the log line by line.
//!
//! [`relay`] runs for each pipe, started by the manager. If a worker dies while it starts, the manager
//! reads the rest of its pipe first: its exit may be reported before its last output, which says why.
//! Invariants: a process with unlimited output gets a few KiB of each turn of the loop and no more lines
//! in the log than its [`Allowance`]; beyond that it blocks on the pipe now and then, as on a terminal. A read has
//! room.

use super::allowance::Allowance;
use super::core::PoolCore;
use outboard_log::{Event as LogEvent, Level};
use outboard_reactor::{Interest, Source, sleep, yield_now};
use outboard_ring::frame::Tag;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::rc::Rc;

/// The size of a read, and the longest line that is not cut.
const BUFFER_BYTES: usize = 4096;
/// Reads before other tasks run: 16 KiB.
const READS_PER_TURN: usize = 4;
/// Reads from the pipe of a dead process: the capacity of a pipe (pipe(7)).
const FINAL_READS: usize = 16;
/// The pause between turns while the lines of a process are dropped: 3 MB per second.
const DROPPING_PAUSE_MS: u64 = 5;

/// Reads from a pipe.
#[derive(Debug, Clone)]
pub(super) struct OutputReader {
    pub(super) core: Rc<PoolCore>,
    /// The worker; `None` for the zygote.
    pub(super) number: Option<u64>,
    pub(super) allowance: Rc<Allowance>,
}

/// Logs the output from a pipe until all writers have closed it.
pub(super) async fn relay(reader: OutputReader, output: OwnedFd) {
    let Ok(source) = Source::new(output, Interest::Read) else { return };
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        source.readable().await;
        match reader.read_lines(&source, &mut buffer, READS_PER_TURN) {
            ControlFlow::Break(Errno::AGAIN) => source.clear_readable(),
            ControlFlow::Break(_) => break,
            ControlFlow::Continue(()) if reader.allowance.is_dropping() => {
                sleep(DROPPING_PAUSE_MS).await;
            }
            ControlFlow::Continue(()) => yield_now().await,
        }
    }
    reader.finish(buffer);
}

/// Logs the unread output of a dead process, without blocking.
pub(super) fn log_remaining(reader: &OutputReader, output: &OwnedFd) {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let _ = reader.read_lines(output, &mut buffer, FINAL_READS);
    reader.finish(buffer);
}

impl OutputReader {
    pub(super) fn of_zygote(core: Rc<PoolCore>) -> Self {
        let allowance = core.log.allowance().clone();
        Self { core, number: None, allowance }
    }

    /// Reads up to `reads` times; stops at an error, and at the end as at `EPIPE`.
    fn read_lines(
        &self,
        output: impl AsFd,
        buffer: &mut Vec<u8>,
        reads: usize,
    ) -> ControlFlow<Errno> {
        let mut outcome = ControlFlow::Continue(());
        for _ in 0..reads {
            debug_assert!(
                buffer.len() < buffer.capacity(),
                "a read without room looks like the end"
            );
            match rustix::io::read(&output, spare_capacity(buffer)) {
                Ok(0) => outcome = ControlFlow::Break(Errno::PIPE),
                Ok(len) => {
                    self.record_startup_output(&buffer[buffer.len() - len..]);
                    self.log_lines(buffer);
                }
                Err(Errno::INTR) => {}
                Err(error) => outcome = ControlFlow::Break(error),
            }
            if outcome.is_break() {
                break;
            }
        }
        self.core.log.flush();
        outcome
    }

    /// Logs an unterminated last line, and how much was dropped.
    fn finish(&self, mut buffer: Vec<u8>) {
        if !buffer.is_empty() {
            buffer.push(b'\n');
            self.log_lines(&mut buffer);
        }
        if self.number.is_some()
            && let Some(dropped) = self.allowance.take_all_dropped()
        {
            self.add(&self.allowance.describe_dropped(dropped));
        }
        self.core.log.flush();
    }

    /// Logs the complete lines of the buffer, and removes them from it.
    fn log_lines(&self, buffer: &mut Vec<u8>) {
        // A line longer than the buffer is cut.
        let end = match memchr::memrchr(b'\n', buffer) {
            Some(end) => end + 1,
            None if buffer.len() == buffer.capacity() => buffer.len(),
            None => return,
        };
        // Empty lines count as well, since they cost as much to read, but they are not logged.
        for line in buffer[..end].split(|&byte| byte == b'\n') {
            match self.allowance.admit(line.len()) {
                true if line.is_empty() => {}
                true => self.add(&String::from_utf8_lossy(line)),
                false => self.core.lifecycle.end_rest(),
            }
        }
        buffer.drain(..end);
    }

    fn record_startup_output(&self, bytes: &[u8]) {
        let Some(number) = self.number else {
            return self.core.php.borrow_mut().record_output(bytes);
        };
        self.core.with_worker(number, |worker| worker.record_startup_output(bytes));
    }

    fn add(&self, text: &str) {
        let (mut worker, mut request) = (None, None);
        if let Some(number) = self.number {
            self.core.with_worker(number, |found| {
                worker = found.process.pid;
                request = found.request_id(Tag::default());
            });
        }
        let event = LogEvent { worker, request, ..self.core.log.app_event(text) };
        self.core.log.add(Level::Warn, event);
    }
}
