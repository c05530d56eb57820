//! Runs against a server of `quinn-proto` on another thread, which plays a part.

use crate::target::Protocol;
use crate::{Expect, Failure, Plan, Run, Summary, Target};
use outboard_http3::{Config, Connection, ErrorCode, Event};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, ServerConfig, StreamEvent,
    StreamId, VarInt,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::collections::{HashMap, VecDeque};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How the server treats requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Responds with a body in two pieces, the second once the first has arrived.
    Pieces,
    /// Resets the stream.
    Reset,
    /// Sends a body that is too short.
    Short,
    /// Closes the connection.
    Close,
    /// Does nothing.
    Silence,
    /// Responds, and refuses all after the second one by GOAWAY.
    GoAway,
}

const HEAD: &[(&[u8], &[u8])] = &[(b"content-length", b"10"), (b"server", b"played")];

struct Peer {
    quic: quinn_proto::Connection,
    http: Connection,
    control: Option<StreamId>,
    requests: u64,
    /// Second pieces, sent when the first of that stream is acknowledged or nothing else arrives.
    later: VecDeque<StreamId>,
}

impl Peer {
    fn new(quic: quinn_proto::Connection) -> Self {
        let http = Connection::new(Config::default());
        Self { quic, http, control: None, requests: 0, later: VecDeque::new() }
    }

    fn turn(&mut self, part: Part) {
        while let Some(stream) = self.later.pop_front() {
            let _ = self.quic.send_stream(stream).write(b"\0\x05world");
            let _ = self.quic.send_stream(stream).finish();
        }
        while let Some(event) = self.quic.poll() {
            match event {
                quinn_proto::Event::Connected => self.open_control(),
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) => self.read(id, part),
                _ => {}
            }
        }
        for dir in [Dir::Bi, Dir::Uni] {
            while let Some(id) = self.quic.streams().accept(dir) {
                self.read(id, part);
            }
        }
    }

    fn open_control(&mut self) {
        let control = self.quic.streams().open(Dir::Uni).unwrap();
        let mut start = Vec::new();
        self.http.write_control_stream_start(&mut start);
        self.quic.send_stream(control).write(&start).unwrap();
        self.control = Some(control);
    }

    fn read(&mut self, id: StreamId, part: Part) {
        let (mut bytes, mut is_end, mut is_request) = (Vec::new(), false, false);
        if let Ok(mut chunks) = self.quic.recv_stream(id).read(true) {
            while let Ok(next) = chunks.next(usize::MAX) {
                match next {
                    Some(chunk) => bytes.extend_from_slice(&chunk.bytes),
                    None => {
                        is_end = true;
                        break;
                    }
                }
            }
            let _ = chunks.finalize();
        }
        let received = self.http.receive(id.into(), &bytes, is_end, |event| {
            is_request |= matches!(event, Event::Head { .. });
        });
        assert!(received.is_ok());
        if is_request {
            self.requests += 1;
            self.respond(id, part);
        }
    }

    fn respond(&mut self, id: StreamId, part: Part) {
        let mut out = Vec::new();
        self.http.write_fields(&mut out, |fields| {
            fields.status(200);
            HEAD.iter().for_each(|(name, value)| fields.field(name, value));
        });
        out.extend(b"\0\x05hello");
        let code = |code: ErrorCode| VarInt::from_u64(code.0).unwrap();
        if part == Part::GoAway && self.requests == 2 {
            let mut goaway = Vec::new();
            self.http.write_goaway(&mut goaway);
            self.quic.send_stream(self.control.unwrap()).write(&goaway).unwrap();
        }
        match part {
            Part::GoAway if self.requests > 2 => {
                self.quic.send_stream(id).reset(code(ErrorCode::REQUEST_REJECTED)).unwrap();
            }
            Part::Pieces | Part::GoAway => {
                self.quic.send_stream(id).write(&out).unwrap();
                self.later.push_back(id);
            }
            Part::Reset => {
                self.quic.send_stream(id).reset(code(ErrorCode::INTERNAL_ERROR)).unwrap();
            }
            Part::Short => {
                self.quic.send_stream(id).write(&out).unwrap();
                self.quic.send_stream(id).finish().unwrap();
            }
            Part::Close => {
                self.quic.close(
                    Instant::now(),
                    code(ErrorCode::INTERNAL_ERROR),
                    bytes::Bytes::new(),
                );
            }
            Part::Silence => {}
        }
    }
}

fn endpoint() -> Endpoint {
    let chain = vec![CertificateDer::from(&include_bytes!("tests/certificate.der")[..])];
    let key = PrivatePkcs8KeyDer::from(&include_bytes!("tests/key.der")[..]);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
    let mut tls =
        builder.with_no_client_auth().with_single_cert(chain, PrivateKeyDer::Pkcs8(key)).unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = Arc::new(QuicServerConfig::try_from(tls).unwrap());
    let server = Arc::new(ServerConfig::with_crypto(crypto));
    Endpoint::new(Arc::new(EndpointConfig::default()), Some(server), false, None)
}

fn serve(socket: &UdpSocket, part: Part, is_over: &AtomicBool) {
    let (mut endpoint, mut peers) = (endpoint(), HashMap::<ConnectionHandle, Peer>::new());
    let mut out = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let mut datagram = [0; 2048];
        if let Ok((count, from)) = socket.recv_from(&mut datagram) {
            let (now, data) = (Instant::now(), datagram[..count].into());
            out.clear();
            match endpoint.handle(now, from, None, None, data, &mut out) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let (handle, quic) = endpoint.accept(incoming, now, &mut out, None).unwrap();
                    peers.insert(handle, Peer::new(quic));
                }
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(peer) = peers.get_mut(&handle) {
                        peer.quic.handle_event(event);
                    }
                }
                _ => {}
            }
        }
        for (handle, peer) in &mut peers {
            peer.quic.handle_timeout(Instant::now());
            peer.turn(part);
            while let Some(event) = peer.quic.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    peer.quic.handle_event(event);
                }
            }
            out.clear();
            while let Some(transmit) = peer.quic.poll_transmit(Instant::now(), 1, &mut out) {
                socket.send_to(&out, transmit.destination).unwrap();
                out.clear();
            }
        }
        peers.retain(|_, peer| !peer.quic.is_drained());
    }
}

/// The result of 12 requests in two connections.
fn run(part: Part, streams: usize) -> Summary {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
    let url = format!("https://{}/", socket.local_addr().unwrap());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| serve(&socket, part, &is_over));
        let target = Target { protocol: Protocol::Http3, ..Target::parse(&url).unwrap() };
        let mut plan = Plan {
            connections: 2,
            streams,
            requests: Some(12),
            duration: Duration::from_secs(60),
            timeout: Duration::from_millis(if part == Part::Silence { 50 } else { 20_000 }),
            verify_tls: false,
            ..Plan::new(target)
        };
        plan.scripts[0].steps[0].expect =
            Expect { body_is: Some(b"helloworld"[..].into()), ..Expect::default() };
        let summary = Run::start(plan).and_then(Run::finish);
        is_over.store(true, Ordering::Relaxed);
        summary.unwrap()
    })
}

#[test]
fn bodies_in_pieces_arrive_whole_in_all_streams() {
    for streams in [1, 3] {
        let summary = run(Part::Pieces, streams);
        assert_eq!((summary.responses, summary.failures.total()), (12, 0));
        assert_eq!((summary.body_bytes, summary.connect.len()), (120, 2));
        assert_eq!(summary.first.unwrap().server, "played");
    }
}

#[test]
fn a_stream_that_is_reset_fails_its_own_request() {
    let summary = run(Part::Reset, 3);
    assert_eq!((summary.failures.count(Failure::Closed), summary.failures.total()), (12, 12));
    assert_eq!(summary.connect.len(), 2);
}

#[test]
fn a_response_of_another_length_is_malformed() {
    let summary = run(Part::Short, 3);
    assert_eq!((summary.failures.count(Failure::Malformed), summary.failures.total()), (12, 12));
    assert_eq!(summary.connect.len(), 2);
}

#[test]
fn connections_that_the_server_closes_are_replaced() {
    let summary = run(Part::Close, 1);
    assert_eq!((summary.failures.count(Failure::Closed), summary.failures.total()), (12, 12));
    assert!(summary.connect.len() >= 11, "{}", summary.connect.len());
}

#[test]
fn requests_without_a_response_time_out() {
    for streams in [1, 3] {
        let summary = run(Part::Silence, streams);
        let timeouts = summary.failures.count(Failure::Timeout);
        assert_eq!((timeouts, summary.failures.total()), (12, 12));
    }
}

#[test]
fn requests_after_goaway_are_sent_on_another_connection() {
    for streams in [1, 3] {
        let summary = run(Part::GoAway, streams);
        assert_eq!((summary.responses, summary.failures.total()), (12, 0));
        assert!(summary.connect.len() >= 6, "{}", summary.connect.len());
    }
}
