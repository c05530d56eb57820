//! The gateway's role, for tests and benchmarks: starts a host, forks workers, sends requests
//! through the ring and collects the responses.
//!
//! Invariant: every wait has a time limit, far beyond what a passing test needs.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each test binary uses its part of the driver"
)]

mod host;
mod mode;
mod process;
mod request;
mod response;
mod script_worker;
mod settings;
mod temp_dir;
mod worker;

pub use host::{Host, start, start_printing};
pub use mode::{MODES, Mode, settings_in};
pub use process::{children, eventually, is_running, kill};
pub use request::{RequestSpec, get, post};
pub use response::{Response, finished};
use rustix::event::Timespec;
pub use script_worker::{ScriptWorker, dirty, serve};
pub use settings::{ini, settings, settings_as_nobody, settings_of_worker};
pub use temp_dir::{TempDir, fixtures};
pub use worker::Worker;

/// The maximum time without an event of the other side.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };
