//! Writes that wait for the committer.
//!
//! Used by [`super::Disk`]. Invariant: the cache has every write before its caller gets the result.

use super::read_cache::ReadCache;
use crate::batch_worker::BatchWorker;
use crate::change::{Write, Written};
use crate::committer::Committer;
use crate::error::StoreError;
use crate::oneshot;
use crate::queue::{Queue, ResultReceiver, ResultSender, Waiting};
use crate::settings::Settings;
use crate::types::Stats;
use outboard_reactor::{Event, blocking, spawn};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// The most bytes of one commit: the writes behind it wait for it, and a frame has a 32-bit length.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_WRITES: usize = 4096;

type WriteResult = Result<Written, StoreError>;

/// The queue in front of the committer.
pub(super) struct Writes {
    queue: Queue<Write, Written>,
    filled: Event,
    seal: RefCell<Option<ResultSender<()>>>,
    is_closed: Cell<bool>,
    /// The loop goes on after the end, and must not wait for the threads.
    ends_in_background: Cell<bool>,
    written: Cell<u64>,
    commits: Cell<u64>,
}

/// The committer, and the thread that runs commits that may block.
struct Writer {
    committer: Arc<Mutex<Committer>>,
    worker: BatchWorker<Work, Done>,
}

impl Writer {
    async fn commit(&self, batch: Vec<Write>) -> Option<(Vec<Write>, Vec<WriteResult>)> {
        if let Ok(mut committer) = self.committer.try_lock()
            && committer.can_commit_inline(&batch)
        {
            let results = committer.commit(&batch);
            return Some((batch, results));
        }
        match self.worker.run(Work::Commit(batch)).await? {
            Done::Committed(batch, results) => Some((batch, results)),
            Done::Sealed(_) => None,
        }
    }

    async fn seal(&self) -> Result<(), StoreError> {
        match self.worker.run(Work::Seal).await {
            Some(Done::Sealed(sealed)) => sealed,
            _ => Err(StoreError::thread_ended()),
        }
    }
}

/// A job for the thread.
enum Work {
    Commit(Vec<Write>),
    Seal,
}

/// The outcome of [`Work`].
enum Done {
    Committed(Vec<Write>, Vec<WriteResult>),
    Sealed(Result<(), StoreError>),
}

impl Writes {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(super) fn start(
        committer: Committer,
        read_cache: Rc<RefCell<ReadCache>>,
        settings: &Settings,
    ) -> io::Result<Rc<Self>> {
        // One task uses both the worker and the lock, so the lock is never contended.
        let committer = Arc::new(Mutex::new(committer));
        let of_thread = committer.clone();
        let worker = BatchWorker::start("kv-write", move |work| {
            let mut committer = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
            match work {
                Work::Commit(batch) => {
                    let results = committer.commit(&batch);
                    Done::Committed(batch, results)
                }
                Work::Seal => Done::Sealed(committer.seal()),
            }
        })?;
        let writes = Rc::new(Self {
            queue: Queue::new(settings, settings.writes_waiting),
            filled: Event::default(),
            seal: RefCell::default(),
            is_closed: Cell::new(false),
            ends_in_background: Cell::new(false),
            written: Cell::new(0),
            commits: Cell::new(0),
        });
        spawn(writes.clone().feed(Writer { committer, worker }, read_cache));
        Ok(writes)
    }

    /// Commits a write.
    pub(super) async fn write(&self, write: Write) -> WriteResult {
        self.queue(write)?.receive().await
    }

    /// Commits writes; one result for each, in order.
    pub(super) async fn write_many(&self, writes: Vec<Write>) -> Vec<WriteResult> {
        let queued: Vec<_> = writes.into_iter().map(|write| self.queue(write)).collect();
        let mut results = Vec::with_capacity(queued.len());
        for reply in queued {
            results.push(match reply {
                Ok(reply) => reply.receive().await,
                Err(error) => Err(error),
            });
        }
        results
    }

    fn queue(&self, write: Write) -> Result<ResultReceiver<Written>, StoreError> {
        self.queue.make_room()?;
        let receiver = self.queue.push(write);
        self.filled.set();
        Ok(receiver)
    }

    /// Seals the buffer.
    pub(super) async fn seal(&self) -> Result<(), StoreError> {
        let (reply, receiver) = oneshot::channel();
        if let Some(other) = self.seal.replace(Some(reply)) {
            other.send(Err(StoreError::Overloaded));
        }
        self.filled.set();
        receiver.receive().await
    }

    /// At its end the threads end while the loop goes on.
    pub(super) fn end_in_background(&self) {
        self.ends_in_background.set(true);
    }

    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.filled.set();
    }

    pub(super) fn add_stats(&self, stats: &mut Stats) {
        stats.writes = self.written.get();
        stats.writes_refused = self.queue.refused();
        stats.writes_waiting = self.queue.len() as u64;
        stats.commits = self.commits.get();
    }

    fn take_batch(&self) -> (Vec<Write>, Vec<ResultSender<Written>>) {
        let (mut count, mut bytes) = (0, 0);
        let batch = self.queue.take_while(|write| {
            let is_room = count < BATCH_WRITES && bytes < BATCH_BYTES;
            count += 1;
            bytes += write.bytes();
            is_room
        });
        batch.into_iter().map(|Waiting { job, reply, .. }| (job, reply)).unzip()
    }

    async fn feed(self: Rc<Self>, writer: Writer, read_cache: Rc<RefCell<ReadCache>>) {
        while !self.is_closed.get() {
            if let Some(reply) = self.seal.take() {
                reply.send(writer.seal().await);
            }
            let (batch, replies) = self.take_batch();
            if batch.is_empty() {
                self.filled.wait().await;
                continue;
            }
            let Some((batch, results)) = writer.commit(batch).await else {
                replies.into_iter().for_each(|reply| reply.send(Err(StoreError::thread_ended())));
                continue;
            };
            self.commits.set(self.commits.get() + 1);
            self.written.set(self.written.get() + batch.len() as u64);
            {
                let mut read_cache = read_cache.borrow_mut();
                for (write, result) in batch.iter().zip(&results) {
                    if let Ok(written) = result {
                        read_cache.written(&write.id, written);
                    }
                }
            }
            replies.into_iter().zip(results).for_each(|(reply, result)| reply.send(result));
        }
        if self.ends_in_background.get() {
            blocking(move || drop(writer)).await;
        }
    }
}
