//! Talking to a running server over its admin socket.

use outboard_admin_api::{Endpoint, Failure, Method as ApiMethod};
use outboard_http1::{
    Chunk, ChunkLimits, ChunkedDecoder, HeadLimits, HeadStatus, Method, ResponseBody,
    ResponseParser,
};
use rustix::process::geteuid;
use std::fmt;
use std::io::{self, Read, Write};
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

/// Why a call of the admin API has no reply.
#[derive(Debug)]
pub(crate) enum CallError {
    /// No Outboard server answers at the socket.
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
        // What is only read is there at once, or the server is stuck. A reload takes its time.
        let limited = client.stream.set_read_timeout(Some(LOOK_TIMEOUT));
        limited.map_err(|error| CallError::Unreachable(unreachable(socket, &error)))?;
    }
    let sent = client.ask(E::METHOD.as_str(), &endpoint.target(), &[]);
    let Answer { status, body } = sent.map_err(CallError::Unreachable)?;
    let foreign = || CallError::Unreachable(client.is_foreign());
    if status >= 300 {
        let failure: Failure = serde_json::from_slice(&body).map_err(|_| foreign())?;
        return Err(CallError::Refused(failure.error));
    }
    serde_json::from_slice(&body).map_err(|_| foreign())
}

/// A connection to a server's admin socket.
pub(crate) struct AdminClient {
    socket: PathBuf,
    stream: UnixStream,
    /// Bytes that were read and not yet used.
    input: Vec<u8>,
}

/// An answer with any body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl AdminClient {
    /// Connects to the server behind `socket`.
    ///
    /// # Errors
    /// As of all that follows: a sentence for the person who asked.
    pub(crate) fn connect(socket: &Path) -> Result<Self, String> {
        let stream = UnixStream::connect(socket).map_err(|error| unreachable(socket, &error))?;
        Ok(Self { socket: socket.to_owned(), stream, input: Vec::new() })
    }

    /// Asks, and reads all of the answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Answer, String> {
        let (status, mut incoming) = self.open(method, path, body)?;
        let mut body = Vec::new();
        incoming.read_to_end(&mut body).map_err(|error| incoming.cut(&error))?;
        Ok(Answer { status, body })
    }

    /// Asks, and gives the answer's body to read.
    pub(crate) fn open(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<(u16, Incoming<'_>), String> {
        let length = body.len();
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: admin\r\nContent-Length: {length}\r\n\r\n");
        let sent = self.stream.write_all(request.as_bytes());
        sent.and_then(|()| self.stream.write_all(body)).map_err(|error| self.lost(&error))?;
        let mut head = ResponseParser::new();
        let head_len = loop {
            match head.parse(&self.input, &HeadLimits::default()) {
                Ok(HeadStatus::Complete { head_len }) => break head_len,
                Ok(HeadStatus::Partial) => {}
                Err(_) => return Err(self.is_foreign()),
            }
            if self.read_more().map_err(|error| self.lost(&error))? == 0 {
                return Err(self.is_foreign());
            }
        };
        let method = if method == "HEAD" { Method::Head } else { Method::Get };
        let framing = head.body(method);
        self.input.drain(..head_len);
        let left = match framing {
            ResponseBody::None => Left::Bytes(0),
            ResponseBody::Length(length) => Left::Bytes(length),
            ResponseBody::Chunked => {
                Left::Chunks(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
            }
            ResponseBody::UntilClose => return Err(self.is_foreign()),
        };
        Ok((head.status(), Incoming { client: self, left }))
    }

    fn read_more(&mut self) -> io::Result<usize> {
        let mut piece = [0; 64 << 10];
        let count = self.stream.read(&mut piece)?;
        self.input.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    fn lost(&self, error: &io::Error) -> String {
        unreachable(&self.socket, error)
    }

    fn is_foreign(&self) -> String {
        format!("what answers at {} is not an Outboard server", self.socket.display())
    }
}

fn unreachable(socket: &Path, error: &io::Error) -> String {
    format!(
        "no server answers at {}: {error}; is it running, and is this its --admin socket?",
        socket.display()
    )
}

/// The body of an answer, as it comes.
pub(crate) struct Incoming<'c> {
    client: &'c mut AdminClient,
    left: Left,
}

enum Left {
    Bytes(u64),
    Chunks(Box<ChunkedDecoder>),
}

impl Incoming<'_> {
    /// What to say of a body that ends too soon.
    pub(crate) fn cut(&self, error: &io::Error) -> String {
        format!("the server at {} broke off its answer: {error}", self.client.socket.display())
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = &mut self.client.input;
            match &mut self.left {
                Left::Bytes(0) => return Ok(0),
                Left::Bytes(left) if !input.is_empty() => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX);
                    let count = out.len().min(input.len()).min(most);
                    out[..count].copy_from_slice(&input[..count]);
                    input.drain(..count);
                    *left -= count as u64;
                    return Ok(count);
                }
                Left::Bytes(_) => {}
                Left::Chunks(decoder) => {
                    let most = input.len().min(out.len());
                    let chunk = decoder.decode(&input[..most]);
                    match chunk.map_err(|error| io::Error::other(error.to_string()))? {
                        Chunk::Data { range } => {
                            let count = range.len();
                            out[..count].copy_from_slice(&input[range.clone()]);
                            input.drain(..range.end);
                            return Ok(count);
                        }
                        Chunk::End { consumed } => {
                            input.drain(..consumed);
                            self.left = Left::Bytes(0);
                            return Ok(0);
                        }
                        Chunk::NeedMore => {
                            input.drain(..most);
                        }
                    }
                }
            }
            if self.client.input.is_empty() && self.client.read_more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
