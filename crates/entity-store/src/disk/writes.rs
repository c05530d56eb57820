//! The writes that wait for the committer.

use super::Remembered;
use crate::change::{Write, Written};
use crate::committer::Committer;
use crate::error::StoreError;
use crate::lane::Lane;
use crate::namespace::Stats;
use crate::queue::{Queue, Waiting};
use crate::reply::Reply;
use crate::settings::Settings;
use outboard_reactor::{Event, spawn};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes that are committed at once: what comes behind should not wait for long, and a frame
/// has to fit its length.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_WRITES: usize = 4096;

type Answer = Result<Written, StoreError>;
type SealReply = Rc<Reply<Result<(), StoreError>>>;

/// The queue before the committer.
pub(super) struct Writes {
    queue: Queue<Write, Written>,
    filled: Event,
    seal: RefCell<Option<SealReply>>,
    is_closed: Cell<bool>,
    written: Cell<u64>,
    commits: Cell<u64>,
}

/// The committer, and the thread that runs it when that may take a while.
struct Writer {
    committer: Arc<Mutex<Committer>>,
    lane: Lane<Work, Done>,
}

impl Writer {
    async fn commit(&self, batch: Vec<Write>) -> Option<(Vec<Write>, Vec<Answer>)> {
        if let Ok(mut committer) = self.committer.try_lock()
            && committer.is_quick(&batch)
        {
            let answers = committer.commit(&batch);
            return Some((batch, answers));
        }
        match self.lane.run(Work::Commit(batch)).await? {
            Done::Committed(batch, answers) => Some((batch, answers)),
            Done::Sealed(_) => None,
        }
    }

    async fn seal(&self) -> Result<(), StoreError> {
        match self.lane.run(Work::Seal).await {
            Some(Done::Sealed(sealed)) => sealed,
            _ => Err(StoreError::lost()),
        }
    }
}

/// What the thread is given, and gives back.
enum Work {
    Commit(Vec<Write>),
    Seal,
}

enum Done {
    Committed(Vec<Write>, Vec<Answer>),
    Sealed(Result<(), StoreError>),
}

impl Writes {
    /// Gives the committer a thread and begins to feed it.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(super) fn start(
        committer: Committer,
        remembered: Rc<RefCell<Remembered>>,
        settings: &Settings,
    ) -> io::Result<Rc<Self>> {
        // Whoever commits has the lane to itself, so nobody ever waits for the lock.
        let committer = Arc::new(Mutex::new(committer));
        let theirs = committer.clone();
        let lane = Lane::start("kv-write", move |work| {
            let mut committer = theirs.lock().unwrap_or_else(PoisonError::into_inner);
            match work {
                Work::Commit(batch) => {
                    let answers = committer.commit(&batch);
                    Done::Committed(batch, answers)
                }
                Work::Seal => Done::Sealed(committer.seal()),
            }
        })?;
        let writes = Rc::new(Self {
            queue: Queue::new(settings, settings.writes_waiting),
            filled: Event::default(),
            seal: RefCell::default(),
            is_closed: Cell::new(false),
            written: Cell::new(0),
            commits: Cell::new(0),
        });
        spawn(writes.clone().feed(Writer { committer, lane }, remembered));
        Ok(writes)
    }

    /// Has a write committed.
    pub(super) async fn write(&self, write: Write) -> Answer {
        let reply = self.queue(write)?;
        reply.wait().await
    }

    /// Has writes committed; one answer for each, in order.
    pub(super) async fn write_many(&self, writes: Vec<Write>) -> Vec<Answer> {
        let queued: Vec<_> = writes.into_iter().map(|write| self.queue(write)).collect();
        let mut answers = Vec::with_capacity(queued.len());
        for reply in queued {
            answers.push(match reply {
                Ok(reply) => reply.wait().await,
                Err(error) => Err(error),
            });
        }
        answers
    }

    fn queue(&self, write: Write) -> Result<Rc<Reply<Answer>>, StoreError> {
        self.queue.make_room()?;
        let reply = self.queue.push(write);
        self.filled.set();
        Ok(reply)
    }

    /// Has the buffer sealed.
    pub(super) async fn seal(&self) -> Result<(), StoreError> {
        let reply = Reply::new();
        if let Some(other) = self.seal.replace(Some(reply.clone())) {
            other.give(Err(StoreError::Overloaded));
        }
        self.filled.set();
        reply.wait().await
    }

    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.filled.set();
    }

    pub(super) fn tell(&self, stats: &mut Stats) {
        stats.writes = self.written.get();
        stats.writes_refused = self.queue.refused();
        stats.writes_waiting = self.queue.len() as u64;
        stats.commits = self.commits.get();
    }

    fn take_batch(&self) -> (Vec<Write>, Vec<Rc<Reply<Answer>>>) {
        let (mut count, mut bytes) = (0, 0);
        let batch = self.queue.take_while(|write| {
            let is_room = count < BATCH_WRITES && bytes < BATCH_BYTES;
            count += 1;
            bytes += write.bytes();
            is_room
        });
        batch.into_iter().map(|Waiting { job, reply, .. }| (job, reply)).unzip()
    }

    async fn feed(self: Rc<Self>, writer: Writer, remembered: Rc<RefCell<Remembered>>) {
        while !self.is_closed.get() {
            if let Some(reply) = self.seal.take() {
                reply.give(writer.seal().await);
            }
            let (batch, replies) = self.take_batch();
            if batch.is_empty() {
                self.filled.wait().await;
                continue;
            }
            let Some((batch, answers)) = writer.commit(batch).await else {
                replies.iter().for_each(|reply| reply.give(Err(StoreError::lost())));
                continue;
            };
            self.commits.set(self.commits.get() + 1);
            self.written.set(self.written.get() + batch.len() as u64);
            {
                let mut remembered = remembered.borrow_mut();
                for (write, answer) in batch.iter().zip(&answers) {
                    if let Ok(written) = answer {
                        remembered.written(&write.id, written);
                    }
                }
            }
            replies.iter().zip(answers).for_each(|(reply, answer)| reply.give(answer));
        }
    }
}
