//! The journal: writes that are not in a sorted file yet, in segments.
//!
//! Written by the committer, one frame a batch; read once, when the namespace opens. Invariants: a
//! frame whose checksum does not match is ignored, and reading goes on at the next whole frame; a
//! frame that is truncated at the end was never confirmed to a client.
//!
//! ```text
//!  segment:  "OBENTJ1\n" │ u64 salt │ frame …  │ zeros (preallocated)
//!  frame:    u32 MAGIC │ u32 length │ u64 checksum of length and entries, seeded by the salt │ entries
//!  entry:    u8 kind │ u64 version │ u64 expires_ms │ u32 id length │ u32 value length │ id │ value
//! ```
//!
//! The salt ensures that a value with the bytes of a frame is never read as one.

mod frame;
mod preallocator;
mod replay;
mod segment;

pub(crate) use frame::Frame;
pub(crate) use preallocator::SegmentPreallocator;
#[cfg(fuzzing)]
pub(crate) use replay::replay_bytes;
pub(crate) use replay::{Flaw, replay};
pub(crate) use segment::{Segment, segment_path, segments};

#[cfg(test)]
mod tests;
