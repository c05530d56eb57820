//! The dashboard without I/O: its page, the history that it draws, and who may see it.
//!
//! The gateway and `outboard dashboard` serve the page by it; both pass times as parameters. Invariants:
//! the page needs no other server; what clients can fill has a fixed size.

#![forbid(unsafe_code)]

mod app_history;
mod assets;
mod history;
mod origin;
mod paths;
mod secret;
mod usage;

pub use app_history::{APPS_MAX, AppTotals};
pub use assets::{Asset, HEADERS, asset};
pub use history::{History, Totals};
pub use origin::Source;
pub use paths::{Counted, Paths};
pub use secret::Secret;
pub use usage::{Usage, WorkerUsage};
