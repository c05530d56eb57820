//! What PHP's processes print, in the log line by line.
//!
//! Spawned by the manager for each pipe. When a worker dies while it starts, the manager has the rest
//! read first: the news of its end may come before its last words, and these say why. Invariants:
//! who prints without end gets a few KiB of each turn of the loop and no more lines into the log
//! than its [`Allowance`]; beyond that it waits for the pipe now and then, as it would for a
//! terminal.

use super::Pool;
use super::allowance::Allowance;
use outboard_log::{Event as LogEvent, Level};
use outboard_reactor::{Interest, Source, sleep, yield_now};
use outboard_ring::frame::Tag;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::ops::ControlFlow;
use std::rc::Rc;

/// What is read at a time, and the longest line that is not cut.
const BUFFER_BYTES: usize = 4096;
/// Reads before others have their turn: 16 KiB.
const READS_A_TURN: usize = 4;
/// Reads of a dead process's last words: what a pipe holds (pipe(7)).
const LAST_READS: usize = 16;
/// Of a process whose lines are dropped, a turn's worth is read so often: 3 MB a second.
const DROPPING_PAUSE_MS: u64 = 5;

/// Who prints into a pipe.
#[derive(Debug, Clone)]
pub(super) struct OutputReader {
    pub(super) pool: Rc<Pool>,
    /// The worker; `None` for the zygote, and for forks that share a pipe.
    pub(super) number: Option<u64>,
    pub(super) allowance: Rc<Allowance>,
}

/// Logs what comes through a pipe until all have closed it.
pub(super) async fn relay(printer: OutputReader, output: OwnedFd) {
    let Ok(source) = Source::new(output, Interest::Read) else { return };
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        source.readable().await;
        match printer.take_in(&source, &mut buffer, READS_A_TURN) {
            ControlFlow::Break(Errno::AGAIN) => source.clear_readable(),
            ControlFlow::Break(_) => break,
            ControlFlow::Continue(()) if printer.allowance.is_shut() => {
                sleep(DROPPING_PAUSE_MS).await;
            }
            ControlFlow::Continue(()) => yield_now().await,
        }
    }
    printer.end(buffer);
}

/// Logs what is in the pipe and unread; it does not block.
pub(super) fn log_rest(printer: &OutputReader, output: &OwnedFd) {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let _ = printer.take_in(output, &mut buffer, LAST_READS);
    printer.end(buffer);
}

impl OutputReader {
    /// Reads at most so often; stops at an error, and at the end as at `EPIPE`.
    fn take_in(&self, output: impl AsFd, buffer: &mut Vec<u8>, reads: usize) -> ControlFlow<Errno> {
        let mut outcome = ControlFlow::Continue(());
        for _ in 0..reads {
            match rustix::io::read(&output, spare_capacity(buffer)) {
                Ok(0) => outcome = ControlFlow::Break(Errno::PIPE),
                Ok(_) => self.log_lines(buffer),
                Err(Errno::INTR) => {}
                Err(error) => outcome = ControlFlow::Break(error),
            }
            if outcome.is_break() {
                break;
            }
        }
        self.pool.error_log.flush();
        outcome
    }

    fn end(&self, mut buffer: Vec<u8>) {
        if !buffer.is_empty() {
            buffer.push(b'\n');
            self.log_lines(&mut buffer);
        }
        if self.number.is_some()
            && let Some(dropped) = self.allowance.take_all_dropped()
        {
            self.add(&self.allowance.tell(dropped));
        }
        self.pool.error_log.flush();
    }

    fn log_lines(&self, buffer: &mut Vec<u8>) {
        // A line longer than the buffer is cut rather than waited for.
        let end = match memchr::memrchr(b'\n', buffer) {
            Some(end) => end + 1,
            None if buffer.len() == buffer.capacity() => buffer.len(),
            None => return,
        };
        let words = String::from_utf8_lossy(&buffer[..end]);
        match self.number {
            Some(number) => {
                self.pool.with_worker(number, |worker| worker.keep_words(words.trim_end()));
            }
            None => self.pool.manager.borrow_mut().keep_words(words.trim_end()),
        }
        // Empty lines cost as much to read and are not worth writing.
        for line in buffer[..end].split(|&byte| byte == b'\n') {
            if self.allowance.admit(line.len()) && !line.is_empty() {
                self.add(&String::from_utf8_lossy(line));
            }
        }
        buffer.drain(..end);
    }

    fn add(&self, text: &str) {
        let (mut worker, mut request) = (None, None);
        if let Some(number) = self.number {
            self.pool.with_worker(number, |found| {
                worker = found.process.pid;
                request = found.request_id(Tag::default());
            });
        }
        let app = Some(self.pool.settings.app.as_str());
        let event = LogEvent { app, worker, request, reason: None, text };
        self.pool.error_log.add(Level::Warn, event);
    }
}
