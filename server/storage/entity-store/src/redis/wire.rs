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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    /// A node that replies so to its one connection, in pieces, and closes it; what it has received.
    fn node(pieces: &'static [&'static str]) -> (String, JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            pieces.iter().for_each(|piece| stream.write_all(piece.as_bytes()).unwrap());
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut received = Vec::new();
            let _ = stream.read_to_end(&mut received);
            received
        });
        (address, thread)
    }

    fn settings(user: Option<&str>, password: Option<&str>) -> RedisSettings {
        RedisSettings {
            nodes: Vec::new(),
            user: user.map(str::to_owned),
            password: password.map(str::to_owned),
            prefix: String::new(),
            copies: 1,
            ack_wait_ms: 0,
            timeout_ms: 10_000,
        }
    }

    #[test]
    fn replies_in_pieces_are_read_one_by_one_up_to_the_end() {
        let (address, node) = node(&["$5\r\nhe", "llo\r\n:1", "2\r\n*1\r\n$", "-1\r\n$3\r\ncut"]);
        let mut connection = Connection::open(&address, &settings(None, None)).unwrap();
        connection.send(&command(&[b"GET", b"a"])).unwrap();
        assert_eq!(connection.receive().unwrap(), Value::Bytes(b"hello".to_vec()));
        assert_eq!(connection.receive().unwrap(), Value::Integer(12));
        assert_eq!(connection.receive().unwrap(), Value::Array(vec![Value::Null]));
        let error = connection.receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        drop(connection);
        assert_eq!(node.join().unwrap(), b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
    }

    #[test]
    fn bytes_that_are_no_reply_are_an_error_with_a_source() {
        for reply in [&["HTTP/1.1 400 Bad Request\r\n"], &["$-7\r\n"], &["*999999999999\r\n"]] {
            let (address, node) = node(reply);
            let mut connection = Connection::open(&address, &settings(None, None)).unwrap();
            let error = connection.receive().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{reply:?}");
            assert!(error.get_ref().is_some());
            drop(connection);
            node.join().unwrap();
        }
    }

    #[test]
    fn credentials_are_sent_first_and_a_refusal_is_the_error() {
        for (user, sent) in [
            (None, &b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"[..]),
            (Some("app"), b"*3\r\n$4\r\nAUTH\r\n$3\r\napp\r\n$6\r\nsecret\r\n"),
        ] {
            let settings = settings(user, Some("secret"));
            let (address, accepts) = node(&["+OK\r\n"]);
            drop(Connection::open(&address, &settings).unwrap());
            assert_eq!(accepts.join().unwrap(), sent);
            let (address, refuses) = node(&["-WRONGPASS invalid\r\n"]);
            let error = Connection::open(&address, &settings).unwrap_err();
            assert_eq!(error.to_string(), "WRONGPASS invalid");
            assert_eq!(refuses.join().unwrap(), sent);
        }
    }

    #[test]
    fn a_node_that_does_not_reply_ends_the_wait_by_its_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let settings = RedisSettings { timeout_ms: 20, ..settings(None, Some("secret")) };
        let error = Connection::open(&address, &settings).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        drop(listener);
        let error = Connection::open(&address, &settings).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(Connection::open("no port", &settings).is_err());
    }

    #[test]
    fn a_probe_needs_one_node_and_reports_the_first_that_fails() {
        let probe =
            |nodes: Vec<String>| crate::probe(&RedisSettings { nodes, ..settings(None, None) });
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (locked, refuses) = node(&["-NOAUTH Authentication required.\r\n"]);
        let error = probe(vec![locked.clone(), closed.clone()]).unwrap_err();
        assert_eq!(error, format!("{locked}: NOAUTH Authentication required."));
        refuses.join().unwrap();
        let (open, accepts) = node(&["+PONG\r\n"]);
        assert_eq!(probe(vec![closed, open]), Ok(()));
        assert_eq!(accepts.join().unwrap(), b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(probe(vec![]), Ok(()), "there is nothing to check");
    }
}
