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

mod answer;
mod ask;
mod folder;
mod host;
mod resident;
mod settings;
mod worker;

pub use answer::{Answer, finished};
pub use ask::{Ask, get, post};
pub use folder::{Folder, fixtures};
pub use host::{Host, start};
pub use resident::{Resident, serve};
use rustix::event::Timespec;
pub use settings::{ini, settings, settings_as_nobody, settings_of_worker};
pub use worker::Worker;

/// How long the other side may say nothing.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };
