//! The PHP workers of an app, the queue of requests, operations of workers, background tasks, and processes next to PHP.
//!
//! Called by the gateway on its event loop. The crate does not know HTTP connections: an
//! [`exchange::Exchange`] has the frame of a request and receives the frames of its response.
//!
//! ```text
//!  gateway ─ Exchange ─▶ pool::Pool ═ ring ═ worker          tasks::Tasks ─ Exchange ─▶ a second pool
//!                          ├ manager: forks, deadlines, size     ▲
//!                          └ operations of workers ──────────────┘ and to the gateway
//!  processes::Processes ─ keepers ─▶ programs of the app
//! ```

#![forbid(unsafe_code)]

mod allowance;
mod budget;
pub mod exchange;
pub mod freshness;
mod host_settings;
mod output_lines;
pub mod pool;
pub mod processes;
mod recent_errors;
mod recent_slow;
pub mod renewal;
mod request_times;
mod rings;
mod sandbox;
mod script_span;
pub mod tasks;
mod worker_id;

pub use recent_errors::RecentErrors;
pub use recent_slow::RecentSlow;
pub use rings::Rings;

/// What the dashboard shows of the latest requests of a thread.
#[derive(Debug, Default)]
pub struct Recent {
    /// Requests that took long.
    pub slow: RecentSlow,
    /// Errors of PHP.
    pub errors: RecentErrors,
}
