//! `[log]`: the access, error and slow logs.

use super::table::table;
use crate::scalar::{As, ByteSize, FilePath, Form, LogFormat, Period};
use outboard_log::AccessFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where syslog usually receives.
const DEV_LOG: &str = "/dev/log";

/// The access, error and slow logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// The access log: a line per request.
    #[schemars(extend("x-alias" = ["access_log", "CustomLog"]))]
    pub access: AccessLog,
    /// The error log, which includes the messages of PHP.
    #[schemars(extend("x-alias" = ["error_log", "ErrorLog", "catch_workers_output"]))]
    pub error: ErrorLog,
    /// The slow log: requests that took long, with PHP's backtrace if available.
    #[schemars(extend("x-alias" = ["slowlog"]))]
    pub slow: SlowLog,
    /// When log files are renamed. Default: never.
    #[schemars(extend("x-alias" = ["rotation", "logrotate"]))]
    pub rotate: LogRotation,
}

table! {
    /// When log files are renamed: `access.log` to `access.log.1`, that to `access.log.2`. Of logs that
    /// share a file, the settings of the first section apply, that of the server before those of apps.
    #[derive(Copy, PartialEq, Eq)]
    pub struct LogRotation {
        /// Size from which a file is renamed. `0`: any size.
        #[schemars(extend("x-alias" = ["roll_size", "maxsize"]))]
        #[serde(rename = "size", with = "As::<ByteSize>")]
        pub size_bytes: u64 = 0,
        /// Age from which a file is renamed. `0`: any age.
        #[schemars(extend("x-alias" = ["daily", "maxage"]))]
        #[serde(rename = "age", with = "As::<Period>")]
        pub age_ms: u64 = 0,
        /// Number of renamed files that are stored.
        #[schemars(range(min = 1, max = 1000), extend("x-alias" = ["roll_keep", "rotate"]))]
        pub keep: u32 = 7,
    }
}

table! {
    /// The access log: a line per request.
    #[derive(PartialEq, Eq)]
    pub struct AccessLog {
        /// A file, `"stdout"`, `"stderr"`, `"off"`, `"journald"`, `"syslog"`, `"syslog:unix:PATH"` or
        /// `"syslog:udp:ADDRESS:PORT"`.
        #[serde(with = "As::<LogPath>")]
        pub path: LogTarget = LogTarget::Stdout,
        /// Format of a line: `"combined"`, that of Apache and nginx; `"json"`, one JSON object per line; or a text with
        /// fields in braces: `'{client} {header:Host} "{method} {target}" {status} {duration_s}'`. A missing value is `-`.
        #[schemars(extend("x-alias" = ["log_format", "access.format", "LogFormat"]))]
        #[serde(with = "As::<LogFormat>")]
        pub format: AccessFormat = AccessFormat::Combined,
    }
}

table! {
    /// The error log.
    #[derive(PartialEq, Eq)]
    pub struct ErrorLog {
        /// A file, `"stdout"`, `"stderr"`, `"off"`, `"journald"`, `"syslog"`, `"syslog:unix:PATH"` or
        /// `"syslog:udp:ADDRESS:PORT"`.
        #[serde(with = "As::<LogPath>")]
        pub path: LogTarget = LogTarget::Stderr,
        /// Minimum severity of logged messages.
        #[schemars(extend("x-alias" = ["log_level", "LogLevel"]))]
        pub level: ErrorLevel = ErrorLevel::Info,
        /// Maximum average number of lines per second from one PHP process, with bursts of twice as
        /// many. Further output is dropped, and a line reports how much.
        #[schemars(range(min = 1))]
        pub lines_per_second: u32 = 1_000,
        /// The same limit in bytes per second.
        #[schemars(extend("x-minimum" = "1 KiB"))]
        #[serde(with = "As::<ByteSize>")]
        pub bytes_per_second: u64 = 1 << 20,
    }
}

/// Severity of a message.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ErrorLevel {
    /// Failures.
    Error,
    /// Failures, and conditions that look wrong.
    Warn,
    /// Also state changes: a start, a reload, a replaced worker.
    Info,
    /// Everything.
    Debug,
}

table! {
    /// The slow log.
    #[derive(PartialEq, Eq)]
    pub struct SlowLog {
        /// A file, `"stdout"`, `"stderr"`, `"off"`, `"journald"`, `"syslog"`, `"syslog:unix:PATH"` or
        /// `"syslog:udp:ADDRESS:PORT"`.
        #[serde(with = "As::<LogPath>")]
        pub path: LogTarget = LogTarget::Stderr,
        /// Requests that take longer are logged.
        #[schemars(extend("x-minimum" = "1ms", "x-alias" = ["request_slowlog_timeout"]))]
        #[serde(rename = "threshold", with = "As::<Period>")]
        pub threshold_ms: u64 = 5_000,
    }
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

/// How a destination is written. An invalid receiver of syslog is a file until it is checked.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
struct LogPath(FilePath);

impl Form for LogPath {
    type Plain = LogTarget;

    fn plain(self) -> LogTarget {
        let receiver = self.0.0.strip_prefix("syslog:");
        let path = receiver.and_then(|receiver| receiver.strip_prefix("unix:"));
        let address = receiver.and_then(|receiver| receiver.strip_prefix("udp:")?.parse().ok());
        match (self.0.0.as_str(), path.filter(|path| path.starts_with('/')), address) {
            ("stdout", ..) => LogTarget::Stdout,
            ("stderr", ..) => LogTarget::Stderr,
            ("off", ..) => LogTarget::Off,
            ("journald", ..) => LogTarget::Journal,
            ("syslog", ..) => LogTarget::SyslogUnix(DEV_LOG.into()),
            (_, Some(path), _) => LogTarget::SyslogUnix(path.into()),
            (_, _, Some(address)) => LogTarget::SyslogUdp(address),
            (path, None, None) => LogTarget::File(path.into()),
        }
    }

    fn of(plain: &LogTarget) -> Self {
        Self(FilePath(match plain {
            LogTarget::Stdout => "stdout".to_owned(),
            LogTarget::Stderr => "stderr".to_owned(),
            LogTarget::Off => "off".to_owned(),
            LogTarget::Journal => "journald".to_owned(),
            LogTarget::SyslogUnix(path) if path.as_os_str() == DEV_LOG => "syslog".to_owned(),
            LogTarget::SyslogUnix(path) => format!("syslog:unix:{}", path.display()),
            LogTarget::SyslogUdp(address) => format!("syslog:udp:{address}"),
            LogTarget::File(path) => path.to_string_lossy().into_owned(),
        }))
    }
}
