//! A program for Swoole as `outboard run` sees it: the first run of the program describes its server, and that
//! description becomes a configuration.
//!
//! Called by the command line, which starts the server. Invariant: nothing here starts a server or reads a
//! configuration.

#![forbid(unsafe_code)]

mod configuration;
mod description;
mod private_dir;

pub use configuration::Configuration;
pub use description::{Described, Description, describe};
pub use private_dir::PrivateDir;

/// Set for the server of a program that continues in the background.
pub const DETACHED: &str = "OUTBOARD_RUN_DETACHED";
