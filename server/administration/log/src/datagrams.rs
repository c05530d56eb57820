//! [`Datagrams`]: a log whose lines are messages of syslog (RFC 5424) or of systemd's journal.
//!
//! Used by the target of a log. Invariants: it never waits: what a full socket does not take stays with the
//! caller, and without a receiver lines are lost and counted; a message is one line, so its fields cannot be
//! forged.

use crate::timestamp::{Wall, rfc3339};
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The receiver of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receiver {
    /// Syslog, on a Unix socket.
    SyslogUnix(PathBuf),
    /// Syslog over UDP (RFC 5426).
    SyslogUdp(SocketAddr),
    /// The journal's native protocol.
    Journal,
}

/// Where the journal receives.
const JOURNAL: &str = "/run/systemd/journal/socket";
/// The rest of a longer line is dropped: receivers need not take more than 2 KiB (RFC 5424 6.1), and usual
/// ones take 8 KiB.
const MAX_LINE_BYTES: usize = 8 << 10;
/// The most messages of one call, so that the event loop goes on.
const MAX_MESSAGES: usize = 512;
/// `daemon` (RFC 5424 6.2.1).
const FACILITY: u8 = 3;
/// The severity of a line without one: informational.
const SEVERITY: u8 = 6;

/// See the module.
#[derive(Debug)]
pub(crate) struct Datagrams {
    receiver: Receiver,
    socket: Option<Socket>,
    host: String,
    message: Vec<u8>,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

impl Socket {
    fn connect(receiver: &Receiver) -> io::Result<Self> {
        let unix = |path: &Path| {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            socket.set_nonblocking(true)?;
            Ok(Self::Unix(socket))
        };
        match receiver {
            Receiver::SyslogUnix(path) => unix(path),
            Receiver::Journal => unix(Path::new(JOURNAL)),
            Receiver::SyslogUdp(address) => {
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                Ok(Self::Udp(socket))
            }
        }
    }

    fn send(&self, message: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.send(message),
            Self::Udp(socket) => socket.send(message),
        }
    }
}

impl Datagrams {
    pub(crate) fn new(receiver: Receiver) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { receiver, socket: None, host, message: Vec::new() }
    }

    /// Sends lines and removes them, as far as that does not wait. Returns how many were lost.
    pub(crate) fn write(&mut self, lines: &mut Vec<u8>) -> u64 {
        let (mut at, mut lost_lines) = (0, 0);
        for _ in 0..MAX_MESSAGES {
            let Some(length) = memchr::memchr(b'\n', &lines[at..]) else { break };
            match self.send(&lines[at..at + length]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => lost_lines += 1,
            }
            at += length + 1;
        }
        lines.drain(..at);
        lost_lines
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let (severity, text) = severity_of(line);
        let text = &text[..text.len().min(MAX_LINE_BYTES)];
        self.message.clear();
        // Writing to a Vec does not fail.
        let _ = match self.receiver {
            Receiver::Journal => write!(
                self.message,
                "PRIORITY={severity}\nSYSLOG_IDENTIFIER=outboard\nSYSLOG_FACILITY={FACILITY}\nMESSAGE="
            ),
            _ => write!(
                self.message,
                "<{}>1 {} {} outboard {} - - ",
                FACILITY * 8 + severity,
                rfc3339(Wall::now()),
                if self.host.is_empty() { "-" } else { &self.host },
                std::process::id()
            ),
        };
        self.message.extend_from_slice(text);
        if self.receiver == Receiver::Journal {
            self.message.push(b'\n');
        }
        let was_connected = self.socket.is_some();
        match self.try_send() {
            // The receiver may have been replaced.
            Err(error) if was_connected && error.kind() != ErrorKind::WouldBlock => self.try_send(),
            sent => sent,
        }
    }

    fn try_send(&mut self) -> io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => Socket::connect(&self.receiver)?,
        };
        let sent = socket.send(&self.message).map(drop);
        let stays = match &sent {
            Ok(()) => true,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        self.socket = stays.then_some(socket);
        sent
    }
}

/// The severity that a line begins with, as in sd-daemon(3), and the line without it.
fn severity_of(line: &[u8]) -> (u8, &[u8]) {
    match line {
        [b'<', digit @ b'0'..=b'7', b'>', text @ ..] => (digit - b'0', text),
        text => (SEVERITY, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("outboard-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 16 << 10];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_line_is_a_message_of_syslog_with_its_severity() {
        let directory = directory("syslog");
        let path = directory.join("log");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut datagrams = Datagrams::new(Receiver::SyslogUnix(path.clone()));
        let mut lines = b"<3>broken\nGET /\nrest".to_vec();
        assert_eq!(datagrams.write(&mut lines), 0);
        assert_eq!(lines, b"rest");
        let first = received(&socket);
        let parts: Vec<&str> = first.splitn(8, ' ').collect();
        assert_eq!((parts[0], parts[3], parts[7]), ("<27>1", "outboard", "broken"), "{first}");
        assert!(parts[1].ends_with('Z') && parts[4] == std::process::id().to_string());
        assert!(received(&socket).starts_with("<30>1 "));
        // syslogd is restarted.
        drop(socket);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(datagrams.write(&mut b"lost\n".to_vec()), 1);
        let socket = UnixDatagram::bind(&path).unwrap();
        assert_eq!(datagrams.write(&mut b"again\n".to_vec()), 0);
        assert!(received(&socket).ends_with(" again"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_receiver_that_does_not_read_blocks_no_writer() {
        let directory = directory("syslog-full");
        let path = directory.join("log");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut datagrams = Datagrams::new(Receiver::SyslogUnix(path));
        let line = [&[b'x'; 1000][..], b"\n"].concat();
        let mut lines = line.repeat(600);
        assert_eq!(datagrams.write(&mut lines), 0);
        assert!(lines.len() > 80 * line.len() && lines.len().is_multiple_of(line.len()));
        let waiting = lines.len();
        received(&socket);
        datagrams.write(&mut lines);
        assert!(lines.len() < waiting, "there was room for one more");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_long_line_is_cut() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let receiver = Receiver::SyslogUdp(socket.local_addr().unwrap());
        let mut datagrams = Datagrams::new(receiver);
        assert_eq!(datagrams.write(&mut [&[b'x'; 20_000][..], b"\n"].concat()), 0);
        let mut buffer = [0; 32 << 10];
        let length = socket.recv(&mut buffer).unwrap();
        assert!((MAX_LINE_BYTES..MAX_LINE_BYTES + 200).contains(&length));
    }
}
