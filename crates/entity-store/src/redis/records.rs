//! Records in Redis: which key is whose, how a record is written there, and how names are put in
//! order.
//!
//! Runs on the threads of [`super`]. A record is one string under prefix, namespace, `:` and its
//! name; each write is one call of `write.lua`. Invariant: a write that is asked for again, because
//! its answer was lost, is not done twice.

use super::RedisSettings;
use super::cluster::{Cluster, Command, Trouble, What};
use super::job::{Cursor, Done, Job, NamedWrite, Task};
use super::slots::slot;
use super::wire::{Reply, command};
use crate::change::{Change, Condition, Written};
use crate::error::StoreError;
use crate::namespace::Piece;
use crate::record::Record;
use std::collections::BTreeSet;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// Version, end, and the name of the write.
const HEAD_BYTES: usize = 24;
/// Names that a scan keeps at once; for those behind them the nodes are asked again.
const NAMES_BYTES: usize = 8 << 20;
/// Records of a scan that are read together.
const TOGETHER: usize = 256;
/// What a node looks at for one `SCAN`.
const LOOKED_AT: &[u8] = b"1000";

/// What came of a job.
pub(crate) enum Outcome {
    /// This.
    Done(Result<Done, StoreError>),
    /// It may be done later, unless the time for it is over.
    Later(Job, StoreError),
}

/// Redis as a thread of ours sees it.
pub(crate) struct Records {
    cluster: Cluster,
}

impl Records {
    pub(crate) fn new(settings: Arc<RedisSettings>) -> Self {
        Self { cluster: Cluster::new(settings) }
    }

    /// Does jobs; one outcome for each, in order.
    pub(crate) fn attempt(&mut self, jobs: Vec<Job>) -> Vec<Outcome> {
        let commands: Vec<Command> = jobs.iter().flat_map(commands).collect();
        let mut answers = self.cluster.run(&commands).into_iter();
        let done = jobs.into_iter().map(|job| match job.task {
            Task::Scan { prefix, cursor, most_bytes } => {
                self.scan(prefix, cursor, most_bytes, job.until)
            }
            Task::Get { ref ids, .. } => {
                let answers: Vec<_> = answers.by_ref().take(ids.len()).collect();
                match later(&answers) {
                    Some(why) => Outcome::Later(job, why),
                    None => {
                        let found: Result<_, _> = answers.into_iter().map(found).collect();
                        Outcome::Done(found.map(Done::Got))
                    }
                }
            }
            Task::Write { ref writes, .. } => {
                let answers: Vec<_> = answers.by_ref().take(writes.len()).collect();
                match later(&answers) {
                    Some(why) => Outcome::Later(job, why),
                    None => {
                        let written = writes.iter().zip(answers);
                        let written = written.map(|(write, answer)| written_as(write, answer));
                        Outcome::Done(Ok(Done::Written(written.collect())))
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
        until: Instant,
    ) -> Outcome {
        let start = cursor.start.clone();
        match self.read_on(&prefix, &mut cursor, most_bytes) {
            Ok(piece) => {
                let is_over = cursor.is_last && cursor.names.is_empty();
                Outcome::Done(Ok(Done::Scanned(piece, (!is_over).then_some(cursor))))
            }
            Err(why @ StoreError::Unreachable(_)) => {
                let cursor = Cursor::new(start, cursor.end);
                Outcome::Later(Job { task: Task::Scan { prefix, cursor, most_bytes }, until }, why)
            }
            Err(why) => Outcome::Done(Err(why)),
        }
    }

    /// The next records of a scan.
    fn read_on(
        &mut self,
        prefix: &[u8],
        cursor: &mut Cursor,
        most_bytes: usize,
    ) -> Result<Piece, StoreError> {
        let (mut piece, mut bytes) = (Piece::new(), 0);
        while bytes < most_bytes {
            if cursor.names.is_empty() {
                if cursor.is_last {
                    break;
                }
                let looked = self.look_ahead(prefix, cursor);
                looked.map_err(|error| StoreError::Unreachable(error.to_string()))?;
                continue;
            }
            let together = cursor.names.len().min(TOGETHER);
            let names: Vec<Box<[u8]>> = cursor.names.drain(..together).collect();
            let gets: Vec<Command> = names.iter().map(|name| get(prefix, name)).collect();
            if let Some(name) = names.last() {
                cursor.start = Bound::Excluded(name.to_vec());
            }
            for (name, answer) in names.into_iter().zip(self.cluster.run(&gets)) {
                // What went meanwhile is not there.
                if let Some(record) = found(answer)? {
                    bytes += name.len() + record.value.len();
                    piece.push((name, record));
                }
            }
        }
        Ok(piece)
    }

    /// Asks all nodes for names, which they have in no order, and keeps the first of them.
    fn look_ahead(&mut self, prefix: &[u8], cursor: &mut Cursor) -> io::Result<()> {
        let pattern = pattern(prefix);
        let (mut names, mut bytes) = (BTreeSet::new(), 0);
        cursor.is_last = true;
        for node in self.cluster.primaries()? {
            let mut at = b"0".to_vec();
            loop {
                let scan = command(&[b"SCAN", &at, b"MATCH", &pattern, b"COUNT", LOOKED_AT]);
                let mut reply = self.cluster.ask(&node, &scan)?.into_list().into_iter();
                at = reply.next().and_then(Reply::into_bytes).unwrap_or_else(|| b"0".to_vec());
                let keys = reply.next().map(Reply::into_list).unwrap_or_default();
                for key in keys.into_iter().filter_map(Reply::into_bytes) {
                    let Some(name) = key.strip_prefix(prefix) else { continue };
                    if cursor.has(name) && names.insert(Box::<[u8]>::from(name)) {
                        bytes += name.len();
                    }
                    while bytes > NAMES_BYTES
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
        cursor.names = names.into_iter().collect();
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
    Command { slot: slot(&key), what: What::Command(command(&[b"GET", &key])), copies: 1 }
}

fn script(prefix: &[u8], write: &NamedWrite, copies: u32) -> Command {
    let NamedWrite { write, name } = write;
    let key = [prefix, &write.id].concat();
    let ttl = |ttl_ms: &Option<u64>| ttl_ms.map_or_else(String::new, |ttl_ms| ttl_ms.to_string());
    let (change, operand, ttl) = match &write.change {
        Change::Put { value, ttl_ms } => ("put", value.to_vec(), ttl(ttl_ms)),
        Change::Delete => ("delete", Vec::new(), String::new()),
        Change::Increment { by, ttl_ms } => ("increment", by.to_string().into(), ttl(ttl_ms)),
    };
    let packed = |versions: &[u64]| versions.iter().flat_map(|v| v.to_le_bytes()).collect();
    let (condition, wanted) = match &write.condition {
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
        wanted,
        name.to_le_bytes().to_vec(),
    ];
    Command { slot, what: What::Script(arguments), copies }
}

/// Why some of a job have to be asked for again, if they have.
fn later(answers: &[Result<Reply, Trouble>]) -> Option<StoreError> {
    answers.iter().find_map(|answer| match answer {
        Err(Trouble::Later(why)) => Some(StoreError::Unreachable(why.clone())),
        _ => None,
    })
}

fn failed(trouble: Trouble) -> StoreError {
    match trouble {
        Trouble::Later(why) => StoreError::Unreachable(why),
        Trouble::TooFew(answered) => StoreError::TooFewCopies { answered },
        // maxmemory, with a policy that does not evict.
        Trouble::Refused(why) if why.starts_with("OOM") => StoreError::Full,
        Trouble::Refused(why) => StoreError::Failed(format!("Redis says {why}")),
    }
}

fn foreign() -> StoreError {
    StoreError::Damaged("a key of Redis below our prefix is not ours".to_owned())
}

fn found(answer: Result<Reply, Trouble>) -> Result<Option<Record>, StoreError> {
    match answer.map_err(failed)? {
        Reply::Nothing => Ok(None),
        Reply::Bytes(bytes) => decode(&bytes).map(Some).ok_or_else(foreign),
        _ => Err(foreign()),
    }
}

fn written_as(
    NamedWrite { write, .. }: &NamedWrite,
    answer: Result<Reply, Trouble>,
) -> Result<Written, StoreError> {
    let mut parts = answer.map_err(failed)?.into_list().into_iter();
    let code = parts.next().and_then(|code| code.number());
    let (second, third) = (parts.next(), parts.next());
    match code {
        Some(1) => {}
        Some(0) => {
            let version = second.and_then(Reply::into_bytes).unwrap_or_default();
            let present = version.try_into().ok().map(u64::from_le_bytes);
            return Err(StoreError::ConditionFailed { present });
        }
        Some(2) => return Err(StoreError::NotANumber),
        _ => return Err(foreign()),
    }
    let existed = second.and_then(|existed| existed.number()).map(|existed| existed == 1);
    let head = third.and_then(Reply::into_bytes).unwrap_or_default();
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

/// Takes bytes from a node for a reply, and that for whatever a reply is taken for; how many they are.
#[cfg(fuzzing)]
pub(crate) fn read_as_everything(bytes: &[u8]) -> Option<usize> {
    use super::slots::{Slots, redirection};
    let mut rest = bytes;
    let reply = super::wire::read_reply(&mut rest, 0).ok()?;
    if let Reply::Refused(why) = &reply {
        redirection(why, "node:6379");
    }
    if let Some(slots) = Slots::read(reply.clone(), "node:6379") {
        assert!(slots.primaries().iter().all(|address| address.contains(':')));
    }
    let _ = found(Ok(reply));
    Some(bytes.len() - rest.len())
}

/// All keys that begin so: a glob in which nothing of the prefix means anything.
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
mod tests {
    use super::*;

    #[test]
    fn a_prefix_means_itself_in_a_pattern() {
        assert_eq!(pattern(b"a:b"), b"a:b*");
        assert_eq!(pattern(b"a*[x]\\"), b"a\\*\\[x\\]\\\\*");
    }

    #[test]
    fn what_is_too_short_to_be_a_record_is_none() {
        assert_eq!(decode(&[0; 23]), None);
        let record = decode(&[[1, 0, 0, 0, 0, 0, 0, 0].as_slice(), &[0; 16], b"v"].concat());
        let expected = Record { version: 1, expires_ms: None, value: (*b"v").into() };
        assert_eq!(record, Some(expected));
    }
}
