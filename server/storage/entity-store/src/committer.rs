//! The committer of a namespace: it decides, journals, syncs and applies writes, in this order.
//!
//! Runs on a thread of its own; on the loop when a commit takes no longer than handing it over, and
//! always in synchronous mode. A batch is one frame of the journal and, with durability `always`,
//! one fsync. Invariants: readers see a write only once it is as durable as promised; if the
//! journal cannot be written, nothing of the batch is applied.

use crate::change::{Write, Written};
use crate::compactor::{self, Compactor};
use crate::error::{OpenError, StoreError};
use crate::journal::{self, Flaw, Frame, Segment, SegmentPreallocator, replay, segment_path};
use crate::levels::{Blocks, Levels, is_full};
use crate::record::{Record, unix_ms};
use crate::settings::Durability;
use crate::syncer::Syncer;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest batch that is committed on the loop.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// A write to the page cache that takes longer has waited for a disk.
const COPY_MAX: Duration = Duration::from_millis(1);

/// The writing half of a namespace on disk.
pub(crate) struct Committer {
    levels: Arc<Levels>,
    journal: Segment,
    compactor: Option<Compactor>,
    syncer: Option<Syncer>,
    preallocator: Option<SegmentPreallocator>,
    folder: PathBuf,
    durability: Durability,
    buffer_bytes: u64,
    next_version: u64,
    frame: Frame,
    /// Appending had to wait for the disk during the present flush or sync.
    is_stalled: bool,
    /// Set when an fsync has failed: the content of the disk is unknown until the next start.
    failure: Option<StoreError>,
}

/// The result of opening a namespace.
pub(crate) struct Opened {
    pub(crate) committer: Committer,
    pub(crate) levels: Arc<Levels>,
    /// Messages about damaged files.
    pub(crate) findings: Vec<String>,
}

impl Committer {
    /// Opens the namespace in `folder` and applies its journal to the levels.
    ///
    /// # Errors
    /// The folder cannot be used or is damaged.
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
            highest =
                highest.max(replay_segment(&path, &levels, &mut findings).map_err(at(&path))?);
        }
        let last = segments.last().copied().unwrap_or(0);
        let journal = Segment::create(&journals, last + 1, buffer_bytes + (buffer_bytes >> 2));
        let journal = journal.map_err(at(&journals))?;
        levels.seal();
        if compactor::flush(&levels, &journals, last).is_err() {
            findings.push(format!("{} could not be flushed and stays for now", journals.display()));
        }
        let committer = Self {
            levels: levels.clone(),
            journal,
            compactor: None,
            syncer: None,
            preallocator: None,
            folder: journals,
            durability,
            buffer_bytes,
            next_version: highest + 1,
            frame: Frame::new(),
            is_stalled: false,
            failure: None,
        };
        Ok(Opened { committer, levels, findings })
    }

    /// Starts the compactor, the preallocator and, with durability `interval`, the syncer.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub(crate) fn start_threads(&mut self) -> io::Result<()> {
        self.compactor = Some(Compactor::start(self.levels.clone(), &self.folder)?);
        self.preallocator = Some(SegmentPreallocator::start(&self.journal)?);
        if let Durability::Interval(every_ms) = self.durability {
            self.syncer = Some(Syncer::start(every_ms, self.journal.file())?);
        }
        Ok(())
    }

    /// Whether the commit is no more than a copy into the page cache: no fsync is promised, nothing
    /// is looked up and no buffer is full. During a flush or sync this holds until a copy has
    /// waited.
    pub(crate) fn can_commit_inline(&mut self, batch: &[Write]) -> bool {
        let (Some(syncer), Some(compactor)) = (&self.syncer, &self.compactor) else { return false };
        self.is_stalled &= syncer.is_syncing() || compactor.is_busy();
        !self.is_stalled
            && self.failure.is_none()
            && self.levels.buffered_bytes() < self.buffer_bytes
            && compactor.has_room(&self.levels)
            && batch.iter().map(Write::bytes).sum::<usize>() <= INLINE_BYTES_MAX
            && !batch.iter().any(Write::depends_on_present)
    }

    /// Commits a batch; one result for each write, in order.
    pub(crate) fn commit(&mut self, batch: &[Write]) -> Vec<Result<Written, StoreError>> {
        if let Err(error) = self.ensure_room() {
            return batch.iter().map(|_| Err(error.clone())).collect();
        }
        let mut decided = self.decide(batch);
        if let Err(error) = self.persist() {
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

    /// Decides the result of each write, and adds it to the frame.
    fn decide(&mut self, batch: &[Write]) -> Vec<Result<(u64, Written), StoreError>> {
        let now_ms = unix_ms();
        self.frame.clear();
        // Effects of this batch, which are not in the levels yet.
        let mut decided: HashMap<&[u8], Option<Record>> = HashMap::new();
        let any_depends = batch.iter().any(Write::depends_on_present);
        let mut results = Vec::with_capacity(batch.len());
        for write in batch {
            let present = match (write.depends_on_present(), decided.get(&*write.id)) {
                (false, _) => Ok(None),
                (true, Some(record)) => Ok(record.clone()),
                (true, None) => self.levels.get(&write.id),
            };
            let version = self.next_version;
            let result = present.and_then(|present| {
                let record = write.apply(present.as_ref(), version, now_ms)?;
                let existed =
                    write.depends_on_present().then(|| present.is_some_and(|r| r.is_alive(now_ms)));
                Ok((version, Written { record, existed }))
            });
            if let Ok((_, written)) = &result {
                self.next_version += 1;
                self.frame.push(&write.id, version, written.record.as_ref());
                if any_depends {
                    decided.insert(&write.id, written.record.clone());
                }
            }
            results.push(result);
        }
        results
    }

    /// Journals the frame, and syncs it if that is promised.
    fn persist(&mut self) -> Result<(), StoreError> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let at = self.folder.display().to_string();
        let began = Instant::now();
        self.journal.append(&mut self.frame).map_err(|error| match is_full(&error) {
            true => StoreError::Full,
            false => StoreError::Failed(format!("{at}: {error}")),
        })?;
        self.is_stalled |= began.elapsed() > COPY_MAX;
        match (self.durability, &self.syncer) {
            (Durability::Always, _) => self.journal.sync().map_err(|error| {
                // fsync(2) reports a failure only once, so no later success can be trusted.
                let error = StoreError::Failed(format!("{at}: {error}; restart the server"));
                self.failure = Some(error.clone());
                error
            }),
            (_, Some(syncer)) => syncer.written(&at).inspect_err(|error| {
                self.failure = Some(error.clone());
            }),
            (_, None) => Ok(()),
        }
    }

    /// Seals the buffer when it is full, and waits if the compactor is behind.
    fn ensure_room(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        if self.levels.buffered_bytes() >= self.buffer_bytes {
            self.seal()?;
        }
        match &self.compactor {
            Some(compactor) => compactor.wait_for_room(&self.levels),
            None => Ok(()),
        }
    }

    /// Seals the buffer, so that it is moved to a sorted file next.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) fn seal(&mut self) -> Result<(), StoreError> {
        let sealed = self.journal.number();
        let next = match self.preallocator.as_ref().and_then(SegmentPreallocator::take) {
            Some(next) => Ok(next),
            None => self.journal.next(),
        };
        let next = match next {
            Ok(next) => next,
            // The present segment is used until there is room for another.
            Err(error) if is_full(&error) => return Ok(()),
            Err(error) => {
                return Err(StoreError::Failed(format!("{}: {error}", self.folder.display())));
            }
        };
        // With durability `always` each frame is synced already.
        if let Some(syncer) = &self.syncer {
            syncer.add_file(next.file());
        }
        self.journal = next;
        if let Some(preallocator) = &self.preallocator {
            preallocator.prepare_after(&self.journal);
        }
        self.levels.seal();
        match &self.compactor {
            Some(compactor) => compactor.sealed(sealed),
            None => {
                compactor::flush(&self.levels, &self.folder, sealed)?;
                self.levels.merge()?;
            }
        }
        Ok(())
    }

    /// Waits until everything is on the disk, whatever the durability.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.journal.sync()
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // After a failure the data is still in the page cache, as it was before.
        let _ = self.sync();
    }
}

/// Applies a segment to the levels; returns the highest version in it.
fn replay_segment(path: &Path, levels: &Levels, findings: &mut Vec<String>) -> io::Result<u64> {
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
            Flaw::Truncated { at } => {
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

#[cfg(test)]
mod tests;
