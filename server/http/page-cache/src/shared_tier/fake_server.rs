//! A server for unit tests: the commands that the shared tier uses, and its faults on demand.

use outboard_config::{PageCacheShared, Secret};
use outboard_resp::{Limits, Reader, Value, array, bulk};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// See the module. It ends with the process.
pub(crate) struct FakeServer {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Identifies a start of the server.
    pub(crate) run: String,
    pub(crate) epoch: Option<String>,
    pub(crate) generation: u64,
    /// The run in which the epoch began.
    epoch_run: String,
    pub(crate) purges: Vec<Vec<u8>>,
    pub(crate) pages: HashMap<Vec<u8>, HashMap<Vec<u8>, Vec<u8>>>,
    connections: Vec<TcpStream>,
    /// Whether it does not reply.
    pub(crate) is_silent: bool,
    /// A purge closes the connection, after (true) or before it is counted.
    pub(crate) closes_on_purge: Option<bool>,
    /// The reply to HELLO, if it fails.
    pub(crate) rejects: Option<&'static str>,
    /// Whether purges are not pushed.
    pub(crate) loses_purges: bool,
}

impl FakeServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State { run: "run-1".to_owned(), ..State::default() }));
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), shared.clone());
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { port, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn configured(&self) -> PageCacheShared {
        PageCacheShared {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            tls_verified: None,
            user: String::new(),
            password: Secret(String::new()),
            database: 0,
            name: "test".to_owned(),
            timeout_ms: 20_000,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all connections.
    pub(crate) fn disconnect_all(&self) {
        for stream in self.state().connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    /// Counts a purge and, unless it is to be missed, pushes it.
    pub(crate) fn purge(&mut self, message: &[u8]) {
        self.generation += 1;
        let text = [format!("{} ", self.generation).as_bytes(), message].concat();
        self.purges.push(text.clone());
        if !self.loses_purges {
            self.push(&text);
        }
    }

    fn push(&mut self, text: &[u8]) {
        let mut out = b">3\r\n".to_vec();
        for part in [b"message", &b"outboard:test:purges"[..], text] {
            bulk(&mut out, part);
        }
        self.connections.retain_mut(|stream| stream.write_all(&out).is_ok());
    }

    /// The reply to a command; `None` closes the connection.
    fn reply(&mut self, words: &[Vec<u8>]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        match &*words[0] {
            b"HELLO" => match self.rejects {
                Some(error) => out.extend(format!("-{error}\r\n").into_bytes()),
                None => array(&mut out, 0),
            },
            b"INFO" => bulk(&mut out, format!("# Server\r\nrun_id:{}\r\n", self.run).as_bytes()),
            b"HMGET" => {
                array(&mut out, 2);
                self.state(&mut out);
            }
            b"LRANGE" => self.list(&mut out, -text(&words[2]).parse::<i64>().unwrap()),
            b"HVALS" => {
                let page = self.pages.get(&words[1]).cloned().unwrap_or_default();
                array(&mut out, page.len());
                page.values().for_each(|record| bulk(&mut out, record));
            }
            b"EVAL" if text(&words[1]).contains("'run'") => {
                if self.epoch.is_none() || self.epoch_run.as_bytes() != words[5] {
                    self.epoch_run = text(&words[5]);
                    self.epoch = Some(text(&words[6]));
                    self.generation = 0;
                    self.purges.clear();
                }
                array(&mut out, 3);
                self.state(&mut out);
                self.list(&mut out, i64::MAX);
            }
            b"EVAL" if text(&words[1]).contains("PUBLISH") => {
                if self.closes_on_purge == Some(false) {
                    return None;
                }
                self.purge(&words[6]);
                if self.closes_on_purge.is_some() {
                    return None;
                }
                out.extend(format!(":{}\r\n", self.generation).into_bytes());
            }
            b"EVAL" => {
                let page = self.pages.entry(words[3].clone()).or_default();
                page.insert(words[4].clone(), words[5].clone());
                out.extend(b":1\r\n");
            }
            b"SUBSCRIBE" => {
                out.extend(b">3\r\n");
                bulk(&mut out, b"subscribe");
                bulk(&mut out, &words[1]);
                out.extend(b":1\r\n");
            }
            other => panic!("an unknown command: {}", text(other)),
        }
        Some(out)
    }

    fn state(&self, out: &mut Vec<u8>) {
        match &self.epoch {
            Some(epoch) => bulk(out, epoch.as_bytes()),
            None => out.extend(b"_\r\n"),
        }
        bulk(out, self.generation.to_string().as_bytes());
    }

    fn list(&self, out: &mut Vec<u8>, count: i64) {
        let skipped = self.purges.len().saturating_sub(usize::try_from(count).unwrap());
        array(out, self.purges.len() - skipped);
        self.purges[skipped..].iter().for_each(|text| bulk(out, text));
    }
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    lock().connections.push(stream.try_clone().unwrap());
    let mut reader = Reader::new(Limits { bytes: 64 << 20, values: 100 });
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut rest = &buffer[..count];
        while let Ok(Some(command)) = reader.read(&mut rest) {
            let words = command.into_array().unwrap().into_iter().map(Value::into_bytes);
            let words: Vec<Vec<u8>> = words.map(Option::unwrap).collect();
            let mut state = lock();
            if state.is_silent {
                continue;
            }
            let reply = state.reply(&words);
            if reply.is_none_or(|reply| stream.write_all(&reply).is_err()) {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
