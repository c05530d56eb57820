//! `[log]`: what is written down, and where.

use crate::scalar::{ByteSize, FilePath, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is written down, and where.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    /// A line per request.
    #[schemars(extend("x-alias" = ["access_log", "CustomLog"]))]
    pub(crate) access: AccessLog,
    /// What went wrong, PHP's own messages included.
    #[schemars(extend("x-alias" = ["error_log", "ErrorLog", "catch_workers_output"]))]
    pub(crate) error: ErrorLog,
    /// Requests that took long, with PHP's backtrace where there is one.
    #[schemars(extend("x-alias" = ["slowlog"]))]
    pub(crate) slow: SlowLog,
}

/// A line per request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AccessLog {
    /// A file, `"stdout"`, `"stderr"` or `"off"`.
    #[schemars(extend("x-former" = ["to"]))]
    pub(crate) path: FilePath,
    /// How a line looks.
    #[schemars(extend("x-alias" = ["log_format", "access.format", "LogFormat"]))]
    pub(crate) format: AccessFormat,
}

/// How a line of the access log looks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum AccessFormat {
    /// The combined format of Apache and nginx.
    Combined,
    /// A JSON object.
    Json,
}

/// What went wrong.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ErrorLog {
    /// A file, `"stdout"`, `"stderr"` or `"off"`.
    #[schemars(extend("x-former" = ["to"]))]
    pub(crate) path: FilePath,
    /// The least serious message that is written.
    #[schemars(extend("x-alias" = ["log_level", "LogLevel"]))]
    pub(crate) level: ErrorLevel,
    /// Lines that a PHP process may write in a second, on average; twice as many at once. What it
    /// writes beyond that is dropped, and a line says how much.
    #[schemars(range(min = 1))]
    pub(crate) lines_per_second: u32,
    /// The same in bytes.
    #[schemars(extend("x-minimum" = "1 KiB"))]
    pub(crate) bytes_per_second: ByteSize,
}

/// How serious a message is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ErrorLevel {
    /// Something failed.
    Error,
    /// Something looks wrong.
    Warn,
    /// Something changed: a start, a reload, a recycled worker.
    Info,
    /// Everything.
    Debug,
}

/// Requests that took long.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SlowLog {
    /// A file, `"stdout"`, `"stderr"` or `"off"`.
    #[schemars(extend("x-former" = ["to"]))]
    pub(crate) path: FilePath,
    /// Requests that take longer are written down.
    #[schemars(extend("x-former" = ["after"], "x-minimum" = "1ms", "x-alias" = ["request_slowlog_timeout"]))]
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
