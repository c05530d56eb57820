//! The access, error and slow logs.

use super::Context;
use crate::diagnostic::Kind;
use crate::raw;
use crate::scalar::{Fault, FilePath};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where syslog usually receives.
const DEV_LOG: &str = "/dev/log";

/// The logs of the server or of one app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The access log.
    pub access: AccessLog,
    /// The error log.
    pub error: ErrorLog,
    /// The slow log.
    pub slow: SlowLog,
    /// When files are renamed.
    pub rotate: LogRotation,
}

/// When log files are renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRotation {
    /// Size from which a file is renamed; 0: any.
    pub size_bytes: u64,
    /// Age from which a file is renamed; 0: any.
    pub age_ms: u64,
    /// The number of renamed files that are stored.
    pub keep: u32,
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
    /// The journal of systemd.
    Journal,
    /// Syslog on a Unix socket.
    SyslogUnix(PathBuf),
    /// Syslog over UDP.
    SyslogUdp(SocketAddr),
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
        rotate: LogRotation {
            size_bytes: raw.rotate.size.0,
            age_ms: raw.rotate.age.0,
            keep: raw.rotate.keep,
        },
    }
}

fn target(written: &FilePath, place: &[&str], context: &mut Context<'_>) -> LogTarget {
    match written.0.as_str() {
        "stdout" => LogTarget::Stdout,
        "stderr" => LogTarget::Stderr,
        "off" => LogTarget::Off,
        "journald" => LogTarget::Journal,
        "syslog" => LogTarget::SyslogUnix(PathBuf::from(DEV_LOG)),
        text => match text.strip_prefix("syslog:") {
            Some(receiver) => syslog(receiver, place, context),
            None => LogTarget::File(context.new_file(place, written)),
        },
    }
}

fn syslog(receiver: &str, place: &[&str], context: &mut Context<'_>) -> LogTarget {
    let path = receiver.strip_prefix("unix:").filter(|path| path.starts_with('/'));
    let address = receiver.strip_prefix("udp:").and_then(|address| address.parse().ok());
    match (path, address) {
        (Some(path), _) => LogTarget::SyslogUnix(PathBuf::from(path)),
        (None, Some(address)) => LogTarget::SyslogUdp(address),
        (None, None) => {
            let fault = Fault::new(format!("`{receiver}` is not a receiver of syslog"))
                .hint("write \"syslog\", \"syslog:unix:/dev/log\" or \"syslog:udp:127.0.0.1:514\"");
            context.value(place, Kind::BadValue, fault);
            LogTarget::Off
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use std::path::Path;

    fn target_of(written: &str) -> Option<LogTarget> {
        let text = format!("[app.a]\nroot = \"/tmp\"\n[log.error]\npath = \"{written}\"\n");
        Some(Config::parse(&text, Path::new("/tmp/test.toml")).ok()?.log.error.path)
    }

    #[test]
    fn a_log_can_go_to_the_journal_or_to_syslog() {
        let syslog = |path: &str| Some(LogTarget::SyslogUnix(PathBuf::from(path)));
        let udp = |address: &str| Some(LogTarget::SyslogUdp(address.parse().expect("an address")));
        assert_eq!(target_of("journald"), Some(LogTarget::Journal));
        assert_eq!(target_of("syslog"), syslog("/dev/log"));
        assert_eq!(target_of("syslog:unix:/run/log"), syslog("/run/log"));
        assert_eq!(target_of("syslog:udp:127.0.0.1:514"), udp("127.0.0.1:514"));
        assert_eq!(target_of("syslog:udp:[::1]:514"), udp("[::1]:514"));
        for bad in ["syslog:", "syslog:unix:run/log", "syslog:udp:localhost", "syslog:tcp:[::1]:1"]
        {
            assert_eq!(target_of(bad), None, "{bad}");
        }
        assert_eq!(target_of("/tmp/syslog"), Some(LogTarget::File(PathBuf::from("/tmp/syslog"))));
    }
}
