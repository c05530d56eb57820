//! A collector of traces that decodes strictly what it gets, and behaves as the test requires.

use flate2::read::GzDecoder;
use outboard_trace::protobuf::Message;
use outboard_trace::testing::{Received, decode};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// Only a broken test needs it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running collector; it ends with the test's process.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    spans: Vec<Received>,
    requests: Vec<String>,
    /// The responses to the next requests; then 200.
    responses: Vec<String>,
    /// The body of the response to requests whose spans are accepted.
    partial: Vec<u8>,
    is_silent: bool,
    wrong: Option<String>,
}

impl Collector {
    /// One that accepts everything valid.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = theirs.clone();
                // The server may go at any time.
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Self { address, shared }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Responds to the next requests with these status lines and fields, and does not accept their spans.
    pub fn refuses_with(&self, responses: &[&str]) {
        let responses = responses.iter().map(|one| (*one).to_owned());
        self.shared.lock().responses.extend(responses);
    }

    /// Accepts requests, except for so many spans of each.
    pub fn rejects(&self, spans: u64, message: &str) {
        let mut partial = Vec::new();
        Message::new(&mut partial).message(1, |partial| {
            partial.number(1, spans);
            partial.bytes(2, message.as_bytes());
        });
        self.shared.lock().partial = partial;
    }

    /// Reads requests, but does not respond any more.
    pub fn falls_silent(&self) {
        self.shared.lock().is_silent = true;
    }

    /// Waits until so many requests have come; their heads.
    #[track_caller]
    pub fn hears(&self, count: usize) -> Vec<String> {
        self.wait(|state| state.requests.len() >= count);
        self.shared.lock().requests.clone()
    }

    /// Waits until there are spans that satisfy this; all spans.
    #[track_caller]
    pub fn receives(&self, is_enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        self.wait(|state| is_enough(&state.spans));
        self.shared.lock().spans.clone()
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<Received> {
        self.shared.lock().spans.clone()
    }

    #[track_caller]
    fn wait(&self, until: impl Fn(&State) -> bool) {
        let state = self.shared.lock();
        let pending = |state: &mut State| state.wrong.is_none() && !until(state);
        let waited = self.shared.changed.wait_timeout_while(state, PATIENCE, pending);
        let (state, timeout) = waited.expect("no holder panics");
        assert_eq!(state.wrong, None, "an invalid request");
        assert!(!timeout.timed_out(), "it has {:#?}", state.spans);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let field = |name: &str| {
                head.lines().find_map(|line| {
                    let (found, value) = line.split_once(':')?;
                    found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
                })
            };
            let length = field("content-length").and_then(|length| length.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body)?;
            if field("content-encoding").as_deref() == Some("gzip") {
                let compressed = std::mem::take(&mut body);
                GzDecoder::new(&compressed[..]).read_to_end(&mut body)?;
            }
            let is_protobuf = field("content-type").as_deref() == Some("application/x-protobuf");
            let response = self.respond(head, &body, is_protobuf);
            let Some(response) = response else {
                // Silent until the client gives up.
                return io::copy(&mut reader, &mut io::sink()).map(drop);
            };
            stream.write_all(&response)?;
        }
    }

    fn respond(&self, head: String, body: &[u8], is_protobuf: bool) -> Option<Vec<u8>> {
        let mut state = self.lock();
        state.requests.push(head);
        let decoded = if is_protobuf { decode(body) } else { Err("another type".to_owned()) };
        let response = match decoded {
            Err(wrong) => {
                state.wrong = Some(wrong);
                Some(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec())
            }
            Ok(_) if state.is_silent => None,
            Ok(_) if !state.responses.is_empty() => {
                let refusal = state.responses.remove(0);
                Some(format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n").into_bytes())
            }
            Ok(spans) => {
                state.spans.extend(spans);
                let length = state.partial.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: {length}\r\n\r\n"
                );
                Some([head.as_bytes(), &state.partial].concat())
            }
        };
        drop(state);
        self.changed.notify_all();
        response
    }
}
