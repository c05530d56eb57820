//! The hand-off on real sockets, to a protocol that the test plays.

use super::*;
use crate::generation::{self, Generation, Sinks};
use crate::listener::{Bound, ListenerFacts, Serves};
use outboard_buffer::Memory;
use outboard_config::Config;
use outboard_reactor::{blocking, sleep};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;

/// Says everything back in capitals until the client ends; takes requests for `/loud` alone.
#[derive(Debug)]
struct Shout;

impl Protocol for Shout {
    fn name(&self) -> &'static str {
        "shout/1"
    }

    fn accept(&self, offer: &Offer<'_>) -> Option<Switch> {
        if offer.path() != b"/loud" {
            return None;
        }
        let key = offer.header(b"shout-key").unwrap_or_default();
        Switch::new(shout).header(b"Shout-Accept", key).ok()
    }
}

async fn shout(mut upgraded: Upgraded) {
    let mut said = Vec::new();
    while let Ok(1..) = upgraded.read(&mut said).await {
        said.make_ascii_uppercase();
        if upgraded.write_all(&said).await.is_err() {
            return;
        }
        said.clear();
    }
}

/// Waits for the end of the server and says good-bye.
#[derive(Debug)]
struct Patient;

impl Protocol for Patient {
    fn name(&self) -> &'static str {
        "patient"
    }

    fn accept(&self, _: &Offer<'_>) -> Option<Switch> {
        Some(Switch::new(async |mut upgraded: Upgraded| {
            let draining = || if upgraded.is_draining() { Poll::Ready(()) } else { Poll::Pending };
            std::future::poll_fn(|_| draining()).await;
            // The client sees whether it came.
            let _ = upgraded.write_all(b"bye").await;
        }))
    }
}

fn gateway() -> Rc<Gateway> {
    let text =
        "[log.access]\npath = \"off\"\n[log.error]\npath = \"off\"\n[app.site]\nroot = \"/tmp\"\n";
    let config = Config::parse(text, Path::new("test.toml")).unwrap();
    let mut sinks = Sinks::default();
    let logs = Rc::new(sinks.logs(&config.log).unwrap());
    let upstream = generation::upstream(&config, None);
    // Without an app every request that is not handed off is a 404.
    let generation = Generation::new(1, config, Vec::new(), logs, upstream, None);
    let protocols: Vec<Box<dyn Protocol>> = vec![Box::new(Shout), Box::new(Patient)];
    let memory = Memory::new(64 << 20);
    Gateway::new(generation, sinks, memory, protocols)
}

/// Runs a client against a gateway of its own; `then` sees the gateway after it.
fn meet(
    client: impl FnOnce(SocketAddr) + Send + 'static,
    then: impl AsyncFnOnce(Rc<Gateway>) + 'static,
) {
    let test = async move {
        let gateway = gateway();
        let facts = Rc::new(ListenerFacts::plain(Serves::Apps));
        let address = "127.0.0.1:0".parse().unwrap();
        let bound = Bound::start(&gateway, outboard_config::ListenAddress::Tcp(address), facts, 16);
        let local = bound.unwrap().local.unwrap();
        let client = blocking(move || client(local));
        client.await;
        then(gateway).await;
    };
    outboard_reactor::run(test).unwrap();
}

/// Sends, ends the sending side and returns everything that comes.
fn exchange(address: SocketAddr, bytes: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

const OFFER: &str = "GET /loud HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
                     Upgrade: h2c, SHOUT/1\r\nShout-Key: k7\r\n\r\n";

#[test]
fn a_protocol_that_takes_the_request_has_the_connection_and_what_was_sent_ahead() {
    meet(
        |address| {
            let answer = exchange(address, &format!("{OFFER}sent ahead"));
            assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
            let (head, said) = answer.split_once("\r\n\r\n").unwrap();
            for line in ["Connection: upgrade", "Upgrade: shout/1", "Shout-Accept: k7"] {
                assert_eq!(head.lines().filter(|theirs| *theirs == line).count(), 1, "{head}");
            }
            assert!(!head.contains("Content-Length") && !head.contains("Transfer-Encoding"));
            assert_eq!(said, "SENT AHEAD");
        },
        async |gateway| {
            // It counts as open until its protocol has ended.
            while gateway.connections.connections() > 0 {
                sleep(1).await;
            }
            assert_eq!(gateway.counters.borrow().by_class[1], 1);
        },
    );
}

#[test]
fn the_conversation_goes_on_in_both_directions() {
    meet(
        |address| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(OFFER.as_bytes()).unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            for (word, echo) in [("one", "ONE"), ("two", "TWO")] {
                stream.write_all(word.as_bytes()).unwrap();
                let mut said = vec![0; echo.len()];
                stream.read_exact(&mut said).unwrap();
                assert_eq!(said, echo.as_bytes());
            }
        },
        async |_| {},
    );
}

#[test]
fn what_no_protocol_takes_is_answered_as_any_request() {
    for request in [
        // Nobody speaks it.
        OFFER.replace("SHOUT/1", "websocket"),
        // Its protocol does not want it.
        OFFER.replace("/loud", "/quiet"),
        // Not offered for this hop (RFC 9110 7.8).
        OFFER.replace(", Upgrade", ""),
        OFFER.replace("HTTP/1.1", "HTTP/1.0"),
        // The body would have to be read before the switch.
        OFFER.replace("Host: a\r\n", "Host: a\r\nContent-Length: 2\r\n") + "hi",
    ] {
        meet(
            move |address| {
                let answer = exchange(address, &request);
                assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n"), "{request}{answer}");
            },
            async |gateway| assert_eq!(gateway.counters.borrow().by_class[1], 0),
        );
    }
}

#[test]
fn a_protocol_is_told_that_the_server_stops() {
    let (told, tell) = std::sync::mpsc::channel();
    meet(
        move |address| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(OFFER.replace("SHOUT/1", "patient").as_bytes()).unwrap();
            let mut start = [0; 12];
            stream.read_exact(&mut start).unwrap();
            assert_eq!(&start, b"HTTP/1.1 101");
            told.send(stream).unwrap();
        },
        async move |gateway| {
            gateway.drain();
            let mut stream = tell.recv().unwrap();
            let rest = blocking(move || {
                let mut rest = String::new();
                stream.read_to_string(&mut rest).map(|_| rest)
            });
            assert!(rest.await.unwrap().ends_with("\r\n\r\nbye"));
        },
    );
}
