//! [`FileCompressor`]: compresses static files, one after the other, on threads for disks and computations.
//!
//! Called by [`crate::files`] for a file that a client would take compressed; `CompressedFiles` keeps the
//! outcome. Invariants: no request waits for a compression; an app compresses at most one file at a time in
//! each thread that serves it; what does not fit the queue is left to later requests, and what waits when the
//! app is closed is dropped.

use outboard_http_semantics::Coding;
use outboard_page_cache::compressed;
use outboard_reactor::{are_cpu_threads_busy, on_cpu_thread, on_disk_thread, spawn};
use outboard_static_files::{Entry, Uncompressed};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// The number of files that wait at most, each with its open file or its bytes: those of several pages.
const WAITING_MAX: usize = 128;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FileCompressor {
    waiting: RefCell<VecDeque<Uncompressed>>,
    is_running: Cell<bool>,
}

impl FileCompressor {
    /// Compresses a file in the background, unless that is under way or too much waits already.
    pub(crate) fn push(self: &Rc<Self>, entry: &Entry, coding: Coding) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= WAITING_MAX || are_cpu_threads_busy() {
            return;
        }
        let Some(file) = entry.compression(coding) else { return };
        waiting.push_back(file);
        if !self.is_running.replace(true) {
            spawn(run(Rc::downgrade(self)));
        }
    }

    fn next(&self) -> Option<Uncompressed> {
        let next = self.waiting.borrow_mut().pop_front();
        self.is_running.set(next.is_some());
        next
    }
}

async fn run(compressor: Weak<FileCompressor>) {
    while let Some(file) = compressor.upgrade().and_then(|compressor| compressor.next()) {
        compress(file).await;
    }
}

async fn compress(file: Uncompressed) {
    // Without descriptors, or if the file has changed, a later request takes it on again.
    let Ok(unread) = file.unread() else { return };
    let Some(bytes) = on_disk_thread(move || unread.read()).await else { return };
    let coding = file.coding();
    file.keep(on_cpu_thread(move || compressed(coding, &bytes)).await);
}

#[cfg(test)]
mod tests;
