//! What a program's server is to be, as the program says at its start.

use rustix::io::{FdFlags, fcntl_setfd};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, ExitCode};

/// `swoole/runtime/Server.php` writes it.
#[derive(Debug, Deserialize)]
pub struct Description {
    /// `http`, `websocket`, `redis` or `server`.
    pub(crate) class: String,
    /// `SWOOLE_BASE` or `SWOOLE_PROCESS`.
    #[serde(default)]
    pub(crate) mode: u64,
    /// The first is the server's own.
    pub(crate) ports: Vec<Port>,
    /// Those of `set()`; true for what JSON cannot hold.
    pub(crate) settings: Map<String, Value>,
    /// Options that Swoole does not have.
    #[serde(default)]
    pub(crate) unknown: Vec<String>,
    /// Events that have a callback, in lower case.
    pub(crate) handlers: Vec<String>,
    /// Whether a port has a callback of its own for requests.
    #[serde(default)]
    pub(crate) handles_requests: bool,
}

/// An address that the server is to listen on.
#[derive(Debug, Deserialize)]
pub(crate) struct Port {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `SWOOLE_SOCK_*`
    #[serde(rename = "type")]
    pub(crate) kind: u32,
    pub(crate) ssl: bool,
    /// Whether its clients speak HTTP.
    pub(crate) http: bool,
    /// Whether a callback receives what comes on it, if it is not HTTP.
    pub(crate) receives: bool,
    pub(crate) settings: Map<String, Value>,
}

/// The longest description that is read.
const MOST_BYTES: u64 = 1 << 20;

/// How the first run of a program has ended.
pub enum Described {
    /// At its last line, or by an error.
    Ended(ExitCode),
    /// At the start of its server.
    Server(Description),
}

/// Runs the program up to the start of its server, as this user and group if they are others than this process.
///
/// # Errors
/// It cannot be run, or its description is not understood.
pub fn describe(
    host: &Path,
    script: &Path,
    arguments: &[String],
    user: Option<(u32, u32)>,
    ini: &[(String, String)],
) -> Result<Described, String> {
    let cannot = |error: std::io::Error| format!("{} cannot be run: {error}", script.display());
    let (reader, writer) = std::io::pipe().map_err(cannot)?;
    let writer = OwnedFd::from(writer);
    // Only this child inherits it: no other is started meanwhile.
    fcntl_setfd(&writer, FdFlags::empty()).map_err(|error| cannot(error.into()))?;
    let mut command = Command::new(host);
    if let Some((uid, gid)) = user {
        command.arg("--user").arg(format!("{uid}:{gid}"));
    }
    command.arg("run").arg(writer.as_raw_fd().to_string());
    for (name, value) in ini {
        command.arg("-d").arg(format!("{name}={value}"));
    }
    command.arg(script).args(arguments);
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", host.display()))?;
    drop(writer);
    let mut text = Vec::new();
    let read = File::from(OwnedFd::from(reader)).take(MOST_BYTES).read_to_end(&mut text);
    let status = child.wait().map_err(cannot)?;
    read.map_err(cannot)?;
    if text.is_empty() {
        let code = status.code().map_or(1, |code| u8::try_from(code & 0xff).unwrap_or(1));
        return Ok(Described::Ended(ExitCode::from(code)));
    }
    let description = serde_json::from_slice(&text).map_err(|error| {
        format!("what the program says of its server is not understood: {error}")
    })?;
    Ok(Described::Server(description))
}

impl Description {
    /// Whether requests have a callback, of the server or of a port.
    pub(crate) fn has_request_handler(&self) -> bool {
        self.handles_requests || self.handlers.iter().any(|event| event == "request")
    }

    /// An option of `set()` that is neither false nor missing.
    pub fn is_on(&self, name: &str) -> bool {
        self.settings.get(name).is_some_and(is_true)
    }

    /// An option that is a text with something in it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.settings.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// An option that is a number, or a text of one.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.settings.get(name)? {
            Value::Number(number) => {
                number.as_u64().or_else(|| number.as_f64().map(|real| real.max(0.0) as u64))
            }
            Value::String(text) => text.trim().parse().ok(),
            Value::Bool(true) => Some(1),
            _ => None,
        }
    }
}

/// Whether [`Description::number`] understands it.
pub(crate) fn is_number(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().parse::<u64>().is_ok(),
        Value::Array(_) | Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// As PHP decides.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty() && text != "0",
        Value::Array(values) => !values.is_empty(),
        Value::Bool(true) | Value::Object(_) => true,
    }
}
