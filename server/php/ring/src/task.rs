//! A task from a worker: the payload of [`Call::Task`].
//!
//! The host encodes, the gateway decodes. The data follow in [`Call::FetchBody`], because they may
//! be longer than a frame.
//!
//! ```text
//!  u64 delay ms │ u32 data bytes │ u8 awaited │ u8 retries + 1, or 0 │ name
//! ```
//!
//! [`Call::Task`]: crate::operation::Call::Task
//! [`Call::FetchBody`]: crate::operation::Call::FetchBody

use crate::corrupt::Corrupt;

const HEAD_BYTES: usize = 14;

/// A task for the app's task workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCall<'a> {
    /// The name of the handler.
    pub name: &'a [u8],
    /// The length of the data.
    pub data_bytes: u32,
    /// The delay before the first attempt, in ms.
    pub delay_ms: u64,
    /// Whether the completion is the result of the task; otherwise it confirms that the task is
    /// queued.
    pub is_awaited: bool,
    /// Retries after a failure, at most 254; `None` for the configured number.
    pub retries: Option<u8>,
}

impl<'a> TaskCall<'a> {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.delay_ms.to_le_bytes());
        out.extend_from_slice(&self.data_bytes.to_le_bytes());
        out.push(u8::from(self.is_awaited));
        out.push(self.retries.map_or(0, |retries| retries.saturating_add(1)));
        out.extend_from_slice(self.name);
    }

    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, Corrupt> {
        let (head, name) = payload
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or(Corrupt { what: "a task is shorter than its head" })?;
        let (delay, rest) = head.split_first_chunk().expect("the head has 14 bytes");
        let (data, rest) = rest.split_first_chunk().expect("of which 6 are left");
        Ok(Self {
            name,
            data_bytes: u32::from_le_bytes(*data),
            delay_ms: u64::from_le_bytes(*delay),
            is_awaited: rest[0] != 0,
            retries: rest[1].checked_sub(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskCall<'_> = TaskCall {
        name: b"mail",
        data_bytes: u32::MAX,
        delay_ms: u64::MAX,
        is_awaited: false,
        retries: None,
    };

    #[test]
    fn retries_come_back_up_to_the_most() {
        for (sent, received) in
            [(None, None), (Some(0), Some(0)), (Some(254), Some(254)), (Some(255), Some(254))]
        {
            let mut payload = Vec::new();
            TaskCall { retries: sent, ..TASK }.encode(&mut payload);
            assert_eq!(TaskCall::decode(&payload), Ok(TaskCall { retries: received, ..TASK }));
        }
    }

    #[test]
    fn a_task_needs_a_whole_head_and_no_name() {
        let mut payload = Vec::new();
        TASK.encode(&mut payload);
        for len in 0..HEAD_BYTES {
            let refused = TaskCall::decode(&payload[..len]);
            assert_eq!(refused, Err(Corrupt { what: "a task is shorter than its head" }), "{len}");
        }
        assert_eq!(TaskCall::decode(&payload[..HEAD_BYTES]), Ok(TaskCall { name: b"", ..TASK }));
    }
}
