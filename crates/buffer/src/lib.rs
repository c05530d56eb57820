//! What the server buffers for clients and workers, in memory and on disk, within limits.
//!
//! Used by the HTTP server, the PHP pool and the gateway, all on one thread. [`Memory`] holds the
//! accounts under `limits.memory`; [`TempDir`] the files under `io.max_temp_size`; a [`RequestBody`]
//! lies in either. [`Spares`] are unused buffers. Invariant: whatever is buffered is counted for as long as it exists.

#![forbid(unsafe_code)]

mod account;
mod memory;
mod request_body;
mod spares;
mod temp_dir;

pub use account::{Account, Held};
pub use memory::{AppMemory, Memory};
pub use request_body::RequestBody;
pub use spares::Spares;
pub use temp_dir::{TempDir, TempFile};
