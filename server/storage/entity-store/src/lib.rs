//! The entity store: records under keys, in memory, on disk or in Redis.
//!
//! Called by the gateway (HTTP, PHP, the admin socket) on its one thread. A [`Store`] answers from
//! memory at once. Threads of its own wait for disks, each with one batch at a time
//! (`batch_worker`), so that no queue is contended.
//!
//! ```text
//!  get ──▶ cache ──hit──▶ result            put, delete, … ──▶ admission ──▶ queue
//!            │ miss                                                            │ a batch
//!            ▼                                                                 ▼
//!          readers ──▶ levels          committer: decide ─▶ journal ─▶ fsync ─▶ levels ─▶ results
//!                                      compactor, later: levels to disk, old segments removed
//! ```
//!
//! Invariants: with durability `always` the fsync of a write precedes its result; a write is whole
//! or absent; data that fails its checksum is reported and never returned.

#![forbid(unsafe_code)]

mod admission;
mod backup;
mod batch_worker;
mod cache;
mod change;
mod committer;
mod compactor;
mod disk;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod journal;
mod levels;
mod memory;
mod namespace;
mod oneshot;
mod queue;
mod record;
mod redis;
mod remote;
mod settings;
mod store;
mod syncer;
mod thread_pool;
mod types;

pub use admission::Admission;
pub use backup::{BackupError, Restored, read_backup, write_backup_head, write_backup_record};
pub use change::{Change, Condition, Write, Written};
pub use error::{OpenError, StoreError};
pub use namespace::{Namespace, Scan};
pub use record::{ID_MAX_BYTES, Record, is_id};
pub use redis::probe;
pub use remote::Remote;
pub use settings::{
    Durability, Engine, Mode, NamespaceSettings, Overload, RedisSettings, Settings,
};
pub use store::Store;
pub use types::{Piece, Stats};
