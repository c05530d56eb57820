//! Tasks across an upgrade of the server: [`Heir`], the process that processes them next.
//!
//! Called by the server, on both sides. Invariants: a task is started by one process at a time; a task whose
//! result a request waits for stays with the process of that request; what another process has not finished
//! when it ends is in the journal, if there is one.

use super::queue::Task;
use super::{Tasks, Unfinished};
use outboard_log::Wall;
use outboard_reactor::now_ms;
use std::fmt;
use std::rc::Rc;

/// Takes the tasks of an app over.
pub trait Heir: fmt::Debug {
    /// Takes a task, in the form that [`Tasks::inherit`] reads.
    fn take(&self, app: &str, task: Vec<u8>);
}

impl Tasks {
    /// Starts no tasks until [`Tasks::begin`] or [`Tasks::leave_to`]: another process has them.
    pub fn hold(&self) {
        self.is_held.set(true);
    }

    /// Starts tasks. Those of `cron` that were due up to `left_at_ms` (Unix ms) were queued by another process.
    pub fn begin(&self, left_at_ms: u64) {
        self.left_at_ms.set(left_at_ms);
        self.is_held.set(false);
        self.changed.set();
    }

    /// Leaves all tasks to another process but those that run, and those whose result a request waits for; and
    /// those of `cron` that are due after `left_at_ms`.
    pub fn leave_to(&self, heir: Rc<dyn Heir>, left_at_ms: u64) {
        self.left_at_ms.set(left_at_ms);
        self.heir.replace(Some(heir));
        self.pass_on();
        self.is_held.set(false);
        self.changed.set();
    }

    /// Whether a task runs or is waited for.
    pub fn is_busy(&self) -> bool {
        self.queue.borrow().running() > 0 || !self.awaited.borrow().is_empty()
    }

    pub(super) fn pass_to_heir(&self) {
        let Some(heir) = self.heir.borrow().clone() else { return };
        let awaited = self.awaited.borrow();
        let left = self.queue.borrow_mut().take_all_but(|task| awaited.contains_key(&task.id));
        let (now_ms, wall_ms) = (now_ms(), Wall::now().unix_us / 1000);
        let unfinished: Unfinished = self.unfinished.borrow().clone();
        for (due_ms, task) in left {
            unfinished.borrow_mut().remove(&task.id);
            heir.take(&self.app, encode(&task, wall_ms + due_ms.saturating_sub(now_ms)));
        }
    }

    /// Queues a task of the process before this one. False: its form is not known.
    pub fn inherit(&self, task: &[u8]) -> bool {
        let Some((task, due_ms)) = decode(task) else { return false };
        let current = self.current();
        current.next_id.set(current.next_id.get().max(task.id + 1));
        if current.journal.is_some() {
            current.unfinished.borrow().borrow_mut().insert(task.id);
        }
        let wait_ms = due_ms.saturating_sub(Wall::now().unix_us / 1000);
        current.queue.borrow_mut().insert(task, now_ms() + wait_ms);
        current.changed.set();
        current.pass_on();
        true
    }
}

const HEAD_BYTES: usize = 30;

fn encode(task: &Task, due_ms: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + task.name.len() + task.data.len());
    out.extend_from_slice(&due_ms.to_le_bytes());
    out.extend_from_slice(&task.id.to_le_bytes());
    out.extend_from_slice(&task.attempts.to_le_bytes());
    out.extend_from_slice(&task.losses.to_le_bytes());
    out.push(task.retries);
    // Names are at most 255 bytes.
    out.extend_from_slice(&(task.name.len() as u32).to_le_bytes());
    out.extend_from_slice(&task.name);
    out.extend_from_slice(&task.data);
    out
}

fn decode(bytes: &[u8]) -> Option<(Task, u64)> {
    let (due, rest) = bytes.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (attempts, rest) = rest.split_first_chunk()?;
    let (losses, rest) = rest.split_first_chunk()?;
    let ([retries], rest) = rest.split_first_chunk()?;
    let (name_len, rest) = rest.split_first_chunk()?;
    let (name, data) = rest.split_at_checked(u32::from_le_bytes(*name_len) as usize)?;
    let task = Task::new(u64::from_le_bytes(*id), name, data.to_vec(), *retries);
    let (attempts, losses) = (u32::from_le_bytes(*attempts), u32::from_le_bytes(*losses));
    Some((Task { attempts, losses, ..task }, u64::from_le_bytes(*due)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_inherited_as_it_was_left() {
        let task = Task { attempts: 2, losses: 1, ..Task::new(7, b"mail", b"N;".to_vec(), 3) };
        let bytes = encode(&task, 99);
        assert_eq!(decode(&bytes), Some((task, 99)));
        (0..bytes.len() - 2).for_each(|len| assert_eq!(decode(&bytes[..len]), None, "{len}"));
    }
}
