//! The spawner: the process that keeps the rights of root that the gateway has dropped.
//!
//! ```text
//!  root: gateway ──▶ outboard spawner          binds, reads keys, then sends the grants
//!           │              │ Begin { grants }  CAP_SETUID, SETGID, KILL, DAC_READ_SEARCH; no more
//!           ▼              ▼
//!  its own user ─Start─▶ spawner ──▶ outboard-php --user 33:33   becomes that user, then serves
//! ```
//!
//! The gateway talks to clients and to PHP. If one of them takes it over, it can start nothing as
//! root and nothing as another user, and read no file, unless the configuration named them when
//! root started it: the spawner has that list, and nothing is added to it.
//!
//! Used by `outboard-gateway` at start, and by the hidden command `outboard spawner`, which calls
//! [`run`]. Invariants: user 0 is never granted; when the socket to the gateway closes, the spawner
//! kills its children and exits.

#![forbid(unsafe_code)]

mod child;
mod client;
pub mod control_group;
mod family;
mod grants;
mod log_file;
mod message;
mod privileges;
mod server;
mod spawner;
pub mod users;

pub use child::Child;
pub use grants::Grants;
pub use log_file::open_log;
pub use server::run;
pub use spawner::{COMMAND, Spawner};
