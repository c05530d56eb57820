//! A task that a worker has queued: the payload of [`Call::Task`].
//!
//! The host encodes, the gateway decodes. The data follow in [`Call::FetchBody`], as they may be
//! longer than a frame.
//!
//! ```text
//!  u64 delay ms │ u32 data bytes │ u8 awaited │ u8 retries + 1, or 0 │ name
//! ```
//!
//! [`Call::Task`]: crate::operation::Call::Task
//! [`Call::FetchBody`]: crate::operation::Call::FetchBody

use crate::spsc::Corrupt;

const HEAD_BYTES: usize = 14;

/// A task for the app's task workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCall<'a> {
    /// What kind of task it is, for the handler.
    pub name: &'a [u8],
    /// Length of its data.
    pub data_bytes: u32,
    /// How long it is to wait before it is tried, in ms.
    pub delay_ms: u64,
    /// Whether the completion is its result; otherwise it is that the task was queued.
    pub is_awaited: bool,
    /// Further attempts after one that failed, at most 254; `None`: as configured.
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
