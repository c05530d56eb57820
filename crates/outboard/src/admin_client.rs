//! Talking to a running server over its admin socket.

use outboard_http1::{HeadLimits, HeadStatus, ResponseParser};
use rustix::process::geteuid;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a server of this user has its admin socket unless told otherwise.
pub(crate) fn default_socket() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/run/outboard.sock");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => PathBuf::from(folder).join("outboard.sock"),
        None => std::env::temp_dir().join(format!("outboard-{}.sock", geteuid().as_raw())),
    }
}

/// How long a server may take to say how it is.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// A server's answer.
pub(crate) struct AdminAnswer {
    pub(crate) status: u16,
    pub(crate) body: serde_json::Value,
}

/// Asks the server behind `socket`.
///
/// # Errors
/// A sentence for the person who asked.
pub(crate) fn ask(socket: &Path, method: &str, path: &str) -> Result<AdminAnswer, String> {
    let unreachable = |error: std::io::Error| {
        format!(
            "no server answers at {}: {error}; is it running, and is this its --admin socket?",
            socket.display()
        )
    };
    let mut stream = UnixStream::connect(socket).map_err(unreachable)?;
    if method == "GET" {
        // What is only looked up is there at once, or the server is stuck. A reload takes its time.
        stream.set_read_timeout(Some(LOOK_TIMEOUT)).map_err(unreachable)?;
    }
    let request = format!("{method} {path} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(unreachable)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(unreachable)?;
    parse(&answer)
        .ok_or_else(|| format!("what answers at {} is not an Outboard server", socket.display()))
}

fn parse(answer: &[u8]) -> Option<AdminAnswer> {
    let mut head = ResponseParser::new();
    let Ok(HeadStatus::Complete { head_len }) = head.parse(answer, &HeadLimits::default()) else {
        return None;
    };
    let body = serde_json::from_slice(&answer[head_len..]).ok()?;
    Some(AdminAnswer { status: head.status(), body })
}
