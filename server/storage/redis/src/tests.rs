//! Connections to a server in the event loop of the test, which records commands and replies as a test requires.

use super::*;
use outboard_config::Secret;
use outboard_reactor::testing::in_loop;
use outboard_reactor::{Listener, spawn};
use outboard_upstream::Settings;
use std::cell::RefCell;
use std::io::IoSlice;
use std::net::TcpListener;
use std::rc::Rc;

const TIMEOUT_MS: u64 = 10_000;

/// A server that sends the pieces that `reply` returns for a command, and closes the connection without any.
struct Server {
    port: u16,
    commands: Rc<RefCell<Vec<String>>>,
}

impl Server {
    fn start(reply: impl Fn(&str) -> Vec<Vec<u8>> + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let listener = Listener::new(socket.into()).unwrap();
        let commands = Rc::<RefCell<Vec<String>>>::default();
        let received = commands.clone();
        spawn(async move {
            let stream = listener.accept().await.unwrap().stream;
            let (mut reader, mut input) = (Reader::new(LIMITS), Vec::new());
            loop {
                input.reserve(4096);
                if stream.read(&mut input).await.unwrap_or(0) == 0 {
                    return;
                }
                let mut rest = &input[..];
                while let Some(command) = reader.read(&mut rest).unwrap() {
                    let words = command.as_array().unwrap().iter();
                    let words = words.map(|word| String::from_utf8_lossy(word.as_bytes().unwrap()));
                    let line = words.collect::<Vec<_>>().join(" ");
                    let pieces = reply(&line);
                    received.borrow_mut().push(line);
                    if pieces.is_empty() {
                        return;
                    }
                    for piece in pieces {
                        stream.write_all(&mut [IoSlice::new(&piece)]).await.unwrap();
                        outboard_reactor::yield_now().await;
                    }
                }
                input.clear();
            }
        });
        Self { port, commands }
    }

    /// The same reply to every command.
    fn replying(reply: &'static str) -> Self {
        Self::start(move |_| vec![reply.as_bytes().to_vec()])
    }

    fn config(&self) -> PageCacheShared {
        PageCacheShared {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            tls_verified: None,
            user: String::new(),
            password: Secret::default(),
            database: 0,
            name: "site".to_owned(),
            timeout_ms: TIMEOUT_MS,
        }
    }

    async fn open(&self) -> Connection {
        open(&self.config()).await.unwrap()
    }
}

async fn open(config: &PageCacheShared) -> Result<Connection, String> {
    Connection::open(config, &Client::new(Settings::default()), TIMEOUT_MS).await
}

#[test]
fn a_connection_begins_with_its_password_and_database() {
    in_loop(async {
        for (user, password, database, expected) in [
            ("", "", 0, &[][..]),
            ("", "secret", 0, &["AUTH default secret"]),
            ("ann", "secret", 3, &["AUTH ann secret", "SELECT 3"]),
            ("", "", 15, &["SELECT 15"]),
            // Without a password a user is of no use.
            ("ann", "", 0, &[]),
        ] {
            let server = Server::replying("+OK\r\n");
            let (user, password) = (user.to_owned(), Secret(password.to_owned()));
            let config = PageCacheShared { user, password, database, ..server.config() };
            let mut connection = open(&config).await.unwrap();
            connection.exchange(&[b"PING"], TIMEOUT_MS).await.unwrap();
            assert_eq!(*server.commands.borrow(), [expected, &["PING"]].concat());
        }
    });
}

#[test]
fn a_refused_password_ends_the_connection() {
    in_loop(async {
        let server = Server::replying("-WRONGPASS invalid username-password pair\r\n");
        let password = Secret("wrong".to_owned());
        let config = PageCacheShared { password, database: 1, ..server.config() };
        let error = open(&config).await.unwrap_err();
        assert_eq!(error, "WRONGPASS invalid username-password pair");
        assert_eq!(*server.commands.borrow(), ["AUTH default wrong"]);
    });
}

#[test]
fn replies_are_values_of_every_kind() {
    in_loop(async {
        for (reply, expected) in [
            (":7\r\n", Value::Integer(7)),
            ("$-1\r\n", Value::Null),
            ("$5\r\na\r\nbc\r\n", Value::Bytes(b"a\r\nbc".to_vec())),
            (
                "*2\r\n+a\r\n:-1\r\n",
                Value::Array(vec![Value::Bytes(b"a".to_vec()), Value::Integer(-1)]),
            ),
        ] {
            let mut connection = Server::replying(reply).open().await;
            assert_eq!(connection.exchange(&[b"GET", b"a"], TIMEOUT_MS).await, Ok(expected));
        }
    });
}

#[test]
fn a_reply_may_come_in_pieces() {
    in_loop(async {
        let server = Server::start(|_| b"$5\r\nvalue\r\n".iter().map(|byte| vec![*byte]).collect());
        let mut connection = server.open().await;
        for _ in 0..3 {
            let value = connection.exchange(&[b"GET", b"a"], TIMEOUT_MS).await;
            assert_eq!(value, Ok(Value::Bytes(b"value".to_vec())));
        }
    });
}

#[test]
fn words_may_have_any_bytes() {
    in_loop(async {
        let server = Server::replying("+OK\r\n");
        let mut connection = server.open().await;
        let value = [b"a b\r\n$3\r\n".as_slice(), &[b'x'; 100_000]].concat();
        connection.exchange(&[b"SET", b"", &value], TIMEOUT_MS).await.unwrap();
        let expected = format!("SET  {}", String::from_utf8_lossy(&value));
        assert!(*server.commands.borrow() == [expected]);
    });
}

#[test]
fn an_error_of_the_server_is_its_text() {
    in_loop(async {
        let mut connection = Server::replying("-ERR unknown command\r\n").open().await;
        let error = connection.exchange(&[b"NONE"], TIMEOUT_MS).await.unwrap_err();
        assert_eq!(error, "ERR unknown command");
    });
}

#[test]
fn what_is_not_a_reply_is_an_error() {
    in_loop(async {
        for (reply, expected) in [
            ("HTTP/1.1 400 Bad Request\r\n\r\n", "the server does not speak RESP"),
            ("$16777217\r\n", "a reply exceeds the size limit"),
            ("*16385\r\n", "a reply exceeds the size limit"),
        ] {
            let mut connection = Server::replying(reply).open().await;
            let error = connection.exchange(&[b"GET", b"a"], TIMEOUT_MS).await.unwrap_err();
            assert_eq!(error, expected);
        }
    });
}

#[test]
fn a_server_that_leaves_or_is_silent_is_an_error() {
    in_loop(async {
        let mut connection = Server::start(|_| Vec::new()).open().await;
        let error = connection.exchange(&[b"PING"], TIMEOUT_MS).await.unwrap_err();
        assert_eq!(error, "the connection was closed");
        // Half of a reply is none.
        let mut connection = Server::replying("$5\r\nval").open().await;
        let error = connection.exchange(&[b"PING"], 20).await.unwrap_err();
        assert_eq!(error, "no reply in 20 ms");
    });
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error() {
    in_loop(async {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        drop(socket);
        let config = PageCacheShared { port, ..Server::replying("").config() };
        let error = open(&config).await.unwrap_err();
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
    });
}
