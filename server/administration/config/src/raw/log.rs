//! `[log]`: the access, error and slow logs.

use crate::scalar::{ByteSize, FilePath, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The access, error and slow logs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// The access log: a line per request.
    #[schemars(extend("x-alias" = ["access_log", "CustomLog"]))]
    pub(crate) access: AccessLog,
    /// The error log, which includes the messages of PHP.
    #[schemars(extend("x-alias" = ["error_log", "ErrorLog", "catch_workers_output"]))]
    pub(crate) error: ErrorLog,
    /// The slow log: requests that took long, with PHP's backtrace if available.
    #[schemars(extend("x-alias" = ["slowlog"]))]
    pub(crate) slow: SlowLog,
    /// When log files are renamed. Default: never.
    #[schemars(extend("x-alias" = ["rotation", "logrotate"]))]
    pub(crate) rotate: LogRotation,
}

/// When log files are renamed: `access.log` to `access.log.1`, that to `access.log.2`. Of logs that
/// share a file, the settings of the first section apply, that of the server before those of apps.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogRotation {
    /// Size from which a file is renamed. `0`: any size.
    #[schemars(extend("x-alias" = ["roll_size", "maxsize"]))]
    pub(crate) size: ByteSize,
    /// Age from which a file is renamed. `0`: any age.
    #[schemars(extend("x-alias" = ["daily", "maxage"]))]
    pub(crate) age: Period,
    /// Number of renamed files that are stored.
    #[schemars(range(min = 1, max = 1000), extend("x-alias" = ["roll_keep", "rotate"]))]
    pub(crate) keep: u32,
}

impl Default for LogRotation {
    fn default() -> Self {
        Self { size: ByteSize(0), age: Period(0), keep: 7 }
    }
}

/// The access log: a line per request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AccessLog {
    /// A file, `"stdout"`, `"stderr"`, `"off"`, `"journald"`, `"syslog"`, `"syslog:unix:PATH"` or
    /// `"syslog:udp:ADDRESS:PORT"`.
    pub(crate) path: FilePath,
    /// Format of a line.
    #[schemars(extend("x-alias" = ["log_format", "access.format", "LogFormat"]))]
    pub(crate) format: AccessFormat,
}

/// Format of a line of the access log.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum AccessFormat {
    /// The combined format of Apache and nginx.
    Combined,
    /// One JSON object per line.
    Json,
}

/// The error log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ErrorLog {
    /// A file, `"stdout"`, `"stderr"`, `"off"`, `"journald"`, `"syslog"`, `"syslog:unix:PATH"` or
    /// `"syslog:udp:ADDRESS:PORT"`.
    pub(crate) path: FilePath,
    /// Minimum severity of logged messages.
    #[schemars(extend("x-alias" = ["log_level", "LogLevel"]))]
    pub(crate) level: ErrorLevel,
    /// Maximum average number of lines per second from one PHP process, with bursts of twice as
    /// many. Further output is dropped, and a line reports how much.
    #[schemars(range(min = 1))]
    pub(crate) lines_per_second: u32,
    /// The same limit in bytes per second.
    #[schemars(extend("x-minimum" = "1 KiB"))]
    pub(crate) bytes_per_second: ByteSize,
}

/// Severity of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ErrorLevel {
    /// Failures.
    Error,
    /// Failures, and conditions that look wrong.
    Warn,
    /// Also state changes: a start, a reload, a replaced worker.
    Info,
    /// Everything.
    Debug,
}

/// The slow log.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SlowLog {
    /// A file, `"stdout"`, `"stderr"`, `"off"`, `"journald"`, `"syslog"`, `"syslog:unix:PATH"` or
    /// `"syslog:udp:ADDRESS:PORT"`.
    pub(crate) path: FilePath,
    /// Requests that take longer are logged.
    #[schemars(extend("x-minimum" = "1ms", "x-alias" = ["request_slowlog_timeout"]))]
    pub(crate) threshold: Period,
}

impl Default for AccessLog {
    fn default() -> Self {
        AccessLog { path: FilePath("stdout".to_owned()), format: AccessFormat::Combined }
    }
}

impl Default for ErrorLog {
    fn default() -> Self {
        ErrorLog {
            path: FilePath("stderr".to_owned()),
            level: ErrorLevel::Info,
            lines_per_second: 1_000,
            bytes_per_second: ByteSize(1 << 20),
        }
    }
}

impl Default for SlowLog {
    fn default() -> Self {
        SlowLog { path: FilePath("stderr".to_owned()), threshold: Period(5_000) }
    }
}
