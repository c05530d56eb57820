//! The error log, the access log, and the reasons of refused requests.
//!
//! Every part of the gateway writes to them. Lines are buffered; the housekeeping task flushes them
//! once per turn, errors are written at once. Invariant: one event is one line, whatever it contains
//! (control characters are escaped), so a request cannot forge a log entry.

#![forbid(unsafe_code)]

mod access;
mod datagrams;
mod entry;
mod error;
mod format;
mod opener;
mod reason;
mod rotation;
mod sink;
mod sink_target;
mod timestamp;

pub use access::AccessLog;
pub use datagrams::Receiver;
pub use entry::{AccessEntry, Headers, TlsEntry, TraceEntry};
pub use error::{ErrorLog, Event, Level};
pub use format::{AccessFormat, InvalidTemplate, Template};
pub use opener::Opener;
pub use reason::Reason;
pub use rotation::Rotation;
pub use sink::Sink;
pub use sink_target::{SinkTarget, Target};
pub use timestamp::Wall;
