//! Where writes become lasting: decided, journalled, synced, put into the levels, in this order.
//!
//! Runs on the thread of a namespace's write lane, or, when that takes no longer than handing the
//! batch over would, on the loop's own (in synchronous mode always). A batch
//! is one frame of the journal and, with durability `always`, one fsync. Invariants: nothing is
//! visible to readers before it is as durable as promised; when the journal cannot be written,
//! nothing of the batch has happened.

use crate::change::{Write, Written};
use crate::error::{OpenError, StoreError};
use crate::journal::{self, Ahead, Flaw, Frame, Journal, replay, segment_path};
use crate::keeper::{self, Keeper};
use crate::levels::{Blocks, Levels, is_full};
use crate::record::{Record, unix_ms};
use crate::settings::Durability;
use crate::syncer::Syncer;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most bytes of a batch that is committed by whoever asks.
const QUICK_BYTES: usize = 256 << 10;
/// A copy into the operating system's memory that takes longer has waited for a disk.
const COPY_MOST: Duration = Duration::from_millis(1);

/// The writing half of a namespace on disk.
pub(crate) struct Committer {
    levels: Arc<Levels>,
    journal: Journal,
    keeper: Option<Keeper>,
    syncer: Option<Syncer>,
    ahead: Option<Ahead>,
    folder: PathBuf,
    durability: Durability,
    buffer_bytes: u64,
    next_version: u64,
    frame: Frame,
    /// While files are being written and synced behind, appending waits for that here.
    is_held_up: bool,
    /// An fsync failed: what is on the disk is unknown until it is read anew.
    broken: Option<StoreError>,
}

/// What opening a namespace found.
pub(crate) struct Opened {
    pub(crate) committer: Committer,
    pub(crate) levels: Arc<Levels>,
    /// Sentences about files that are not as they were written.
    pub(crate) findings: Vec<String>,
}

impl Committer {
    /// Opens the namespace in `folder`, and brings what its journal has into the levels.
    ///
    /// # Errors
    /// The folder cannot be used or is damaged beyond reading.
    pub(crate) fn open(
        folder: &Path,
        durability: Durability,
        buffer_bytes: u64,
        blocks: &Blocks,
    ) -> Result<Opened, OpenError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| OpenError::Io { path, source }
        };
        let journals = folder.join("journal");
        std::fs::create_dir_all(&journals).map_err(at(&journals))?;
        let levels = Arc::new(Levels::open(&folder.join("levels"), blocks)?);
        let segments = journal::segments(&journals).map_err(at(&journals))?;
        let mut findings = Vec::new();
        let mut highest = levels.persisted_version().unwrap_or(0);
        for number in &segments {
            let path = segment_path(&journals, *number);
            highest = highest.max(bring_in(&path, &levels, &mut findings).map_err(at(&path))?);
        }
        let last = segments.last().copied().unwrap_or(0);
        let journal = Journal::create(&journals, last + 1, buffer_bytes + (buffer_bytes >> 2));
        let journal = journal.map_err(at(&journals))?;
        levels.seal();
        if keeper::flush(&levels, &journals, last).is_err() {
            findings.push(format!("what is in {} stays there for now", journals.display()));
        }
        let committer = Self {
            levels: levels.clone(),
            journal,
            keeper: None,
            syncer: None,
            ahead: None,
            folder: journals,
            durability,
            buffer_bytes,
            next_version: highest + 1,
            frame: Frame::new(),
            is_held_up: false,
            broken: None,
        };
        Ok(Opened { committer, levels, findings })
    }

    /// Has the keeper, whoever makes the next segment, and with durability `interval` the syncer,
    /// work beside it.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start_helpers(&mut self) -> io::Result<()> {
        self.keeper = Some(Keeper::start(self.levels.clone(), &self.folder)?);
        self.ahead = Some(Ahead::start(&self.journal)?);
        if let Durability::Interval(every_ms) = self.durability {
            self.syncer = Some(Syncer::start(every_ms, self.journal.file())?);
        }
        Ok(())
    }

    /// Whether committing this batch is a copy into the operating system's memory and no more: no
    /// fsync is promised, nothing has to be looked up, no buffer is full. While files are written and
    /// synced behind, that is so until a copy has waited.
    pub(crate) fn is_quick(&mut self, batch: &[Write]) -> bool {
        let (Some(syncer), Some(keeper)) = (&self.syncer, &self.keeper) else { return false };
        self.is_held_up &= syncer.is_syncing() || keeper.is_busy();
        !self.is_held_up
            && self.broken.is_none()
            && self.levels.buffered_bytes() < self.buffer_bytes
            && keeper.has_room(&self.levels)
            && batch.iter().map(Write::bytes).sum::<usize>() <= QUICK_BYTES
            && !batch.iter().any(Write::looks)
    }

    /// Commits a batch; one result for each write, in order.
    pub(crate) fn commit(&mut self, batch: &[Write]) -> Vec<Result<Written, StoreError>> {
        if let Err(error) = self.make_ready() {
            return batch.iter().map(|_| Err(error.clone())).collect();
        }
        let mut decided = self.decide(batch);
        if let Err(error) = self.make_lasting() {
            for result in decided.iter_mut().filter(|result| result.is_ok()) {
                *result = Err(error.clone());
            }
            return decided.into_iter().map(|result| result.map(|(_, written)| written)).collect();
        }
        let pairs = batch.iter().zip(decided);
        pairs
            .map(|(write, result)| {
                let (version, written) = result?;
                self.levels.put(&write.id, version, written.record.as_ref());
                Ok(written)
            })
            .collect()
    }

    /// What each write comes to, into the frame.
    fn decide(&mut self, batch: &[Write]) -> Vec<Result<(u64, Written), StoreError>> {
        let now_ms = unix_ms();
        self.frame.clear();
        // What this batch has done so far, which the levels do not know yet.
        let mut ahead: HashMap<&[u8], Option<Record>> = HashMap::new();
        let any_looks = batch.iter().any(Write::looks);
        let mut results = Vec::with_capacity(batch.len());
        for write in batch {
            let present = match (write.looks(), ahead.get(&*write.id)) {
                (false, _) => Ok(None),
                (true, Some(record)) => Ok(record.clone()),
                (true, None) => self.levels.get(&write.id),
            };
            let version = self.next_version;
            let result = present.and_then(|present| {
                let record = write.apply(present.as_ref(), version, now_ms)?;
                let existed = write.looks().then(|| present.is_some_and(|r| r.is_alive(now_ms)));
                Ok((version, Written { record, existed }))
            });
            if let Ok((_, written)) = &result {
                self.next_version += 1;
                self.frame.push(&write.id, version, written.record.as_ref());
                if any_looks {
                    ahead.insert(&write.id, written.record.clone());
                }
            }
            results.push(result);
        }
        results
    }

    /// Journals the frame and syncs it if that was promised.
    fn make_lasting(&mut self) -> Result<(), StoreError> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let at = self.folder.display().to_string();
        let began = Instant::now();
        self.journal.append(&mut self.frame).map_err(|error| match is_full(&error) {
            true => StoreError::Full,
            false => StoreError::Failed(format!("{at}: {error}")),
        })?;
        self.is_held_up |= began.elapsed() > COPY_MOST;
        match (self.durability, &self.syncer) {
            (Durability::Always, _) => self.journal.sync().map_err(|error| {
                // fsync(2) reports a failure once; whoever asks again would be told lies.
                let error = StoreError::Failed(format!("{at}: {error}; restart the server"));
                self.broken = Some(error.clone());
                error
            }),
            (_, Some(syncer)) => syncer.written(&at).inspect_err(|error| {
                self.broken = Some(error.clone());
            }),
            (_, None) => Ok(()),
        }
    }

    /// Seals the buffer when it is full, and waits if the keeper is behind.
    fn make_ready(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        if self.levels.buffered_bytes() >= self.buffer_bytes {
            self.seal()?;
        }
        match &self.keeper {
            Some(keeper) => keeper.room(&self.levels),
            None => Ok(()),
        }
    }

    /// What is in memory is moved to a sorted file next.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn seal(&mut self) -> Result<(), StoreError> {
        let sealed = self.journal.number();
        let next = match self.ahead.as_ref().and_then(Ahead::take) {
            Some(next) => Ok(next),
            None => self.journal.next(),
        };
        let next = match next {
            Ok(next) => next,
            // The present segment goes on while there is no room for another.
            Err(error) if is_full(&error) => return Ok(()),
            Err(error) => {
                return Err(StoreError::Failed(format!("{}: {error}", self.folder.display())));
            }
        };
        // With durability `always` each frame was synced before it was answered.
        if let Some(syncer) = &self.syncer {
            syncer.follow(next.file());
        }
        self.journal = next;
        if let Some(ahead) = &self.ahead {
            ahead.follow(&self.journal);
        }
        self.levels.seal();
        match &self.keeper {
            Some(keeper) => keeper.sealed(sealed),
            None => {
                keeper::flush(&self.levels, &self.folder, sealed)?;
                self.levels.merge()?;
            }
        }
        Ok(())
    }

    /// Waits until everything is on the disk, whatever was promised.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.journal.sync()
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // A failure is nothing new: the operating system has it all the same.
        let _ = self.sync();
    }
}

/// Brings a segment into the levels; the highest version in it.
fn bring_in(path: &Path, levels: &Levels, findings: &mut Vec<String>) -> io::Result<u64> {
    let mut highest = 0;
    let flaws = replay::<io::Error>(path, |entry| {
        levels.put(entry.id, entry.version, entry.record.as_ref());
        highest = highest.max(entry.version);
        Ok(())
    })?;
    let shown = path.display();
    let mut is_damaged = false;
    for flaw in flaws {
        findings.push(match flaw {
            Flaw::Cut { at } => {
                format!(
                    "{shown} ends in the middle of a write, at byte {at}: that write is dropped"
                )
            }
            Flaw::Damage { at, bytes } => {
                is_damaged = true;
                format!(
                    "{shown} is damaged: {bytes} bytes from byte {at} on are lost; a copy is kept"
                )
            }
        });
    }
    if is_damaged {
        std::fs::copy(path, path.with_extension("damaged"))?;
    }
    Ok(highest)
}
