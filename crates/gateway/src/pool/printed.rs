//! What PHP's processes print, in the log line by line.
//!
//! Spawned by the keeper for each pipe. When a worker dies while it starts, the keeper has the rest
//! read first: the news of its end may come before its last words, and these say why.

use super::Pool;
use crate::log::{Event as LogEvent, Level};
use outboard_reactor::{Interest, Source};
use outboard_ring::frame::Tag;
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::rc::Rc;

/// What is read at a time, and the longest line that is not cut.
const BUFFER_BYTES: usize = 4096;

/// Logs what comes through the pipe of worker `number`, or of the zygote, until all have closed it.
pub(super) async fn relay(pool: Rc<Pool>, number: Option<u64>, output: OwnedFd) {
    let Ok(source) = Source::new(output, Interest::Read) else { return };
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        source.readable().await;
        match rustix::io::read(&source, spare_capacity(&mut buffer)) {
            Ok(0) => break,
            Ok(_) => log_lines(&pool, number, &mut buffer),
            Err(Errno::AGAIN) => source.clear_readable(),
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    log_last_line(&pool, number, buffer);
}

/// Logs what is in the pipe and unread; it does not block.
pub(super) fn log_rest(pool: &Pool, number: u64, output: &OwnedFd) {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    while let Ok(1..) = rustix::io::read(output, spare_capacity(&mut buffer)) {
        log_lines(pool, Some(number), &mut buffer);
    }
    log_last_line(pool, Some(number), buffer);
}

fn log_last_line(pool: &Pool, number: Option<u64>, mut buffer: Vec<u8>) {
    if !buffer.is_empty() {
        buffer.push(b'\n');
        log_lines(pool, number, &mut buffer);
    }
}

fn log_lines(pool: &Pool, number: Option<u64>, buffer: &mut Vec<u8>) {
    // A line longer than the buffer is cut rather than waited for.
    let end = match memchr::memrchr(b'\n', buffer) {
        Some(end) => end + 1,
        None if buffer.len() == buffer.capacity() => buffer.len(),
        None => return,
    };
    let (mut worker, mut request) = (None, None);
    if let Some(number) = number {
        pool.with_worker(number, |found| {
            worker = found.process.pid;
            request = found.request_id(Tag::default());
            found.keep_words(String::from_utf8_lossy(&buffer[..end]).trim_end());
        });
    }
    for line in buffer[..end].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let text = String::from_utf8_lossy(line);
        let event =
            LogEvent { app: Some(&pool.settings.app), worker, request, reason: None, text: &text };
        pool.error_log.write(Level::Warn, event);
    }
    buffer.drain(..end);
}
