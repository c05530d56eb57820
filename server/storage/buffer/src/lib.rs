//! What the server buffers for clients and workers, in memory and on disk, within limits.
//!
//! Used by the HTTP server, the PHP pool and the gateway, on each shard. [`Memory`] holds the
//! accounts under `limits.memory`; [`TempDir`] the files under `io.max_temp_size`; a [`RequestBody`]
//! lies in either. [`Spares`] are unused buffers. Invariants: whatever is buffered is counted for as long as
//! it exists; limits hold for all shards together.

#![forbid(unsafe_code)]

mod account;
mod lease;
mod ledger;
mod memory;
mod request_body;
mod spares;
mod temp_dir;

pub use account::{Account, Held};
pub use lease::{Lease, Quota};
pub use memory::{AppMemory, Memory, MemoryLimits};
pub use request_body::RequestBody;
pub use spares::Spares;
pub use temp_dir::{TempDir, TempFile};
