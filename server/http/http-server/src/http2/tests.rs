//! Streams of a connection whose client is the test.

use super::*;
use crate::connections::Kind;
use crate::listener_context::{ListenerContext, Role};
use crate::peer::PeerInfo;
use crate::testing::{Echo, context, limits};
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use outboard_reactor::testing::{in_loop, wait_for};
use outboard_reactor::{Peer, Stream as Socket, spawn};
use outboard_tls::{
    CertificateFiles, CertificateSource, Io, ServerOptions, ServerSettings, Session, TicketKeys,
    Trust, client_settings,
};
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A certificate for `localhost`, and its key.
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http2/tests/localhost.pem");

fn service() -> Rc<Echo> {
    Rc::new(Echo { context: context(limits()) })
}

fn socket(end: UnixStream) -> Socket {
    end.set_nonblocking(true).unwrap();
    Socket::new(end.into()).unwrap()
}

/// Connects to a service. The client's end is driven by a task of its own.
async fn connect(service: &Rc<Echo>) -> SendRequest<Bytes> {
    let (client, server) = UnixStream::pair().unwrap();
    let (server, service) = (socket(server), service.clone());
    spawn(async move {
        let file = || CERTIFICATE.into();
        let options = ServerOptions {
            certificates: CertificateSource::Files(vec![CertificateFiles {
                chain: file(),
                key: file(),
                ocsp: None,
            }]),
            protocols: vec![b"h2"],
            ..ServerOptions::default()
        };
        let keys = TicketKeys::default();
        let settings = ServerSettings::read(&options, &keys, &|path| File::open(path));
        let (session, _) = Session::accept(server, &settings.unwrap()).await.unwrap();
        let limits = service.context.limits().clone();
        let entry = service.context.connections.open(Kind::Connection, None, &limits).unwrap();
        let listener = Arc::new(ListenerContext::plain(Role::Apps));
        let accepted = Accepted {
            server: service.context.clone(),
            listener,
            peer: PeerInfo::new(Peer::Unix),
            entry,
        };
        serve(service, accepted, Transport::encrypted(session), Vec::new()).await;
    });
    let settings = client_settings(Trust::DangerousNoVerification, &[b"h2"]).unwrap();
    let name = "localhost".try_into().unwrap();
    let session = Session::connect(socket(client), Arc::new(settings), name).await.unwrap();
    let io = Io::new(Box::new(session));
    let flusher = io.flusher();
    let handshake = flusher.while_waiting(h2::client::handshake(io)).await;
    let (client, connection) = handshake.unwrap();
    spawn(async move { drop(flusher.while_waiting(connection).await) });
    client
}

/// A request whose body, if it is to have one, is not complete.
struct Open {
    response: h2::client::ResponseFuture,
    body: h2::SendStream<Bytes>,
}

impl Open {
    async fn start(client: &SendRequest<Bytes>, path: &str, has_body: bool) -> Self {
        let request = Request::builder().uri(format!("https://localhost{path}"));
        let request = request.method(if has_body { "POST" } else { "GET" }).body(()).unwrap();
        let mut client = client.clone().ready().await.unwrap();
        let (response, body) = client.send_request(request, !has_body).unwrap();
        Self { response, body }
    }

    /// Completes the body; the status and the body of the response.
    async fn finish(mut self, bytes: &'static [u8]) -> Result<(u16, Vec<u8>), h2::Error> {
        self.body.send_data(Bytes::from_static(bytes), true)?;
        self.receive().await
    }

    async fn receive(self) -> Result<(u16, Vec<u8>), h2::Error> {
        let response = self.response.await?;
        let (status, mut body) = (response.status().as_u16(), response.into_body());
        let mut bytes = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            bytes.extend_from_slice(&piece);
        }
        Ok((status, bytes))
    }
}

async fn get(client: &SendRequest<Bytes>, path: &str) -> Result<(u16, Vec<u8>), h2::Error> {
    Open::start(client, path, false).await.receive().await
}

#[test]
fn a_request_that_waits_for_its_body_delays_no_other() {
    in_loop(async {
        let service = service();
        let client = connect(&service).await;
        let slow = Open::start(&client, "/body", true).await;
        assert_eq!(get(&client, "/a").await.unwrap(), (200, b"/a".to_vec()));
        assert_eq!(get(&client, "/b?c").await.unwrap(), (200, b"/b".to_vec()));
        assert_eq!(slow.finish(b"late").await.unwrap(), (200, b"late".to_vec()));
        assert_eq!(service.context.shared.open_connections(), 1);
    });
}

#[test]
fn a_client_that_expects_100_is_sent_it_before_its_body() {
    in_loop(async {
        let service = service();
        let client = connect(&service).await;
        let request = Request::post("https://localhost/body").header("expect", "100-continue");
        let mut client = client.clone().ready().await.unwrap();
        let (mut response, body) = client.send_request(request.body(()).unwrap(), false).unwrap();
        let interim = poll_fn(|cx| response.poll_informational(cx)).await.unwrap().unwrap();
        assert_eq!(interim.status(), 100);
        let open = Open { response, body };
        assert_eq!(open.finish(b"sent").await.unwrap(), (200, b"sent".to_vec()));
    });
}

#[test]
fn a_body_larger_than_every_window_arrives_whole() {
    in_loop(async {
        const BYTES: usize = 2 << 20;
        let service = service();
        let client = connect(&service).await;
        let Open { response, mut body } = Open::start(&client, "/body", true).await;
        let sent: Vec<u8> = (0..BYTES).map(|at| (at / 1000) as u8).collect();
        let expected = sent.clone();
        spawn(async move {
            for piece in sent.chunks(10_000) {
                body.reserve_capacity(piece.len());
                while body.capacity() < piece.len() {
                    if poll_fn(|context| body.poll_capacity(context)).await.is_none() {
                        return;
                    }
                }
                body.send_data(Bytes::copy_from_slice(piece), false).unwrap();
            }
            body.send_data(Bytes::new(), true).unwrap();
        });
        let response = response.await.unwrap();
        let (mut body, mut received) = (response.into_body(), Vec::new());
        while let Some(piece) = body.data().await {
            let piece = piece.unwrap();
            body.flow_control().release_capacity(piece.len()).unwrap();
            received.extend_from_slice(&piece);
        }
        assert!(received == expected, "{} bytes", received.len());
    });
}

#[test]
fn an_incomplete_response_resets_its_stream_only() {
    in_loop(async {
        let service = service();
        let client = connect(&service).await;
        let error = get(&client, "/broken").await.unwrap_err();
        assert!(error.is_reset(), "{error}");
        assert_eq!(get(&client, "/next").await.unwrap().0, 200);
    });
}

#[test]
fn streams_without_room_in_memory_are_refused_and_may_be_repeated() {
    in_loop(async {
        const STREAMS: usize = 30;
        let service = service();
        // One connection may take a quarter of it: itself, and a few streams.
        service.context.memory.set_limit(1 << 20);
        let client = connect(&service).await;
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            open.push(Open::start(&client, "/body", true).await);
        }
        let (mut refused, mut responses) = (0, 0);
        for stream in open.into_iter().rev() {
            match stream.finish(b"x").await {
                Ok(response) => {
                    assert_eq!(response, (200, b"x".to_vec()));
                    responses += 1;
                }
                Err(error) => {
                    // Data for a stream that was refused meanwhile is an error of the client's own.
                    let reason = error.reason();
                    assert!(
                        reason.is_none_or(|reason| reason == h2::Reason::REFUSED_STREAM),
                        "{error}"
                    );
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && responses > 0, "{refused} of {STREAMS} refused");
        assert_eq!(get(&client, "/again").await.unwrap().0, 200);
    });
}

#[test]
fn a_reset_stream_ends_its_request() {
    in_loop(async {
        let service = service();
        let client = connect(&service).await;
        let mut stream = Open::start(&client, "/body", true).await;
        let streams = |count: u32| {
            let context = service.context.clone();
            wait_for("change of the streams", move || {
                (context.open_streams() == count).then_some(())
            })
        };
        streams(1).await;
        stream.body.send_reset(h2::Reason::CANCEL);
        streams(0).await;
        assert_eq!(get(&client, "/next").await.unwrap().0, 200);
    });
}

#[test]
fn an_extended_connect_is_a_stream_of_bytes() {
    in_loop(async {
        let client = connect(&service()).await;
        let mut client = client.ready().await.unwrap();
        wait_for("the server's settings", || {
            client.is_extended_connect_protocol_enabled().then_some(())
        })
        .await;
        let request = Request::connect("https://localhost/chat")
            .extension(h2::ext::Protocol::from_static("websocket"));
        let (response, mut sent) = client.send_request(request.body(()).unwrap(), false).unwrap();
        sent.send_data(Bytes::from_static(b"one"), false).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "one");
        sent.send_data(Bytes::from_static(b"two"), true).unwrap();
        assert_eq!(body.data().await.unwrap().unwrap(), "two");
        // The end of the stream, alone in a frame.
        assert!(body.data().await.is_none_or(|end| end.unwrap().is_empty()));
        assert!(body.is_end_stream(), "the server has ended its side");
    });
}

#[test]
fn a_client_without_tls_may_begin_with_the_preface() {
    in_loop(async {
        let service = service();
        let (client, server) = UnixStream::pair().unwrap();
        let listener = ListenerContext::plain(Role::Apps);
        crate::test_client::serve_socket(&service, listener, socket(server), Peer::Unix);
        let client = socket(client);
        // The preface comes in two parts, then SETTINGS and a GET of `/` for the host `a`.
        let frames = b"\0\0\0\x04\0\0\0\0\0\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x87\x41\x01a";
        for part in [&b"PRI * HT"[..], b"TP/2.0\r\n\r\nSM\r\n\r\n", frames] {
            client.write_all(&mut [std::io::IoSlice::new(part)]).await.unwrap();
        }
        let mut received = Vec::new();
        wait_for("a response", || {
            received.reserve(4096);
            drop(client.try_read(&mut received));
            // The DATA frame of the first stream: the path, and the end.
            received.ends_with(b"\0\0\x01\0\x01\0\0\0\x01/").then_some(())
        })
        .await;
    });
}

#[test]
fn a_draining_server_completes_streams_and_accepts_no_more() {
    in_loop(async {
        let service = service();
        let client = connect(&service).await;
        let running = Open::start(&client, "/body", true).await;
        let context = service.context.clone();
        wait_for("stream", || (context.open_streams() == 1).then_some(())).await;
        context.drain();
        assert_eq!(running.finish(b"x").await.unwrap(), (200, b"x".to_vec()));
        wait_for("end", || (context.shared.open_connections() == 0).then_some(())).await;
        assert!(client.clone().ready().await.is_err());
    });
}

#[test]
fn a_client_that_leaves_takes_its_streams_along() {
    in_loop(async {
        let service = service();
        let client = connect(&service).await;
        let open = Open::start(&client, "/body", true).await;
        let context = service.context.clone();
        wait_for("stream", || (context.open_streams() == 1).then_some(())).await;
        assert!(context.memory.held_bytes() > 0);
        drop((open, client));
        wait_for("end of the stream", || (context.open_streams() == 0).then_some(())).await;
        wait_for("end", || (context.shared.open_connections() == 0).then_some(())).await;
        wait_for("end of its memory", || (context.memory.held_bytes() == 0).then_some(())).await;
    });
}
