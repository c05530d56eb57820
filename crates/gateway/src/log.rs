//! The error log and the access log.
//!
//! Written by every part of the gateway; lines are collected and flushed once a turn of the
//! housekeeping task, errors at once. Invariant: one event is one line, whatever it contains
//! (control characters are escaped), so a request cannot forge a log entry.

mod access;
mod error;
mod sink;
mod timestamp;

pub(crate) use access::{AccessEntry, AccessLog};
pub(crate) use error::{ErrorLog, Event, Level};
pub(crate) use sink::{Sink, Target};
pub(crate) use timestamp::Wall;
