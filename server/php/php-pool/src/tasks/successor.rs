//! [`TaskSuccessor`]: the process that processes the tasks of an app next, after an upgrade of the server.
//!
//! Implemented by the gateway. Invariant: a task arrives as it was left, but
//! for its trace.

use super::queue::Task;
use std::fmt;

/// Takes the tasks of an app over.
pub trait TaskSuccessor: fmt::Debug {
    /// Takes a task, in the form that [`Tasks::inherit`](super::Tasks::inherit) reads.
    fn take(&self, app: &str, task: Vec<u8>);
}

const HEAD_BYTES: usize = 30;

/// A task in the form in which a successor takes it, with when it is due (Unix ms).
pub(super) fn encode(task: &Task, due_ms: u64) -> Vec<u8> {
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
    debug_assert_eq!(
        decode(&out),
        Some((Task { trace: None, is_debugged: false, ..task.clone() }, due_ms))
    );
    out
}

/// Reads a task of the process before this one; `None`: its form is not known.
pub(super) fn decode(bytes: &[u8]) -> Option<(Task, u64)> {
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
