//! The spawner: what is left of root once the gateway has given it up.
//!
//! ```text
//!  root: gateway ──▶ outboard spawner          binds, reads keys, then hands over what it may do
//!           │              │ Begin { grants }  CAP_SETUID, SETGID, KILL, DAC_READ_SEARCH; no more
//!           ▼              ▼
//!  its own user ─Start─▶ spawner ──▶ outboard-php --user 33:33   becomes that user, then listens
//! ```
//!
//! The gateway speaks with clients and with PHP; should one of them take it over, it can start
//! nothing as root, nor as any user, nor read any file, that the configuration did not name when
//! root started it: the spawner has that list and nobody adds to it. The spawner hears nothing
//! but the gateway's orders, of which there are four.
//!
//! Used by `outboard-gateway` (as a client, at start) and by the command line, whose hidden command
//! `spawner` calls [`run`]. Invariants: user 0 is in no list; when the gateway's end of the socket
//! closes the spawner kills what it has started and leaves.

#![forbid(unsafe_code)]

mod child;
mod grants;
mod order;
mod place;
mod privileges;
mod run;
mod spawner;

pub use child::Child;
pub use grants::Grants;
pub use place::open_log;
pub use run::run;
pub use spawner::{COMMAND, Spawner};
