//! What is written down, and where.

use super::Context;
use crate::raw;
use crate::scalar::FilePath;
use std::path::PathBuf;

/// The logs of the server or of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// A line per request.
    pub access: AccessLog,
    /// What went wrong.
    pub error: ErrorLog,
    /// Requests that took long.
    pub slow: SlowLog,
}

/// A line per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where lines go.
    pub path: LogTarget,
    /// How a line looks.
    pub format: AccessFormat,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLog {
    /// Where lines go.
    pub path: LogTarget,
    /// The least serious message that is written.
    pub level: ErrorLevel,
    /// Lines that a PHP process may write in a second, on average.
    pub lines_per_second: u32,
    /// The same in bytes.
    pub bytes_per_second: u64,
}

/// Requests that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowLog {
    /// Where entries go.
    pub path: LogTarget,
    /// Requests that take longer than this are written down.
    pub threshold_ms: u64,
}

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Nowhere.
    Off,
    /// Appended to this file, which is made when it is missing.
    File(PathBuf),
}

/// How a line of the access log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFormat {
    /// The combined format of Apache and nginx.
    Combined,
    /// A JSON object.
    Json,
}

/// How serious a message is; `Error` is the least talkative level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorLevel {
    /// Something failed.
    Error,
    /// Something looks wrong.
    Warn,
    /// Something changed.
    Info,
    /// Everything.
    Debug,
}

pub(super) fn log(raw: &raw::Log, place: &[&str], context: &mut Context<'_>) -> Log {
    let mut target_of = |section: &str, written: &FilePath| {
        let place = [place, &[section, "path"]].concat();
        target(written, &place, context)
    };
    Log {
        access: AccessLog {
            path: target_of("access", &raw.access.path),
            format: match raw.access.format {
                raw::AccessFormat::Combined => AccessFormat::Combined,
                raw::AccessFormat::Json => AccessFormat::Json,
            },
        },
        error: ErrorLog {
            path: target_of("error", &raw.error.path),
            level: match raw.error.level {
                raw::ErrorLevel::Error => ErrorLevel::Error,
                raw::ErrorLevel::Warn => ErrorLevel::Warn,
                raw::ErrorLevel::Info => ErrorLevel::Info,
                raw::ErrorLevel::Debug => ErrorLevel::Debug,
            },
            lines_per_second: raw.error.lines_per_second,
            bytes_per_second: raw.error.bytes_per_second.0,
        },
        slow: SlowLog {
            path: target_of("slow", &raw.slow.path),
            threshold_ms: raw.slow.threshold.0,
        },
    }
}

fn target(written: &FilePath, place: &[&str], context: &mut Context<'_>) -> LogTarget {
    match written.0.as_str() {
        "stdout" => LogTarget::Stdout,
        "stderr" => LogTarget::Stderr,
        "off" => LogTarget::Off,
        _ => LogTarget::File(context.new_file(place, written)),
    }
}
