//! Tests with a client of `quinn-proto` on another thread.

use super::*;
use outboard_reactor::{run, spawn};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, DatagramEvent, Dir, EndpointConfig, StreamEvent, VarInt};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::cell::Cell;
use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

mod peer;
mod streams;

const CERTIFICATE: &[u8] = include_bytes!("tests/certificate.der");
const KEY: &[u8] = include_bytes!("tests/key.der");
const PROTOCOL: &[u8] = b"echo";

pub(crate) fn settings() -> Settings {
    let chain = vec![CertificateDer::from(CERTIFICATE)];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut tls = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    Settings {
        tls: Arc::new(tls),
        max_streams: 4,
        stream_window_bytes: 64 << 10,
        connection_window_bytes: 128 << 10,
        send_window_bytes: 64 << 10,
        idle_timeout_ms: 10_000,
    }
}

/// Sends back what arrives on each stream.
struct Echo {
    are_admitted: Cell<bool>,
}

impl Application for Echo {
    fn admits(&self, _: SocketAddr) -> bool {
        self.are_admitted.get()
    }

    fn accepted(&self, connection: Rc<Connection>) {
        spawn(echo(connection));
    }

    fn failed(&self) {}
}

async fn echo(connection: Rc<Connection>) {
    let (mut waiting, mut is_ended) = (Vec::new(), false);
    poll_fn(|_| {
        loop {
            while let Some(event) = connection.next_event() {
                if matches!(event, Event::Closed(_)) {
                    return Poll::Ready(());
                }
            }
            let mut is_changed = false;
            loop {
                let before = waiting.len();
                let outcome = connection.read(0, &mut waiting);
                is_changed |= waiting.len() > before;
                is_ended |= outcome == Read::End;
                if waiting.len() == before || outcome != Read::Open {
                    break;
                }
            }
            if !waiting.is_empty() {
                let count = connection.write(0, &waiting).unwrap();
                is_changed |= count > 0;
                waiting.drain(..count);
            }
            if waiting.is_empty() && std::mem::take(&mut is_ended) {
                connection.finish(0).unwrap();
                is_changed = true;
            }
            if is_changed {
                connection.flush();
            }
            if connection.poll_changed().is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}

/// Sends `body` on a stream; what comes back, or why the connection was lost.
fn exchange(server: SocketAddr, protocol: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
    exchange_counting(server, protocol, body).map(|(received, _)| received)
}

/// The same, and the bytes of the largest datagram of the server.
fn exchange_counting(
    server: SocketAddr,
    protocol: &[u8],
    body: &[u8],
) -> Result<(Vec<u8>, usize), String> {
    let mut largest = 0;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE)).unwrap();
    let builder =
        rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![protocol.to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let mut endpoint =
        quinn_proto::Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
    let (_, mut connection) =
        endpoint.connect(Instant::now(), config, server, "localhost").unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let (mut stream, mut rest, mut received, mut output) = (None, body, Vec::new(), Vec::new());
    loop {
        while let Some(event) = connection.poll() {
            match event {
                quinn_proto::Event::Connected => stream = connection.streams().open(Dir::Bi),
                quinn_proto::Event::ConnectionLost { reason } => return Err(reason.to_string()),
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) => {
                    let mut stream = connection.recv_stream(id);
                    let mut chunks = stream.read(true).unwrap();
                    let is_end = loop {
                        match chunks.next(usize::MAX) {
                            Ok(Some(chunk)) => received.extend_from_slice(&chunk.bytes),
                            Ok(None) => break true,
                            Err(_) => break false,
                        }
                    };
                    let _ = chunks.finalize();
                    if is_end {
                        connection.close(Instant::now(), VarInt::from_u32(0), Vec::new().into());
                        let _ = connection.poll_transmit(Instant::now(), 1, &mut output);
                        socket.send_to(&output, server).unwrap();
                        return Ok((received, largest));
                    }
                }
                _ => {}
            }
        }
        if let Some(id) = stream {
            let mut sender = connection.send_stream(id);
            rest = &rest[sender.write(rest).unwrap_or(0)..];
            if rest.is_empty() {
                sender.finish().unwrap();
                stream = None;
            }
        }
        output.clear();
        while connection.poll_transmit(Instant::now(), 1, &mut output).is_some() {
            socket.send_to(&output, server).unwrap();
            output.clear();
        }
        if connection.poll_timeout().is_some_and(|at| at <= Instant::now()) {
            connection.handle_timeout(Instant::now());
        }
        let mut datagram = [0; 2048];
        let Ok((count, from)) = socket.recv_from(&mut datagram) else { continue };
        largest = largest.max(count);
        let data = datagram[..count].into();
        let event = endpoint.handle(Instant::now(), from, None, None, data, &mut output);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            connection.handle_event(event);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(quinn_proto::ConnectionHandle(0), event) {
                connection.handle_event(event);
            }
        }
    }
}

/// Runs a client on a thread while the endpoint serves it.
fn with_endpoint<T: Send + 'static>(
    are_admitted: bool,
    client: impl FnOnce(SocketAddr) -> T + Send + 'static,
) -> T {
    run(async move {
        let sockets = bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        let member = members(sockets, &[]).unwrap().pop().unwrap();
        let application = Rc::new(Echo { are_admitted: Cell::new(are_admitted) });
        let endpoint = Endpoint::start(member, &settings(), application).unwrap();
        let server = endpoint.local_address();
        let (sender, receiver) = outboard_reactor::mailbox();
        let client = thread::spawn(move || assert!(sender.send(client(server)).is_ok()));
        let outcome = receiver.next().await;
        client.join().unwrap();
        endpoint.stop();
        outcome
    })
    .unwrap()
}

#[test]
fn a_body_larger_than_every_window_comes_back_complete() {
    let body: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 999) as u8).collect();
    let sent = body.clone();
    let received = with_endpoint(true, move |server| exchange(server, PROTOCOL, &sent));
    assert!(received.unwrap() == body);
}

/// RFC 9000 14.3: every connection begins with 1200 bytes.
#[test]
fn datagrams_become_as_large_as_the_network_allows() {
    let sent = vec![1; 1_000_000];
    let received = with_endpoint(true, move |server| exchange_counting(server, PROTOCOL, &sent));
    let (_, largest) = received.unwrap();
    assert!(largest > 1_400, "{largest}");
}

#[test]
fn other_protocols_and_clients_without_room_are_refused() {
    let lost = with_endpoint(true, |server| exchange(server, b"other", b"body"));
    assert!(lost.unwrap_err().contains("120"));
    let lost = with_endpoint(false, |server| exchange(server, PROTOCOL, b"body"));
    assert!(lost.unwrap_err().contains("refused"));
}

#[test]
fn datagrams_that_are_not_quic_change_nothing() {
    let received = with_endpoint(true, |server| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for at in 0..500_usize {
            let datagram: Vec<u8> = (0..at * 3).map(|byte| (byte * at) as u8).collect();
            socket.send_to(&datagram, server).unwrap();
        }
        exchange(server, PROTOCOL, b"body")
    });
    assert_eq!(received.unwrap(), b"body");
}
