//! The wire between the gateway and PHP: shared-memory rings, frames, doorbells and the
//! zygote's control socket.
//!
//! Called by the gateway and the supervisor on one side and by the PHP host on the other.
//! Invariants: offsets and never pointers live in shared memory; whatever the peer wrote is
//! copied out once, validated, and only the copy is used; every frame names the slot and the
//! generation that it belongs to.
//!
//! ```text
//!  gateway                                             worker (one PHP process)
//!  Producer ──▶ requests ring  (memfd) ─────────────▶ Consumer
//!  Consumer ◀── responses ring (same memfd) ◀──────── Producer
//!     ▲ a doorbell (eventfd) of each worker               ▲ an epoll with its doorbell
//! ```

pub mod channel;
mod claim;
pub mod control;
pub mod doorbell;
pub mod frame;
pub mod heap;
pub mod memory;
pub mod operation;
pub mod purge;
pub mod request;
pub mod response;
pub mod spsc;
mod sync;
pub mod task;
mod waits;
