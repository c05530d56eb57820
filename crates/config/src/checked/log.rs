//! The access, error and slow logs.

use super::Context;
use crate::raw;
use crate::scalar::FilePath;
use std::path::PathBuf;

/// The logs of the server or of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The access log.
    pub access: AccessLog,
    /// The error log.
    pub error: ErrorLog,
    /// The slow log.
    pub slow: SlowLog,
}

/// The access log: a line per request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Its destination.
    pub path: LogTarget,
    /// Format of a line.
    pub format: AccessFormat,
}

/// The error log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorLog {
    /// Its destination.
    pub path: LogTarget,
    /// Minimum severity of logged messages.
    pub level: ErrorLevel,
    /// Maximum average number of lines per second from one PHP process.
    pub lines_per_second: u32,
    /// The same limit in bytes per second.
    pub bytes_per_second: u64,
}

/// The slow log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowLog {
    /// Its destination.
    pub path: LogTarget,
    /// Requests that take longer are logged.
    pub threshold_ms: u64,
}

/// Destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Nowhere.
    Off,
    /// Appended to this file, which is created if missing.
    File(PathBuf),
}

/// Format of a line of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFormat {
    /// The combined format of Apache and nginx.
    Combined,
    /// One JSON object per line.
    Json,
}

/// Severity of a message; `Error` logs the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorLevel {
    /// Failures.
    Error,
    /// Conditions that look wrong.
    Warn,
    /// State changes.
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
