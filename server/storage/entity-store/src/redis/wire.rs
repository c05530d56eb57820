//! One connection to a Redis node: commands out, replies in (RESP2).
//!
//! Used by [`super::cluster`] on a thread that may block.

use crate::settings::RedisSettings;
use outboard_resp::{Limits, Reader, Value};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Redis stores up to 512 MiB in one value. The longest reply is CLUSTER SLOTS of a scattered cluster,
/// with a few values for each of 16384 slots.
pub(super) const LIMITS: Limits = Limits { bytes: 513 << 20, values: 1 << 20 };

/// A command as Redis reads it.
pub(crate) fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    outboard_resp::command(&mut out, words);
    out
}

/// A connection. A caller drops it after the first error, because its replies may no longer match its
/// commands.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    reader: Reader,
}

impl Connection {
    /// Connects, and authenticates if a password is configured.
    ///
    /// # Errors
    /// The node cannot be reached, or refuses the password.
    pub(crate) fn open(address: &str, settings: &RedisSettings) -> io::Result<Self> {
        let mut last = io::Error::other("the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => return Self::greet(stream, settings),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn greet(stream: TcpStream, settings: &RedisSettings) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // WAIT may take its own timeout before it replies.
        let timeout = Duration::from_millis(settings.timeout_ms + settings.ack_wait_ms);
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let mut connection = Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            reader: Reader::new(LIMITS),
        };
        if let Some(password) = &settings.password {
            let mut parts: Vec<&[u8]> = vec![b"AUTH"];
            parts.extend(settings.user.as_ref().map(|user| user.as_bytes()));
            parts.push(password.as_bytes());
            match connection.ask(&command(&parts))? {
                Value::Error(why) => return Err(io::Error::other(why)),
                _ => return Ok(connection),
            }
        }
        Ok(connection)
    }

    /// Sends commands. The caller has to receive as many replies.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends one command and receives its reply.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> io::Result<Value> {
        self.send(bytes)?;
        self.receive()
    }

    /// The next reply.
    pub(crate) fn receive(&mut self) -> io::Result<Value> {
        loop {
            let mut input = self.stream.fill_buf()?;
            if input.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let arrived = input.len();
            let value = self.reader.read(&mut input);
            let consumed = arrived - input.len();
            self.stream.consume(consumed);
            let value = value.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if let Some(value) = value {
                return Ok(value);
            }
        }
    }
}
