//! A path that the configuration names, opened without trusting the applications that may change it.
//!
//! Called for document roots, error pages and directories of caches by the gateway, which may read the files
//! of every app, and for the rules of a sandbox by the PHP host. Invariants: a symbolic link that a PHP user
//! can have made or replaced leads only to what lies below its own directory, such as `current` to
//! `releases/42`; every component is opened from the directory before it, so that a concurrent rename changes
//! the result and skips no check; the path of a result has no link.

#![forbid(unsafe_code)]

mod users;
mod walk;

pub use users::Users;
pub use walk::{Opened, Refusal, open, open_any};
