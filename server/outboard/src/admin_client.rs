//! Requests to a running server over its admin socket.

use outboard_admin_api::{Endpoint, Failure, Method as ApiMethod};
use outboard_http1::Method;
use outboard_http1::client::{Body, Client};
use rustix::process::geteuid;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The admin socket that a server of this user has by default.
pub(crate) fn default_socket() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/run/outboard.sock");
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory).join("outboard.sock"),
        None => std::env::temp_dir().join(format!("outboard-{}.sock", geteuid().as_raw())),
    }
}

/// Maximum time for the response to a GET.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call of the admin API has no reply.
#[derive(Debug)]
pub(crate) enum CallError {
    /// No Outboard server responds at the socket.
    Unreachable(String),
    /// The server refuses, for this reason.
    Refused(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(message) | Self::Refused(message) => out.write_str(message),
        }
    }
}

/// Calls `endpoint` of the server behind `socket`.
pub(crate) fn call<E: Endpoint>(socket: &Path, endpoint: &E) -> Result<E::Reply, CallError> {
    let mut client = AdminClient::connect(socket).map_err(CallError::Unreachable)?;
    if E::METHOD == ApiMethod::Get {
        // A GET only reads state, so a server that does not respond is stuck. A reload takes its
        // time.
        let limited = client.client.stream().set_read_timeout(Some(LOOK_TIMEOUT));
        limited.map_err(|error| CallError::Unreachable(failed(socket, &error)))?;
    }
    let sent = client.request(E::METHOD.as_str(), &endpoint.target(), &[]);
    let Response { status, body } = sent.map_err(CallError::Unreachable)?;
    let foreign = || CallError::Unreachable(foreign(socket));
    if status >= 300 {
        let failure: Failure = serde_json::from_slice(&body).map_err(|_| foreign())?;
        return Err(CallError::Refused(failure.error));
    }
    serde_json::from_slice(&body).map_err(|_| foreign())
}

/// A connection to a server's admin socket.
pub(crate) struct AdminClient {
    socket: PathBuf,
    client: Client<UnixStream>,
}

/// A response with any body.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// The body of a response, as a stream.
pub(crate) type Incoming<'c> = Body<'c, UnixStream>;

impl AdminClient {
    /// Connects to the server behind `socket`.
    ///
    /// # Errors
    /// A sentence for the user, as in all that follows.
    pub(crate) fn connect(socket: &Path) -> Result<Self, String> {
        let stream = UnixStream::connect(socket).map_err(|error| failed(socket, &error))?;
        Ok(Self { socket: socket.to_owned(), client: Client::new(stream) })
    }

    /// Sends a request and reads the whole response.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Response, String> {
        let socket = self.socket.clone();
        let (status, mut incoming) = self.open(method, path, body)?;
        let mut body = Vec::new();
        incoming.read_to_end(&mut body).map_err(|error| {
            format!("the server at {} sent an incomplete response: {error}", socket.display())
        })?;
        Ok(Response { status, body })
    }

    /// Sends a request and gives the status and the body of the response as a stream.
    pub(crate) fn open(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<(u16, Incoming<'_>), String> {
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: admin\r\nContent-Length: {length}\r\n\r\n");
        let method = if method == "HEAD" { Method::Head } else { Method::Get };
        let sent = self.client.send(&[head.as_bytes(), body], method);
        let (head, incoming) = sent.map_err(|error| failed(&self.socket, &error))?;
        Ok((head.status, incoming))
    }
}

fn failed(socket: &Path, error: &io::Error) -> String {
    if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) {
        return foreign(socket);
    }
    format!(
        "no server responds at {}: {error}; check that it is running and that this is its --admin socket",
        socket.display()
    )
}

fn foreign(socket: &Path) -> String {
    format!("the process at {} is not an Outboard server", socket.display())
}
