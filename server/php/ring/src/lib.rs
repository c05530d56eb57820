//! The protocol of gateway and PHP: shared-memory rings, frames, doorbells and the control socket
//! of the zygote.
//!
//! Used by the gateway and the supervisor on one side and by the PHP host on the other. Invariants:
//! shared memory has offsets and never pointers; everything that the peer wrote is copied out once
//! and validated, and only the copy is used; every frame names its slot and generation.
//!
//! ```text
//!  gateway                                             worker (one PHP process)
//!  Producer ──▶ requests ring  (memfd) ─────────────▶ Consumer
//!  Consumer ◀── responses ring (same memfd) ◀──────── Producer
//!     ▲ a doorbell (eventfd) of each worker               ▲ an epoll with its doorbell
//! ```

pub mod boot_files;
pub mod channel;
mod claim;
pub mod control;
mod corrupt;
pub mod direct;
pub mod doorbell;
pub mod frame;
pub mod heap;
pub mod memory;
pub mod operation;
pub mod purge;
pub mod request;
pub mod response;
mod rewinds;
pub mod span;
pub mod spsc;
pub mod stream;
mod sync;
pub mod task;
mod waits;
