//! The PHP workers of an app: the queue in front of them, their operations, and background tasks.
//!
//! Called by the gateway, on its event loop. It knows no HTTP connection: an [`exchange::Exchange`]
//! carries a request frame to a worker and the frames of its response back.
//!
//! ```text
//!  gateway ─ Exchange ─▶ pool::Pool ═ ring ═ worker          tasks::Tasks ─ Exchange ─▶ a pool of their own
//!                          ├ manager: forks, deadlines, size     ▲
//!                          └ operations: requests of workers ────┘ and to the gateway
//! ```

#![forbid(unsafe_code)]

pub mod exchange;
mod host_settings;
pub mod pool;
pub mod tasks;
mod worker_id;
