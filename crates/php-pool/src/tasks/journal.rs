//! Tasks that outlive the gateway: one record each in a namespace of the entity store.
//!
//! Called by [`super::Tasks`] when a task is accepted and when it is over. Invariants: whoever
//! dispatched a task is told so after its record is as durable as the namespace promises; the
//! record goes when the task is over, and not before, so that a task whose end nobody wrote down
//! is done again.
//!
//! ```text
//!  tasks/APP/ID ─▶ u8 form │ u64 due, Unix ms │ u8 retries │ u16 length of the name │ name │ data
//! ```

use super::queue::Task;
use outboard_entity_store::{Change, Condition, Namespace, StoreError, Write};
use outboard_log::Wall;
use outboard_reactor::yield_now;
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

/// Of the records; another one is of a later release.
const FORM: u8 = 1;
const HEAD_BYTES: usize = 12;

/// Until a store that has too much to do is asked again.
const PATIENCE_MS: u64 = 50;

/// The records of an app's tasks.
#[derive(Debug)]
pub struct TaskJournal {
    namespace: Rc<Namespace>,
    prefix: String,
    /// Records that are being removed.
    leaving: Cell<usize>,
}

/// A task that was found, and when it is due, in Unix ms.
pub(super) type Found = (Task, u64);

impl TaskJournal {
    /// The journal of an app.
    pub fn new(namespace: Rc<Namespace>, app: &str) -> Self {
        Self { namespace, prefix: format!("tasks/{app}/"), leaving: Cell::new(0) }
    }

    /// Whether both keep the same records.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.namespace, &other.namespace) && self.prefix == other.prefix
    }

    /// How many records are being removed.
    pub(super) fn leaving(&self) -> usize {
        self.leaving.get()
    }

    /// Writes a task down that is due so many ms from now.
    ///
    /// # Errors
    /// The store's; the task was not taken then.
    pub(super) async fn put(&self, task: &Task, delay_ms: u64) -> Result<(), StoreError> {
        let due_ms = (Wall::now().unix_us / 1000).saturating_add(delay_ms);
        let change = Change::Put { value: encode(task, due_ms).into(), ttl_ms: None };
        self.write(task.id, change).await
    }

    /// Forgets a task that is over. While the store has too much to do it is asked again.
    ///
    /// # Errors
    /// The store's; the task will be done again then.
    pub(super) async fn remove(&self, id: u64) -> Result<(), StoreError> {
        self.leaving.set(self.leaving.get() + 1);
        let removed = loop {
            match self.write(id, Change::Delete).await {
                Err(StoreError::Overloaded) => outboard_reactor::sleep(PATIENCE_MS).await,
                removed => break removed,
            }
        };
        self.leaving.set(self.leaving.get() - 1);
        removed
    }

    async fn write(&self, id: u64, change: Change) -> Result<(), StoreError> {
        let id = format!("{}{id:016x}", self.prefix).into_bytes().into();
        self.namespace.write(Write { id, change, condition: Condition::Always }).await.map(drop)
    }

    /// All tasks that were not over when the last gateway ended, in the order of acceptance; and
    /// how many records are none.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn found(&self) -> Result<(Vec<Found>, usize), StoreError> {
        let start = self.prefix.clone().into_bytes();
        // '0' follows '/'.
        let end = format!("{}0", self.prefix.trim_end_matches('/')).into_bytes();
        let mut scan = self.namespace.scan(Bound::Included(start), Bound::Excluded(end));
        let (mut found, mut strange) = (Vec::new(), 0);
        loop {
            let piece = scan.next().await?;
            if piece.is_empty() {
                return Ok((found, strange));
            }
            yield_now().await;
            for (id, record) in piece {
                let id = std::str::from_utf8(&id[self.prefix.len()..]).unwrap_or_default();
                match u64::from_str_radix(id, 16).ok().and_then(|id| decode(id, &record.value)) {
                    Some(task) => found.push(task),
                    None => strange += 1,
                }
            }
        }
    }
}

fn encode(task: &Task, due_ms: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + task.name.len() + task.data.len());
    out.push(FORM);
    out.extend_from_slice(&due_ms.to_le_bytes());
    out.push(task.retries);
    let name_len = u16::try_from(task.name.len()).expect("a frame is shorter than 64 KiB");
    out.extend_from_slice(&name_len.to_le_bytes());
    out.extend_from_slice(&task.name);
    out.extend_from_slice(&task.data);
    out
}

fn decode(id: u64, record: &[u8]) -> Option<Found> {
    let (head, rest) = record.split_first_chunk::<HEAD_BYTES>()?;
    let [FORM, due @ .., retries, short, long] = head else { return None };
    let due_ms = u64::from_le_bytes(*due);
    let (name, data) = rest.split_at_checked(u16::from_le_bytes([*short, *long]).into())?;
    Some((Task::new(id, name, data.to_vec(), *retries), due_ms))
}

/// A record written again as it was read.
#[cfg(fuzzing)]
pub fn again(record: &[u8]) -> Option<Vec<u8>> {
    decode(0, record).map(|(task, due_ms)| encode(&task, due_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_as_it_was_written() {
        for data in [Vec::new(), vec![0; 3], b"N;".to_vec()] {
            let task = Task::new(7, b"mail", data, 3);
            assert_eq!(decode(7, &encode(&task, 1234)), Some((task, 1234)));
        }
    }

    #[test]
    fn a_record_that_is_none_is_not_taken_for_a_task() {
        let whole = encode(&Task::new(7, b"mail", Vec::new(), 3), 1);
        for len in 0..whole.len() {
            assert_eq!(decode(7, &whole[..len]), None, "{len}");
        }
        assert_eq!(decode(7, &[&[FORM + 1], &whole[1..]].concat()), None);
    }
}
