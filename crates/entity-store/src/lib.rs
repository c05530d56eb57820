//! The entity store: records under names, kept in memory, on disk, or by Redis.
//!
//! Called by the gateway (HTTP, PHP, the admin socket) on its one thread. What a [`Store`] can
//! answer from memory it answers there and then; disks are waited for by threads of its own, each
//! fed a batch at a time through a `lane`, so that no queue is ever fought over.
//!
//! ```text
//!  get ──▶ cache ──hit──▶ answer            put, delete, … ──▶ admission ──▶ pending
//!            │ miss                                                            │ all that wait
//!            ▼ lane                                                            ▼ lane
//!          readers ──▶ levels          committer: decide ─▶ journal ─▶ fsync ─▶ levels ─▶ answers
//!                                      keeper, behind: levels to disk, old journals away
//! ```
//!
//! Invariants: with durability `always` an answer follows the fsync that its write was part of; a
//! write is whole or not there; what a checksum does not vouch for is named, never returned.

#![forbid(unsafe_code)]

mod admission;
mod backup;
mod cache;
mod change;
mod committer;
mod desk;
mod disk;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod journal;
mod keeper;
mod lane;
mod levels;
mod memory;
mod namespace;
mod queue;
mod record;
mod redis;
mod reply;
mod settings;
mod store;
mod syncer;

pub use admission::Admission;
pub use backup::{BackupError, Restored, read_backup, write_backup_head, write_backup_record};
pub use change::{Change, Condition, Write, Written};
pub use error::{OpenError, StoreError};
pub use namespace::{Namespace, Piece, Scan, Stats};
pub use record::{ID_MAX_BYTES, Record, is_id};
pub use redis::probe;
pub use settings::{
    Durability, Engine, Mode, NamespaceSettings, Overload, RedisSettings, Settings,
};
pub use store::Store;
