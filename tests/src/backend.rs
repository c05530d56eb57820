//! An upstream whose behaviour is in the path of the request, so that configurations and PHP
//! scripts can say what they want of it.
//!
//! | path | answer |
//! |---|---|
//! | `/text/WORDS` | `WORDS`, with a header that must not reach a page |
//! | `/echo` | the head of the request |
//! | `/number` | which request this is on its connection, from 1 |
//! | `/held/NAME` | `held NAME`, once the test releases it |
//! | `/meet/COUNT/NAME` | `met NAME`, once so many requests are there at the same time |
//! | `/status/CODE` | that status, with a body |
//! | `/large/BYTES` | as many bytes |
//! | `/chunked`, `/gzip`, `/until-close` | a body in that form |
//! | `/cut`, `/reset`, `/both-lengths` | what is no whole answer |
//! | `/silent` | nothing at all |
//! | `/frames` | `101`, and then back what comes, without words of its own |
//! | `/switch` | `101`, and then back what comes, to who wishes to speak WebSocket |
//! | `/loop` | a redirect to itself |
//! | `/to/PATH` | a redirect to the path |

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Only a broken test needs it.
const PATIENCE: Duration = Duration::from_secs(60);

/// `from a gzip body`.
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0x2b, 0xca, 0xcf, 0x55, 0x48,
    0x54, 0x48, 0xaf, 0xca, 0x2c, 0x50, 0x48, 0xca, 0x4f, 0xa9, 0x04, 0x00, 0x4c, 0x4a, 0xa2, 0x56,
    0x10, 0x00, 0x00, 0x00,
];

/// A running upstream; it ends with the test's process.
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    heard: Vec<String>,
    released: Vec<String>,
    meeting: usize,
}

impl Backend {
    /// Listens on an ephemeral port.
    pub fn start() -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has free ports");
        // The library's queue of 128 would drop what a thousand requests at once begin.
        rustix::net::listen(&listener, 4096).expect("it listens already");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                theirs.connections.fetch_add(1, Ordering::SeqCst);
                let shared = theirs.clone();
                // A client that goes in the middle is what some tests are about.
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Backend { address, shared }
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The targets of all requests so far.
    pub fn heard(&self) -> Vec<String> {
        self.shared.lock().heard.clone()
    }

    /// Waits until so many requests for this target have come.
    #[track_caller]
    pub fn hears(&self, target: &str, count: usize) {
        let had = |state: &State| state.heard.iter().filter(|heard| *heard == target).count();
        let waited = self.shared.wait(|state| had(state) >= count);
        assert!(waited, "{target} was asked for {} times", had(&self.shared.lock()));
    }

    /// Lets `/held/NAME` be answered, now and later.
    pub fn release(&self, name: &str) {
        self.shared.lock().released.push(name.to_owned());
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    fn wait(&self, until: impl Fn(&State) -> bool) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| !until(state));
        !waited.expect("no holder panics").1.timed_out()
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        for number in 1.. {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
            });
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body)?;
            let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
            self.lock().heard.push(target.clone());
            self.changed.notify_all();
            let request = head + &String::from_utf8_lossy(&body);
            let keeps = self.answer(&stream, &target, &request, number)?;
            let closes = request.to_lowercase().contains("\r\nconnection: close\r\n");
            if !keeps || closes {
                return Ok(());
            }
        }
        Ok(())
    }

    fn answer(
        &self,
        mut stream: &TcpStream,
        target: &str,
        request: &str,
        number: usize,
    ) -> io::Result<bool> {
        let words: Vec<&str> = target.split(['/', '?']).collect();
        let ok = |body: &[u8]| answer("200 OK", "X-Upstream-Secret: leaked\r\n", body);
        let bytes = match words[1..] {
            ["text", ..] => ok(&target.as_bytes()["/text/".len()..]),
            ["echo", ..] => ok(request.as_bytes()),
            ["number", ..] => ok(number.to_string().as_bytes()),
            ["held", name, ..] => {
                self.wait(|state| state.released.iter().any(|released| released == name));
                ok(format!("held {name}").as_bytes())
            }
            ["meet", count, name, ..] => {
                let count: usize = count.parse().unwrap_or(1);
                self.lock().meeting += 1;
                self.changed.notify_all();
                self.wait(|state| state.meeting >= count);
                ok(format!("met {name}").as_bytes())
            }
            ["status", code, ..] => answer(&format!("{code} Said"), "", b"a body of the upstream"),
            ["large", bytes, ..] => {
                large(stream, bytes.parse().unwrap_or(0))?;
                return Ok(true);
            }
            ["chunked"] => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                5\r\nfrom \r\n6\r\nchunks\r\n0\r\nX-Trailer: leaked\r\n\r\n"
                .to_vec(),
            ["gzip"] => answer("200 OK", "Content-Encoding: gzip\r\n", GZIP),
            ["until-close"] => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")?;
                return Ok(false);
            }
            ["cut"] => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly so much")?;
                return Ok(false);
            }
            ["reset"] => {
                // Closing with unread input makes the kernel send a reset; asked for outright here.
                let linger = Some(Duration::ZERO);
                rustix::net::sockopt::set_socket_linger(stream, linger)?;
                return Ok(false);
            }
            ["both-lengths"] => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\
                Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                .to_vec(),
            ["silent"] => {
                io::copy(&mut stream, &mut io::sink())?;
                return Ok(false);
            }
            ["switch"] if request.to_lowercase().contains("\r\nupgrade: websocket\r\n") => {
                stream.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                      Upgrade: websocket\r\nSec-WebSocket-Accept: of-the-upstream\r\n\r\nhello ",
                )?;
                let mut back = stream;
                io::copy(&mut stream, &mut back)?;
                stream.write_all(b" bye")?;
                return Ok(false);
            }
            ["frames"] if request.to_lowercase().contains("\r\nupgrade: websocket\r\n") => {
                stream.write_all(
                    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                      Upgrade: websocket\r\nSec-WebSocket-Accept: of-the-upstream\r\n\r\n",
                )?;
                let mut back = stream;
                io::copy(&mut stream, &mut back)?;
                return Ok(false);
            }
            ["loop"] => answer("302 Found", "Location: /loop\r\n", b"again"),
            ["to", ..] => {
                answer("302 Found", &format!("Location: {}\r\n", &target["/to".len()..]), b"there")
            }
            _ => answer("404 Not Found", "", b"no such behaviour"),
        };
        stream.write_all(&bytes)?;
        Ok(true)
    }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = head(status, headers, body.len());
    answer.extend_from_slice(body);
    answer
}

fn head(status: &str, headers: &str, length: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nServer: test-backend\r\n{headers}\
         Content-Length: {length}\r\n\r\n"
    );
    head.into_bytes()
}

/// Writes an answer that need not lie in memory, for there may be a thousand of them.
fn large(mut stream: &TcpStream, mut left: usize) -> io::Result<()> {
    stream.write_all(&head("200 OK", "", left))?;
    let piece = [b'x'; 64 << 10];
    while left > 0 {
        left -= stream.write(&piece[..left.min(piece.len())])?;
    }
    Ok(())
}
