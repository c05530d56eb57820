//! Two threads, each with a loop and a service, that send each other a connection after each response.

use super::MovedConnection;
use crate::header_block::HeaderBlock;
use crate::listener_context::{ListenerContext, Role};
use crate::request::Request;
use crate::response_facts::Written;
use crate::response_writer::ResponseWriter;
use crate::server_context::{ServerContext, ServerShared};
use crate::service::Service;
use crate::test_client::serve_socket;
use crate::testing::{Echo, context_of, limits};
use outboard_buffer::TempDir;
use outboard_config::Limits;
use outboard_log::{Reason, Wall};
use outboard_reactor::{MailboxReceiver, MailboxSender, Peer, Stream, mailbox, run, spawn};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Responds as [`Echo`], with its index before the path, and sends each connection to the other.
struct Wanderer {
    echo: Rc<Echo>,
    index: usize,
    other: Option<MailboxSender<MovedConnection>>,
    arrived: Arc<AtomicUsize>,
}

impl Service for Wanderer {
    fn context(&self) -> &Rc<ServerContext> {
        &self.echo.context
    }

    async fn respond(
        self: &Rc<Self>,
        request: &mut Request,
        response: &mut ResponseWriter,
        started: Wall,
    ) -> Written {
        if request.upgrade().is_some() {
            return self.echo.respond(request, response, started).await;
        }
        let mut body = self.index.to_string().into_bytes();
        body.extend_from_slice(request.encoded_path());
        response.respond(200, &HeaderBlock::default(), &body).await
    }

    async fn refuse_head(
        self: &Rc<Self>,
        request: &Request,
        response: &mut ResponseWriter,
        started: Wall,
        refusal: (Reason, &str),
    ) -> Written {
        self.echo.refuse_head(request, response, started, refusal).await
    }

    fn shard_after_response(&self, _: &Cell<u64>) -> Option<usize> {
        Some(1 - self.index)
    }

    fn shard_to_stay(&self) -> Option<usize> {
        Some(1 - self.index)
    }

    fn send_to(self: &Rc<Self>, _: usize, connection: MovedConnection) {
        // Without the other thread it is lost on the way. At the end of a test that may have ended first; before, the
        // client would miss its response.
        if let Some(other) = &self.other {
            let _ = other.send(connection);
        }
    }
}

/// The two threads, and what they share.
struct Threads {
    shared: Arc<ServerShared>,
    listener: TcpListener,
    arrived: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
    stop: Vec<MailboxSender<()>>,
}

impl Threads {
    fn start(limits: &Limits, loses_connections: bool) -> Self {
        Self::start_with(limits, loses_connections, Role::Apps)
    }

    fn start_with(limits: &Limits, loses_connections: bool, role: Role) -> Self {
        let shared = ServerShared::new(2, TempDir::new("/tmp".into(), 1 << 30));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| mailbox()).unzip();
        let arrived = Arc::<AtomicUsize>::default();
        let (mut threads, mut stop) = (Vec::new(), Vec::new());
        for (index, receiver) in receivers.into_iter().enumerate() {
            let other = (!loses_connections).then(|| senders[1 - index].clone());
            let (shared, limits, arrived) = (shared.clone(), limits.clone(), arrived.clone());
            let accepting = (index == 0).then(|| listener.try_clone().unwrap());
            let (end, ended) = mailbox();
            stop.push(end);
            threads.push(thread::spawn(move || {
                let serving = async move {
                    let echo = Rc::new(Echo { context: context_of(&shared, limits) });
                    let wanderer = Rc::new(Wanderer { echo, index, other, arrived });
                    spawn(receive(wanderer.clone(), receiver));
                    if let Some(listener) = accepting {
                        accept(&wanderer, &listener, role);
                    }
                    ended.next().await;
                };
                run(serving).unwrap();
            }));
        }
        Self { shared, listener, arrived, threads, stop }
    }

    fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client
    }

    fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    fn end(self) {
        self.stop.iter().for_each(|stop| assert!(stop.send(()).is_ok(), "it runs"));
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(self.shared.open_connections(), 0);
    }
}

async fn receive(wanderer: Rc<Wanderer>, receiver: MailboxReceiver<MovedConnection>) {
    loop {
        let moved = receiver.next().await;
        wanderer.arrived.fetch_add(1, Ordering::SeqCst);
        moved.serve(&wanderer).unwrap();
        let context = wanderer.context();
        assert_eq!(context.shared.open_connections(), 1, "it counts as one, all the way");
        assert!(context.memory.connections().held_bytes() > 0);
    }
}

/// One connection.
fn accept(wanderer: &Rc<Wanderer>, listener: &TcpListener, role: Role) {
    let (socket, address) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let stream = Stream::new(socket.into()).unwrap();
    serve_socket(wanderer, ListenerContext::plain(role), stream, Peer::Tcp(address));
}

/// Reads until the text is there, or the connection has ended.
fn read_until(client: &mut TcpStream, end: &str) -> String {
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.ends_with(end) && client.read(&mut byte).unwrap() == 1 {
        text.push(byte[0].into());
    }
    text
}

#[test]
fn a_connection_moves_after_each_response() {
    let threads = Threads::start(&limits(), false);
    let mut client = threads.connect();
    for number in 0..20 {
        write!(client, "GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let expected = format!("\r\n\r\n{}/{number}", number % 2);
        assert!(read_until(&mut client, &expected).ends_with(&expected));
    }
    // Those that came together are served together.
    let get = |path| format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.write_all([get("a"), get("b"), get("c")].concat().as_bytes()).unwrap();
    let text = read_until(&mut client, "0/c");
    assert!(text.contains("\r\n0/a") && text.contains("\r\n0/b"), "{text}");
    client.write_all(get("d").as_bytes()).unwrap();
    assert!(read_until(&mut client, "1/d").ends_with("1/d"));
    drop(client);
    assert!(threads.arrived() >= 21);
    threads.end();
}

#[test]
fn what_is_not_for_apps_stays_on_its_thread() {
    for role in [Role::Admin, Role::Metrics, Role::Dashboard, Role::Entities] {
        let threads = Threads::start_with(&limits(), false, role);
        let mut client = threads.connect();
        for _ in 0..3 {
            client.write_all(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            assert!(read_until(&mut client, "0/1").ends_with("0/1"), "{role:?}");
        }
        drop(client);
        assert_eq!(threads.arrived(), 0);
        threads.end();
    }
}

#[test]
fn requests_of_a_connection_are_counted_on_all_threads() {
    let threads = Threads::start(&Limits { keepalive_requests: Some(3), ..limits() }, false);
    let mut client = threads.connect();
    for number in 0..3 {
        write!(client, "GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let text = read_until(&mut client, &format!("{}/{number}", number % 2));
        assert_eq!(text.contains("Connection: close"), number == 2, "{text}");
    }
    assert_eq!(read_until(&mut client, "no more"), "");
    threads.end();
}

#[test]
fn an_upgraded_connection_moves_before_and_stays() {
    let threads = Threads::start(&limits(), false);
    let mut client = threads.connect();
    let head =
        "GET /u HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c, WebSocket\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    assert!(read_until(&mut client, "\r\n\r\n").starts_with("HTTP/1.1 101"));
    for _ in 0..3 {
        client.write_all(b"ping").unwrap();
        assert_eq!(read_until(&mut client, "ping"), "ping");
    }
    assert_eq!(threads.arrived(), 1);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_until(&mut client, "more"), "");
    threads.end();
}

#[test]
fn a_connection_that_is_lost_on_the_way_ends_and_counts_no_more() {
    let threads = Threads::start(&limits(), true);
    let mut client = threads.connect();
    write!(client, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(read_until(&mut client, "0/1").ends_with("0/1"), "its response is complete");
    assert_eq!(read_until(&mut client, "more"), "");
    assert_eq!(threads.arrived(), 0);
    threads.end();
}

#[test]
fn http2_without_tls_moves_before_and_stays() {
    let threads = Threads::start(&limits(), false);
    let mut client = threads.connect();
    client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut head = [0; 9];
    client.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4, "the settings of the server come first: {head:?}");
    assert_eq!(threads.arrived(), 1);
    drop(client);
    threads.end();
}
