//! Records in Redis: their keys, their encoding, and ordered scans.
//!
//! Runs on the threads of [`super`]. A record is one string under prefix, namespace, `:` and its
//! key; a write is one call of `write.lua`. Invariant: a write that is repeated, because its reply
//! was lost, takes effect once.

use super::cluster::{Cluster, Command, CommandError, Operation};
use super::job::{Cursor, Job, JobOutput, TaggedWrite, Task};
use super::slots::slot;
use super::wire::command;
use crate::change::{Change, Condition, Written};
use crate::error::StoreError;
use crate::record::Record;
use crate::settings::RedisSettings;
use crate::types::Piece;
use outboard_resp::Value;
use std::collections::BTreeSet;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// Version, expiry and tag of the write.
const HEAD_BYTES: usize = 24;
/// Keys that a scan reads at once; it asks the nodes again for the keys after them.
const KEYS_BYTES_MAX: usize = 8 << 20;
/// Records of a scan that are read together.
const READ_BATCH: usize = 256;
/// `COUNT` of `SCAN`.
const SCAN_COUNT: &[u8] = b"1000";

/// The outcome of a job.
pub(crate) enum Outcome {
    /// The job is finished.
    Done(Result<JobOutput, StoreError>),
    /// The job may succeed later, and fails with this error at its deadline.
    Retry(Job, StoreError),
}

/// The connection of one thread to Redis.
pub(crate) struct Records {
    cluster: Cluster,
}

impl Records {
    pub(crate) fn new(settings: Arc<RedisSettings>) -> Self {
        Self { cluster: Cluster::new(settings) }
    }

    /// Runs jobs once; one outcome for each, in order.
    pub(crate) fn attempt(&mut self, jobs: Vec<Job>) -> Vec<Outcome> {
        let commands: Vec<Command> = jobs.iter().flat_map(commands).collect();
        let mut results = self.cluster.run(&commands).into_iter();
        let done = jobs.into_iter().map(|job| match job.task {
            Task::Scan { prefix, cursor, most_bytes } => {
                self.scan(prefix, cursor, most_bytes, job.deadline)
            }
            Task::Get { ref ids, .. } => {
                let results: Vec<_> = results.by_ref().take(ids.len()).collect();
                match retry_reason(&results) {
                    Some(why) => Outcome::Retry(job, why),
                    None => {
                        let found: Result<_, _> = results.into_iter().map(found).collect();
                        Outcome::Done(found.map(JobOutput::Got))
                    }
                }
            }
            Task::Write { ref writes, .. } => {
                let results: Vec<_> = results.by_ref().take(writes.len()).collect();
                match retry_reason(&results) {
                    Some(why) => Outcome::Retry(job, why),
                    None => {
                        let written = writes.iter().zip(results);
                        let written = written.map(|(write, result)| write_result(write, result));
                        Outcome::Done(Ok(JobOutput::Written(written.collect())))
                    }
                }
            }
        });
        done.collect()
    }

    fn scan(
        &mut self,
        prefix: Arc<[u8]>,
        mut cursor: Cursor,
        most_bytes: usize,
        deadline: Instant,
    ) -> Outcome {
        let start = cursor.start.clone();
        match self.read_piece(&prefix, &mut cursor, most_bytes) {
            Ok(piece) => {
                let is_over = cursor.is_last && cursor.keys.is_empty();
                Outcome::Done(Ok(JobOutput::Scanned(piece, (!is_over).then_some(cursor))))
            }
            Err(why @ StoreError::Unreachable(_)) => {
                let cursor = Cursor::new(start, cursor.end);
                Outcome::Retry(
                    Job { task: Task::Scan { prefix, cursor, most_bytes }, deadline },
                    why,
                )
            }
            Err(why) => Outcome::Done(Err(why)),
        }
    }

    /// Reads the next records of a scan.
    fn read_piece(
        &mut self,
        prefix: &[u8],
        cursor: &mut Cursor,
        most_bytes: usize,
    ) -> Result<Piece, StoreError> {
        let (mut piece, mut bytes) = (Piece::new(), 0);
        while bytes < most_bytes {
            if cursor.keys.is_empty() {
                if cursor.is_last {
                    break;
                }
                let looked = self.fetch_keys(prefix, cursor);
                looked.map_err(|error| StoreError::Unreachable(error.to_string()))?;
                continue;
            }
            let together = cursor.keys.len().min(READ_BATCH);
            let names: Vec<Box<[u8]>> = cursor.keys.drain(..together).collect();
            let gets: Vec<Command> = names.iter().map(|name| get(prefix, name)).collect();
            if let Some(name) = names.last() {
                cursor.start = Bound::Excluded(name.to_vec());
            }
            for (name, result) in names.into_iter().zip(self.cluster.run(&gets)) {
                // A key that was deleted meanwhile is skipped.
                if let Some(record) = found(result)? {
                    bytes += name.len() + record.value.len();
                    piece.push((name, record));
                }
            }
        }
        Ok(piece)
    }

    /// Reads the next keys. Nodes return keys in no order, so all of them are read and the first
    /// ones retained.
    fn fetch_keys(&mut self, prefix: &[u8], cursor: &mut Cursor) -> io::Result<()> {
        let pattern = pattern(prefix);
        let (mut names, mut bytes) = (BTreeSet::new(), 0);
        cursor.is_last = true;
        for node in self.cluster.primaries()? {
            let mut at = b"0".to_vec();
            loop {
                let scan = command(&[b"SCAN", &at, b"MATCH", &pattern, b"COUNT", SCAN_COUNT]);
                let mut reply =
                    self.cluster.ask(&node, &scan)?.into_array().unwrap_or_default().into_iter();
                at = reply.next().and_then(Value::into_bytes).unwrap_or_else(|| b"0".to_vec());
                let keys = reply.next().and_then(Value::into_array).unwrap_or_default();
                for key in keys.into_iter().filter_map(Value::into_bytes) {
                    let Some(name) = key.strip_prefix(prefix) else { continue };
                    if cursor.contains(name) && names.insert(Box::<[u8]>::from(name)) {
                        bytes += name.len();
                    }
                    while bytes > KEYS_BYTES_MAX
                        && let Some(last) = names.pop_last()
                    {
                        bytes -= last.len();
                        cursor.is_last = false;
                    }
                }
                if at == b"0" {
                    break;
                }
            }
        }
        cursor.keys = names.into_iter().collect();
        Ok(())
    }
}

fn commands(job: &Job) -> Vec<Command> {
    match &job.task {
        Task::Scan { .. } => Vec::new(),
        Task::Get { prefix, ids } => ids.iter().map(|id| get(prefix, id)).collect(),
        Task::Write { prefix, writes, copies } => {
            writes.iter().map(|write| script(prefix, write, *copies)).collect()
        }
    }
}

fn get(prefix: &[u8], id: &[u8]) -> Command {
    let key = [prefix, id].concat();
    Command { slot: slot(&key), operation: Operation::Command(command(&[b"GET", &key])), copies: 1 }
}

fn script(prefix: &[u8], write: &TaggedWrite, copies: u32) -> Command {
    let TaggedWrite { write, tag } = write;
    let key = [prefix, &write.id].concat();
    let ttl = |ttl_ms: &Option<u64>| ttl_ms.map_or_else(String::new, |ttl_ms| ttl_ms.to_string());
    let (change, operand, ttl) = match &write.change {
        Change::Put { value, ttl_ms } => ("put", value.to_vec(), ttl(ttl_ms)),
        Change::Delete => ("delete", Vec::new(), String::new()),
        Change::Increment { by, ttl_ms } => ("increment", by.to_string().into(), ttl(ttl_ms)),
    };
    let packed = |versions: &[u64]| versions.iter().flat_map(|v| v.to_le_bytes()).collect();
    let (condition, expected) = match &write.condition {
        Condition::Always => ("always", Vec::new()),
        Condition::Absent => ("absent", Vec::new()),
        Condition::Present => ("present", Vec::new()),
        Condition::VersionIn(versions) => ("version_in", packed(versions)),
        Condition::VersionNotIn(versions) => ("version_not_in", packed(versions)),
        Condition::Value(value) => ("value", value.to_vec()),
    };
    let slot = slot(&key);
    let arguments = vec![
        key,
        change.into(),
        operand,
        ttl.into(),
        condition.into(),
        expected,
        tag.to_le_bytes().to_vec(),
    ];
    Command { slot, operation: Operation::Script(arguments), copies }
}

/// The error of a command that may succeed later, if there is one.
fn retry_reason(results: &[Result<Value, CommandError>]) -> Option<StoreError> {
    results.iter().find_map(|result| match result {
        Err(CommandError::Retry(why)) => Some(StoreError::Unreachable(why.clone())),
        _ => None,
    })
}

fn failed(trouble: CommandError) -> StoreError {
    match trouble {
        CommandError::Retry(why) => StoreError::Unreachable(why),
        CommandError::TooFewCopies(answered) => StoreError::TooFewCopies { answered },
        // `maxmemory` with policy `noeviction`.
        CommandError::Refused(why) if why.starts_with("OOM") => StoreError::Full,
        CommandError::Refused(why) => StoreError::Failed(format!("Redis: {why}")),
    }
}

fn foreign() -> StoreError {
    StoreError::Damaged("a Redis key with our prefix was written by another program".to_owned())
}

fn found(result: Result<Value, CommandError>) -> Result<Option<Record>, StoreError> {
    match result.map_err(failed)? {
        Value::Null => Ok(None),
        Value::Bytes(bytes) => decode(&bytes).map(Some).ok_or_else(foreign),
        _ => Err(foreign()),
    }
}

fn write_result(
    TaggedWrite { write, .. }: &TaggedWrite,
    result: Result<Value, CommandError>,
) -> Result<Written, StoreError> {
    let mut parts = result.map_err(failed)?.into_array().unwrap_or_default().into_iter();
    let code = parts.next().and_then(|code| code.as_integer());
    let (second, third) = (parts.next(), parts.next());
    match code {
        Some(1) => {}
        Some(0) => {
            let version = second.and_then(Value::into_bytes).unwrap_or_default();
            let present = version.try_into().ok().map(u64::from_le_bytes);
            return Err(StoreError::ConditionFailed { present });
        }
        Some(2) => return Err(StoreError::NotANumber),
        _ => return Err(foreign()),
    }
    let existed = second.and_then(|existed| existed.as_integer()).map(|existed| existed == 1);
    let head = third.and_then(Value::into_bytes).unwrap_or_default();
    let record = match &write.change {
        Change::Delete => None,
        change => {
            let mut record = decode(&head).ok_or_else(foreign)?;
            if let Change::Put { value, .. } = change {
                record.value = value.clone();
            }
            Some(record)
        }
    };
    Ok(Written { record, existed })
}

fn decode(bytes: &[u8]) -> Option<Record> {
    let (head, value) = bytes.split_at_checked(HEAD_BYTES)?;
    let number = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let expires_ms = Some(number(8)?).filter(|expires_ms| *expires_ms != 0);
    Some(Record { version: number(0)?, expires_ms, value: value.into() })
}

/// Interprets bytes from a node as each kind of reply.
#[cfg(fuzzing)]
pub(crate) fn interpret_reply(mut bytes: &[u8]) {
    use super::slots::{Slots, redirection};
    let Ok(Some(reply)) = outboard_resp::Reader::new(super::wire::LIMITS).read(&mut bytes) else {
        return;
    };
    if let Value::Error(message) = &reply {
        redirection(message, "node:6379");
    }
    if let Some(slots) = Slots::read(reply.clone(), "node:6379") {
        assert!(slots.primaries().iter().all(|address| address.contains(':')));
    }
    let _ = found(Ok(reply));
}

/// The glob pattern of all keys with a prefix.
fn pattern(prefix: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(2 * prefix.len() + 1);
    for byte in prefix {
        if b"*?[]\\^-".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.push(b'*');
    pattern
}

#[cfg(test)]
mod tests;
