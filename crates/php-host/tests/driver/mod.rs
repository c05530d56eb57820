//! The gateway's role, for tests and measurements: starts a host, forks workers, sends requests
//! through the ring and collects the answers.
//!
//! Invariant: every wait has an end, far beyond what a passing test needs.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test binary uses its part of the driver"
)]

mod host;
mod request;
mod response;
mod script_worker;
mod settings;
mod temp_dir;
mod worker;

pub use host::{Host, start};
pub use request::{RequestSpec, get, post};
pub use response::{Response, finished};
use rustix::event::Timespec;
pub use script_worker::{ScriptWorker, serve};
pub use settings::{ini, settings, settings_as_nobody, settings_of_worker};
pub use temp_dir::{TempDir, fixtures};
pub use worker::Worker;

/// How long the other side may say nothing.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };
