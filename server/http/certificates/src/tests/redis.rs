//! [`Redis`]: a server for common state, with the commands that gateways use.

use outboard_config::{PageCacheShared, Secret};
use outboard_reactor::{Listener, Stream, spawn};
use outboard_resp::{Limits, Reader, array, bulk};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io::IoSlice;
use std::net::TcpListener;
use std::rc::Rc;

/// See the module.
pub(super) struct Redis {
    port: u16,
    pub(super) data: Rc<RefCell<Data>>,
}

#[derive(Default)]
pub(super) struct Data {
    pub(super) texts: HashMap<String, String>,
    pub(super) maps: HashMap<String, BTreeMap<String, Vec<u8>>>,
    lists: HashMap<String, Vec<String>>,
    /// Whether the next command ends the connection.
    pub(super) is_failing: bool,
}

impl Redis {
    pub(super) fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = Listener::new(socket.into()).unwrap();
        let data = Rc::<RefCell<Data>>::default();
        let shared = data.clone();
        spawn(async move {
            while let Ok(accepted) = listener.accept().await {
                spawn(serve(accepted.stream, shared.clone()));
            }
        });
        Self { port, data }
    }

    pub(super) fn config(&self) -> PageCacheShared {
        PageCacheShared {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            tls_verified: None,
            user: String::new(),
            password: Secret::default(),
            database: 0,
            name: "certificates".to_owned(),
            timeout_ms: 10_000,
        }
    }
}

async fn serve(stream: Stream, data: Rc<RefCell<Data>>) {
    let (mut reader, mut input) =
        (Reader::new(Limits { bytes: 1 << 20, values: 1 << 10 }), Vec::new());
    loop {
        input.reserve(64 << 10);
        if stream.read(&mut input).await.unwrap_or(0) == 0 {
            return;
        }
        let mut rest = &input[..];
        while let Some(command) = reader.read(&mut rest).unwrap() {
            let words = command.into_array().unwrap().into_iter();
            let words: Vec<Vec<u8>> = words.map(|word| word.into_bytes().unwrap()).collect();
            if std::mem::take(&mut data.borrow_mut().is_failing) {
                return;
            }
            let reply = data.borrow_mut().execute(&words);
            stream.write_all(&mut [IoSlice::new(&reply)]).await.unwrap();
        }
        input.clear();
    }
}

impl Data {
    fn execute(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let text = |at: usize| String::from_utf8_lossy(&words[at]).into_owned();
        let key = if words.len() > 1 { text(1) } else { String::new() };
        let number = |number: usize| format!(":{number}\r\n").into_bytes();
        let strings = |all: &[&[u8]]| {
            let mut reply = Vec::new();
            array(&mut reply, all.len());
            all.iter().for_each(|one| bulk(&mut reply, one));
            reply
        };
        let one = |found: Option<&[u8]>| {
            let mut reply = Vec::new();
            match found {
                Some(found) => bulk(&mut reply, found),
                None => reply.extend(b"$-1\r\n"),
            }
            reply
        };
        match text(0).as_str() {
            "EVAL" => {
                let (is_lock, key, node) = (key.contains("'PX'"), text(3), text(4));
                let holder = self.texts.get(&key);
                match (is_lock, holder.is_some_and(|holder| *holder == node)) {
                    (true, false) if holder.is_some() => number(0),
                    (true, _) => {
                        self.texts.insert(key, node);
                        number(1)
                    }
                    (false, is_own) => {
                        self.texts.retain(|one, _| !is_own || *one != key);
                        number(is_own.into())
                    }
                }
            }
            "HSET" => {
                self.maps.entry(key).or_default().insert(text(2), words[3].clone());
                number(1)
            }
            "HGET" => {
                let found = self.maps.get(&key).and_then(|map| map.get(&text(2)));
                one(found.map(Vec::as_slice))
            }
            "HDEL" => number(self.maps.entry(key).or_default().remove(&text(2)).iter().count()),
            "HGETALL" => {
                let map = self.maps.entry(key).or_default();
                strings(
                    &map.iter()
                        .flat_map(|(name, value)| [name.as_bytes(), value])
                        .collect::<Vec<_>>(),
                )
            }
            "RPUSH" => {
                self.lists.entry(key).or_default().push(text(2));
                number(1)
            }
            "LRANGE" => {
                let list = self.lists.entry(key).or_default();
                let count = text(2).trim_start_matches('-').parse::<usize>().unwrap();
                let latest = &list[list.len().saturating_sub(count)..];
                strings(&latest.iter().map(String::as_bytes).collect::<Vec<_>>())
            }
            "INCR" => {
                let value = self.texts.get(&key).map_or(0, |text| text.parse().unwrap()) + 1;
                self.texts.insert(key, value.to_string());
                number(value)
            }
            "GET" => one(self.texts.get(&key).map(String::as_bytes)),
            "EXPIRE" | "LTRIM" => number(1),
            other => format!("-ERR unknown command {other}\r\n").into_bytes(),
        }
    }
}
