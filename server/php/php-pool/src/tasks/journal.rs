//! The journal of tasks: one record per task in a namespace of the entity store.
//!
//! Called by [`super::Tasks`] when a task is accepted and when it is finished. Invariants: a task is
//! accepted once its record is as durable as the namespace promises; the record is removed after the
//! task is finished, so that a task whose end was not recorded is processed again.
//!
//! ```text
//!  tasks/APP/ID ─▶ u8 format │ u64 due, Unix ms │ u8 retries │ u16 length of the name │ name │ data
//! ```

use super::queue::Task;
use outboard_entity_store::{Change, Condition, Namespace, StoreError, Write};
use outboard_log::Wall;
use outboard_reactor::yield_now;
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

/// The format of records; later releases may have others.
const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 12;

/// The pause before a removal is repeated that the store was too busy for.
const RETRY_PAUSE_MS: u64 = 50;

/// The records of an app's tasks.
#[derive(Debug)]
pub struct TaskJournal {
    namespace: Rc<Namespace>,
    prefix: String,
    /// Records that are being removed.
    pub(super) pending_removals: Cell<usize>,
}

/// A task from the journal, and when it is due, in Unix ms.
pub(super) type RecoveredTask = (Task, u64);

impl TaskJournal {
    /// The journal of an app.
    pub fn new(namespace: Rc<Namespace>, app: &str) -> Self {
        Self { namespace, prefix: format!("tasks/{app}/"), pending_removals: Cell::new(0) }
    }

    /// Whether both have the same records.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.namespace, &other.namespace) && self.prefix == other.prefix
    }

    /// Writes the record of a task that is due after `delay_ms`.
    ///
    /// # Errors
    /// The store's; the task is not recorded then.
    pub(super) async fn put(&self, task: &Task, delay_ms: u64) -> Result<(), StoreError> {
        let due_ms = (Wall::now().unix_us / 1000).saturating_add(delay_ms);
        let change = Change::Put { value: encode(task, due_ms).into(), ttl_ms: None };
        self.write(task.id, change).await
    }

    /// Removes the record of a finished task. While the store is too busy this is repeated.
    ///
    /// # Errors
    /// The store's; the task will be processed again then.
    pub(super) async fn remove(&self, id: u64) -> Result<(), StoreError> {
        self.pending_removals.set(self.pending_removals.get() + 1);
        let removed = loop {
            match self.write(id, Change::Delete).await {
                Err(StoreError::Overloaded) => outboard_reactor::sleep(RETRY_PAUSE_MS).await,
                removed => break removed,
            }
        };
        self.pending_removals.set(self.pending_removals.get() - 1);
        removed
    }

    async fn write(&self, id: u64, change: Change) -> Result<(), StoreError> {
        let id = format!("{}{id:016x}", self.prefix).into_bytes().into();
        self.namespace.write(Write { id, change, condition: Condition::Always }).await.map(drop)
    }

    /// All tasks that the last gateway has not finished, in the order of acceptance; and the number of
    /// invalid records.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn recover(&self) -> Result<(Vec<RecoveredTask>, usize), StoreError> {
        let start = self.prefix.clone().into_bytes();
        // '0' follows '/'.
        let end = format!("{}0", self.prefix.trim_end_matches('/')).into_bytes();
        let mut scan = self.namespace.scan(Bound::Included(start), Bound::Excluded(end));
        let (mut recovered, mut invalid) = (Vec::new(), 0);
        loop {
            let records = scan.next().await?;
            if records.is_empty() {
                return Ok((recovered, invalid));
            }
            yield_now().await;
            for (id, record) in records {
                let id = std::str::from_utf8(&id[self.prefix.len()..]).unwrap_or_default();
                match u64::from_str_radix(id, 16).ok().and_then(|id| decode(id, &record.value)) {
                    Some(task) => recovered.push(task),
                    None => invalid += 1,
                }
            }
        }
    }
}

fn encode(task: &Task, due_ms: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + task.name.len() + task.data.len());
    out.push(FORMAT);
    out.extend_from_slice(&due_ms.to_le_bytes());
    out.push(task.retries);
    let name_len = u16::try_from(task.name.len()).expect("a frame is shorter than 64 KiB");
    out.extend_from_slice(&name_len.to_le_bytes());
    out.extend_from_slice(&task.name);
    out.extend_from_slice(&task.data);
    let not_stored = Task { trace: None, is_debugged: false, ..task.clone() };
    let accepted = Task { attempts: 0, losses: 0, ..not_stored };
    debug_assert_eq!(decode(task.id, &out), Some((accepted, due_ms)));
    out
}

fn decode(id: u64, record: &[u8]) -> Option<RecoveredTask> {
    let (head, rest) = record.split_first_chunk::<HEAD_BYTES>()?;
    let [FORMAT, due @ .., retries, short, long] = head else { return None };
    let due_ms = u64::from_le_bytes(*due);
    let (name, data) = rest.split_at_checked(u16::from_le_bytes([*short, *long]).into())?;
    Some((Task::new(id, name, data.to_vec(), *retries), due_ms))
}

/// Decodes and encodes a record, for a fuzz target.
#[cfg(fuzzing)]
pub fn reencode(record: &[u8]) -> Option<Vec<u8>> {
    decode(0, record).map(|(task, due_ms)| encode(&task, due_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_decoded_as_they_were_encoded() {
        for data in [Vec::new(), vec![0; 3], b"N;".to_vec()] {
            let task = Task::new(7, b"mail", data, 3);
            assert_eq!(decode(7, &encode(&task, 1234)), Some((task, 1234)));
        }
    }

    #[test]
    fn truncated_and_unknown_records_are_invalid() {
        let whole = encode(&Task::new(7, b"mail", Vec::new(), 3), 1);
        for len in 0..whole.len() {
            assert_eq!(decode(7, &whole[..len]), None, "{len}");
        }
        assert_eq!(decode(7, &[&[FORMAT + 1], &whole[1..]].concat()), None);
    }
}
