//! `kill -9` in the middle of mixed writes: nothing that was answered is lost, nothing that was refused
//! has happened, nothing else is half there.
//!
//! Eight clients write and delete records of their own and remember the responses; once so
//! many writes were answered, the server is killed while the others' are under way. Then it is
//! started again and asked for all of them.

#![forbid(unsafe_code)]

use outboard_e2e::{Child, Launch, Scratch, Server, connect};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

const CLIENTS: u64 = 8;
const NAMES: u64 = 40;

/// A server whose store is in this folder, and where the store listens.
fn start(folder: &Scratch, durability: &str) -> (Child, SocketAddr) {
    let user = rustix::process::geteuid().is_root().then_some("user = \"www-data\"\n");
    folder.folder("www");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n{}[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n\
         [app.site.pool]\nmin = 1\nmax = 1\n[kv]\ndata_dir = \"entities\"\n\
         listen = \"127.0.0.1:0\"\ndurability = \"{durability}\"\nwrite_buffer = \"64 KiB\"\n",
        user.unwrap_or_default()
    );
    let child = Launch::new(&Server::binary().to_string_lossy())
        .arg("serve")
        .arg("--config")
        .arg(folder.file("outboard.toml", text))
        .arg("--admin")
        .arg(folder.path().join("admin.sock"))
        .start();
    let ready = |line: &str| line.contains("outboard status --admin").then_some(());
    child.wait_for(ready).unwrap_or_else(|output| panic!("outboard does not start: {output}"));
    let output = child.output();
    let mut listeners = output.lines().filter_map(|line| line.strip_prefix("listening on http://"));
    let own = listeners.nth(1).unwrap_or_else(|| panic!("no listener of its own: {output}"));
    (child, own.trim_end_matches('/').parse().unwrap())
}

/// What a record may be: as it was answered last, or as the write under way would have it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Known {
    answered: Option<Vec<u8>>,
    under_way: Option<Option<Vec<u8>>>,
}

type Model = HashMap<u64, Known>;

/// Sends a request without a body in its answer; the status, unless the server has gone.
fn ask(stream: &mut TcpStream, request: &[u8]) -> Option<(u16, Vec<u8>)> {
    stream.write_all(request).ok()?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if answer.len() >= head + 4 + length {
                return Some((text[9..12].parse().unwrap(), answer.split_off(head + 4)));
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(count) => answer.extend_from_slice(&piece[..count]),
        }
    }
}

fn request(method: &str, client: u64, name: u64, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} /v0/entity?id={client}-{name} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A value that shows whether it is whole: its number, again and again.
fn value(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(1 + (number % 97) as usize)
}

/// Writes until the server has gone.
fn write_on(address: SocketAddr, client: u64, model: &mut Model, answered: impl Fn()) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    for number in client.. {
        // Mixes names, and sizes, so that neither is in step with the other.
        let name = number.wrapping_mul(2_654_435_761) % NAMES;
        let known = model.entry(name).or_default();
        let becomes = (number % 5 != 0).then(|| value(number));
        known.under_way = Some(becomes.clone());
        let (method, body) = match &becomes {
            Some(value) => ("PUT", value.as_slice()),
            None => ("DELETE", &[][..]),
        };
        let Some((status, _)) = ask(&mut stream, &request(method, client, name, body)) else {
            return;
        };
        known.under_way = None;
        match status {
            201 | 202 => known.answered = becomes,
            // The machine is short of time: the write has not happened.
            503 => continue,
            _ => panic!("{status}"),
        }
        answered();
    }
}

/// Looks at every record, and takes what is there for answered.
fn check(address: SocketAddr, client: u64, model: &mut Model, round: u64) {
    let mut stream = connect(address);
    for (name, known) in model {
        let (status, body) = ask(&mut stream, &request("GET", client, *name, b"")).unwrap();
        let found = (status == 200).then_some(body);
        let was_answered = found == known.answered;
        let is_under_way = known.under_way.as_ref() == Some(&found);
        assert!(was_answered || is_under_way, "round {round}: {client}-{name} {found:?} {known:?}");
        *known = Known { answered: found, under_way: None };
    }
}

fn survive(rounds: u64, durability: &str) {
    let folder = Scratch::new("entities-crash");
    let mut models: Vec<Model> = (0..CLIENTS).map(|_| Model::new()).collect();
    for round in 0..rounds {
        let (child, address) = start(&folder, durability);
        let pid = Pid::from_raw(child.pid() as i32).unwrap();
        let count = AtomicU64::new(0);
        let last = 50 + round * 37 % 900;
        let answered = || {
            if count.fetch_add(1, Ordering::Relaxed) == last {
                kill_process(pid, Signal::KILL).unwrap();
            }
        };
        std::thread::scope(|scope| {
            for (client, model) in (0..).zip(&mut models) {
                scope.spawn(move || write_on(address, client, model, answered));
            }
        });
        child.wait();
        drop(child);
        let (child, address) = start(&folder, durability);
        for (client, model) in (0..).zip(&mut models) {
            check(address, client, model, round);
        }
        assert!(!child.output().contains("is damaged"), "{}", child.output());
    }
}

#[test]
fn no_answered_write_is_lost_when_the_server_is_killed() {
    survive(8, "always");
}

#[test]
fn with_an_interval_a_kill_of_the_server_loses_nothing_either() {
    survive(3, "interval");
}

#[test]
#[ignore = "200 kills take minutes: cargo test -p outboard-e2e --test entities_crash -- --ignored"]
fn no_answered_write_is_lost_in_200_kills() {
    survive(200, "always");
}
