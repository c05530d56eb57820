//! The shared memory of one worker: two rings, and a page of facts about the worker.
//!
//! The gateway creates it ([`GatewayChannel::create`]) and passes the memfd to the zygote with the order
//! to fork; the worker maps it ([`WorkerChannel::map`]). Invariants: the size is sealed before the worker
//! sees it, so neither side can make the other fault by truncation; both sides check magic, version and
//! capacities.
//!
//! ```text
//!  0        header: magic, version, capacities, cursors, worker facts     (16 KiB)
//!  16 KiB   backtrace text, written by the worker or the zygote            (12 KiB)
//!  28 KiB   requests ring  (gateway → worker)                             (request_bytes)
//!  …        responses ring (worker → gateway)                             (response_bytes)
//! ```

mod backtrace;
mod gateway;
mod mapping;
mod worker;

pub use crate::claim::{DIRECT_CONNECTIONS, LEASES, is_direct};
pub use crate::rewinds::Rewinds;
pub use crate::waits::{WaitCall, Waits};
pub use backtrace::BacktraceSink;
pub use gateway::{GatewayChannel, TakenBack};
pub use mapping::{BACKTRACE_BYTES, Capacities};
pub use worker::WorkerChannel;

#[cfg(all(test, not(loom)))]
mod tests;
