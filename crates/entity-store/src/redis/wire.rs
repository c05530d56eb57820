//! One connection to a Redis: commands out, replies in (RESP 2).
//!
//! Called by [`super::cluster`] on a thread of its own, so it may wait. Invariant: a connection
//! whose replies no longer fit its commands is never used again; the first error says so and the
//! caller drops it.

use super::RedisSettings;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(1);
/// Longest reply that is read, above what Redis holds in one value.
const REPLY_MAX_BYTES: usize = 513 << 20;
/// Replies within replies.
const DEPTH_MOST: u32 = 8;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Nothing,
    Number(i64),
    Bytes(Vec<u8>),
    List(Vec<Reply>),
    /// Redis refused the command, in its words.
    Refused(String),
}

impl Reply {
    /// The list, if it is one.
    pub(crate) fn into_list(self) -> Vec<Reply> {
        match self {
            Self::List(list) => list,
            _ => Vec::new(),
        }
    }

    /// The bytes, if there are some.
    pub(crate) fn into_bytes(self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// A command as Redis reads it.
pub(crate) fn command(parts: &[&[u8]]) -> Vec<u8> {
    let bytes: usize = parts.iter().map(|part| part.len() + 16).sum();
    let mut out = Vec::with_capacity(bytes + 16);
    write!(out, "*{}\r\n", parts.len()).expect("a Vec takes all");
    for part in parts {
        write!(out, "${}\r\n", part.len()).expect("a Vec takes all");
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects, and says who we are if Redis wants to know.
    ///
    /// # Errors
    /// Nobody answers there, or the password is wrong.
    pub(crate) fn open(address: &str, settings: &RedisSettings) -> io::Result<Self> {
        let mut last = io::Error::other("the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => return Self::greet(stream, settings),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn greet(stream: TcpStream, settings: &RedisSettings) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // WAIT answers within its own time; what takes longer than that has failed.
        let timeout = Duration::from_millis(settings.timeout_ms + settings.ack_wait_ms);
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let mut connection = Self { stream: BufReader::with_capacity(64 << 10, stream) };
        if let Some(password) = &settings.password {
            let mut parts: Vec<&[u8]> = vec![b"AUTH"];
            parts.extend(settings.user.as_ref().map(|user| user.as_bytes()));
            parts.push(password.as_bytes());
            match connection.ask(&command(&parts))? {
                Reply::Refused(why) => return Err(io::Error::other(why)),
                _ => return Ok(connection),
            }
        }
        Ok(connection)
    }

    /// Sends commands; as many replies have to be received.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends one command and receives its reply.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> io::Result<Reply> {
        self.send(bytes)?;
        self.receive()
    }

    /// The next reply.
    pub(crate) fn receive(&mut self) -> io::Result<Reply> {
        read_reply(&mut self.stream, 0)
    }
}

/// Reads a reply.
///
/// # Errors
/// The connection ends, or this is no reply.
pub(super) fn read_reply(from: &mut impl BufRead, depth: u32) -> io::Result<Reply> {
    let mut line = Vec::new();
    from.by_ref().take(64 << 10).read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\r\n").ok_or_else(|| broken("a reply without an end"))?;
    let (kind, rest) = line.split_first().ok_or_else(|| broken("an empty reply"))?;
    Ok(match kind {
        b'+' => Reply::Bytes(rest.to_vec()),
        b'-' => Reply::Refused(String::from_utf8_lossy(rest).into_owned()),
        b':' => Reply::Number(number(rest)?),
        b'$' => match length(rest)? {
            None => Reply::Nothing,
            Some(length) => {
                let mut bytes = Vec::new();
                from.by_ref().take(length as u64 + 2).read_to_end(&mut bytes)?;
                if bytes.len() != length + 2 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                bytes.truncate(length);
                Reply::Bytes(bytes)
            }
        },
        b'*' if depth < DEPTH_MOST => match length(rest)? {
            None => Reply::Nothing,
            Some(count) => {
                let parts = (0..count).map(|_| read_reply(from, depth + 1));
                Reply::List(parts.collect::<io::Result<_>>()?)
            }
        },
        _ => return Err(broken("a reply of an unknown kind")),
    })
}

fn number(digits: &[u8]) -> io::Result<i64> {
    let digits = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    digits.ok_or_else(|| broken("a number that is none"))
}

/// A length; -1 stands for nothing.
fn length(digits: &[u8]) -> io::Result<Option<usize>> {
    let length = number(digits)?;
    if length == -1 {
        return Ok(None);
    }
    let length = usize::try_from(length).ok().filter(|length| *length <= REPLY_MAX_BYTES);
    length.map(Some).ok_or_else(|| broken("a length that is none"))
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Reply> {
        read_reply(&mut io::Cursor::new(bytes), 0)
    }

    #[test]
    fn replies_are_read_as_resp_2_writes_them() {
        assert_eq!(read(b"+OK\r\n").unwrap(), Reply::Bytes(b"OK".to_vec()));
        assert_eq!(read(b":-7\r\n").unwrap(), Reply::Number(-7));
        assert_eq!(read(b"$2\r\n\r\n\r\n").unwrap(), Reply::Bytes(b"\r\n".to_vec()));
        assert_eq!(read(b"$-1\r\n").unwrap(), Reply::Nothing);
        assert_eq!(read(b"-MOVED 1 a:1\r\n").unwrap(), Reply::Refused("MOVED 1 a:1".to_owned()));
        let list = Reply::List(vec![Reply::Number(1), Reply::List(vec![]), Reply::Nothing]);
        assert_eq!(read(b"*3\r\n:1\r\n*0\r\n$-1\r\n").unwrap(), list);
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        let nested = b"*1\r\n".repeat(20);
        for bytes in [&b""[..], b"\r\n", b"+OK", b"?\r\n", b"$3\r\nab", b"$-2\r\n", b":x\r\n"] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
        assert!(read(b"$99999999999\r\n").is_err());
        assert!(read(&nested).is_err());
    }

    #[test]
    fn a_command_names_the_length_of_each_part() {
        assert_eq!(command(&[b"GET", b"a\r\n"]), b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n");
    }
}
