//! A connection as plain bytes: what is sent is what the test wrote, what came is kept as it is.
//!
//! [`Connection`](crate::Connection) understands responses; this asserts their very bytes.

use crate::{Protocol, tcp};
use regex::Regex;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::LazyLock;

/// A TCP connection.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
}

impl Wire {
    /// Connects.
    #[track_caller]
    pub fn open(address: SocketAddr) -> Wire {
        let stream = tcp::connect(address);
        stream.set_nodelay(true).expect("a TCP socket has the option");
        Wire { stream }
    }

    /// Sends bytes, in a segment of their own as far as TCP allows.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.stream.write_all(bytes.as_ref());
        sent.unwrap_or_else(|error| panic!("the server does not read: {error}"));
    }

    /// Says that nothing more will be sent; reading goes on.
    pub fn finish_sending(&mut self) {
        // The server may have closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads a head with its empty line, not a byte further.
    #[track_caller]
    pub fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let byte = self.exactly(1);
            head.extend_from_slice(&byte);
        }
        undated(&head)
    }

    /// Reads this many bytes.
    #[track_caller]
    pub fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.stream.read_exact(&mut bytes);
        read.unwrap_or_else(|error| panic!("the server sends no {count} bytes more: {error}"));
        bytes
    }

    /// Reads exactly these bytes.
    #[track_caller]
    pub fn expect(&mut self, bytes: &str) {
        let came = self.exactly(bytes.len());
        assert_eq!(String::from_utf8_lossy(&came), bytes);
    }

    /// Reads exactly this answer; its `Date` is passed over.
    #[track_caller]
    pub fn expect_undated(&mut self, answer: &str) {
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        let head = Protocol::of_run().lines(head);
        assert_eq!(self.head(), format!("{head}\r\n\r\n"));
        self.expect(body);
    }

    /// Reads until the server has closed its side in an orderly way; a reset is a failure.
    #[track_caller]
    pub fn to_end(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self.stream.read_to_end(&mut bytes);
        if let Err(error) = read {
            panic!("no orderly end: {error}, after {:?}", undated(&bytes));
        }
        undated(&bytes)
    }

    /// Waits until the server has let go of the connection, in whatever way, and returns what came.
    #[track_caller]
    pub fn to_any_end(&mut self) -> Vec<u8> {
        tcp::read_to_any_end(&mut self.stream)
    }
}

/// The text without the one thing that changes from run to run.
fn undated(bytes: &[u8]) -> String {
    static DATE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("Date: [A-Z][a-z]{2}, [^\r]* GMT\r\n").expect("it is valid"));
    DATE.replace_all(&String::from_utf8_lossy(bytes), "").into_owned()
}
