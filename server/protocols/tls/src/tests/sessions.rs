//! Sessions over sockets: their data, their ends, and what breaks them.

use super::authority::{Authority, open, sent, trusting};
use crate::tests::authority::Pair;
use crate::{CertificateSource, Io, ServerOptions, ServerSettings, Session, TicketKeys};
use outboard_reactor::Stream;
use outboard_reactor::testing::in_loop;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

fn streams() -> (Stream, Stream) {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    (Stream::new(a).unwrap(), Stream::new(b).unwrap())
}

fn settings(authority: &Authority) -> ServerSettings {
    let files = vec![authority.files("server", &["a.test"])];
    let certificates = CertificateSource::Files(files);
    let options =
        ServerOptions { certificates, protocols: vec![b"h2"], ..ServerOptions::default() };
    ServerSettings::read(&options, &TicketKeys::default(), &open).unwrap()
}

/// Both results, of what takes turns in one task.
async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    poll_fn(|context| {
        if of_a.is_none()
            && let Poll::Ready(done) = a.as_mut().poll(context)
        {
            of_a = Some(done);
        }
        if of_b.is_none()
            && let Poll::Ready(done) = b.as_mut().poll(context)
        {
            of_b = Some(done);
        }
        match (of_a.take(), of_b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            (a, b) => {
                (of_a, of_b) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

/// A client's and a server's session.
async fn sessions(name: &str) -> (Session, Session) {
    let (authority, (near, far)) = (Authority::new(name), streams());
    let settings = settings(&authority);
    let to = ServerName::try_from("a.test").unwrap();
    let connect = Session::connect(near, trusting(&[b"h2"]), to);
    let (client, server) = both(connect, Session::accept(far, &settings)).await;
    let (server, facts) = server.unwrap();
    assert_eq!(facts.protocol, "TLSv1.3");
    (client.unwrap(), server)
}

async fn read(session: &mut Session) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    let count = poll_fn(|_| session.poll_read(&mut data)).await?;
    assert_eq!(count, data.len());
    Ok(data)
}

async fn write(session: &mut Session, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        let taken = poll_fn(|_| session.poll_write(&[IoSlice::new(data)])).await?;
        data = &data[taken..];
    }
    poll_fn(|_| session.poll_flush()).await
}

#[test]
fn data_passes_in_both_directions() {
    in_loop(async {
        let (mut client, mut server) = sessions("both").await;
        assert!(client.is_http2() && server.is_http2());
        assert!(!server.is_challenge() && !server.is_early());
        write(&mut client, b"request").await.unwrap();
        assert_eq!(read(&mut server).await.unwrap(), b"request");
        write(&mut server, b"response").await.unwrap();
        assert_eq!(read(&mut client).await.unwrap(), b"response");
    });
}

#[test]
fn more_than_the_buffers_hold_arrives_in_order() {
    in_loop(async {
        let (mut client, mut server) = sessions("large").await;
        let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let receiving = async {
            let mut received = Vec::new();
            while received.len() < sent.len() {
                received.extend(read(&mut server).await.unwrap());
            }
            received
        };
        let (written, received) = both(write(&mut client, &sent), receiving).await;
        written.unwrap();
        assert!(received == sent, "{} bytes", received.len());
    });
}

#[test]
fn only_an_announced_end_is_the_end_of_the_data() {
    in_loop(async {
        let (mut client, mut server) = sessions("end").await;
        write(&mut client, b"all").await.unwrap();
        drop(client);
        assert_eq!(read(&mut server).await.unwrap(), b"all");
        assert_eq!(read(&mut server).await.unwrap(), b"", "its end was announced");
        let (mut client, mut server) = sessions("truncated").await;
        write(&mut client, b"part").await.unwrap();
        // Closing a socket with unread data would send a reset; tickets precede this.
        write(&mut server, b"hello").await.unwrap();
        assert_eq!(read(&mut client).await.unwrap(), b"hello");
        client.abandon();
        drop(client);
        assert_eq!(read(&mut server).await.unwrap(), b"part");
        let error = read(&mut server).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    });
}

#[test]
fn a_client_without_tls_gets_an_alert() {
    in_loop(async {
        let authority = Authority::new("plain");
        let (near, far) = streams();
        near.try_write(&[IoSlice::new(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")]).unwrap();
        let error = Session::accept(far, &settings(&authority)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let source = error.get_ref().unwrap().downcast_ref::<rustls::Error>();
        assert!(matches!(source, Some(rustls::Error::InvalidMessage(_))), "{error}");
        let mut alert = Vec::with_capacity(64);
        near.read(&mut alert).await.unwrap();
        const ALERT: u8 = 21;
        assert_eq!(alert[0], ALERT);
        assert_eq!(near.read(&mut Vec::with_capacity(1)).await.unwrap(), 0);
    });
}

#[test]
fn a_client_that_leaves_in_the_handshake_is_an_error() {
    in_loop(async {
        let authority = Authority::new("leaves");
        let settings = settings(&authority);
        let hello = sent(&mut Pair::new(&trusting(&[b"h2"]), "a.test", &settings).client);
        for length in [0, 1, hello.len() / 2, hello.len()] {
            let (near, far) = streams();
            near.try_write(&[IoSlice::new(&hello[..length])]).unwrap();
            rustix::net::shutdown(near.source(), rustix::net::Shutdown::Write).unwrap();
            let error = Session::accept(far, &settings).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length} bytes");
        }
    });
}

#[test]
fn a_server_of_another_authority_is_refused() {
    in_loop(async {
        let (authority, stranger) = (Authority::new("ours"), Authority::new("theirs"));
        let (near, far) = streams();
        let settings = settings(&stranger);
        let to = ServerName::try_from("a.test").unwrap();
        let connect = Session::connect(near, authority.settings(None), to);
        let (client, server) = both(connect, Session::accept(far, &settings)).await;
        let error = client.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "invalid peer certificate: UnknownIssuer");
        // It learns of it by the alert.
        let alert = server.unwrap_err().to_string();
        assert!(alert.contains("UnknownCA"), "{alert}");
    });
}

#[test]
fn after_a_protocol_error_nothing_is_written() {
    in_loop(async {
        let (mut client, mut server) = sessions("garbage").await;
        let garbage =
            [23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        client.stream().try_write(&[IoSlice::new(&garbage)]).unwrap();
        let error = read(&mut server).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = write(&mut server, b"response").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        drop(server);
        let error = read(&mut client).await.unwrap_err();
        assert!(error.to_string().contains("BadRecordMac"), "the alert: {error}");
    });
}

#[test]
fn bytes_that_a_caller_has_read_begin_the_handshake() {
    in_loop(async {
        let authority = Authority::new("received");
        let (near, far) = streams();
        let settings = settings(&authority);
        let to = ServerName::try_from("a.test").unwrap();
        let connect = Session::connect(near, trusting(&[b"h2"]), to);
        let accept = async {
            let mut first = Vec::with_capacity(16);
            far.read(&mut first).await.unwrap();
            Session::accept_received(far, first, &settings).await
        };
        let (client, server) = both(connect, accept).await;
        let (mut client, mut server) = (client.unwrap(), server.unwrap().0);
        write(&mut server, b"hello").await.unwrap();
        assert!(client.poll_readable().is_ready() || read(&mut client).await.is_ok());
    });
}

#[test]
fn frames_are_sent_together_by_the_flusher() {
    in_loop(async {
        let (mut client, server) = sessions("frames").await;
        let mut io = Io::new(Box::new(server));
        let flusher = io.flusher();
        for frame in ["one ", "two"] {
            let slices = [IoSlice::new(frame.as_bytes())];
            let write = |context: &mut std::task::Context<'_>| {
                Pin::new(&mut io).poll_write_vectored(context, &slices)
            };
            assert_eq!(poll_fn(write).await.unwrap(), frame.len());
            poll_fn(|context| Pin::new(&mut io).poll_flush(context)).await.unwrap();
        }
        let mut tickets = Vec::new();
        assert!(client.poll_read(&mut tickets).is_pending(), "nothing was sent yet");
        flusher.send();
        let mut received = Vec::new();
        while received.len() < 7 {
            received.extend(read(&mut client).await.unwrap());
        }
        assert_eq!(received, b"one two");
        poll_fn(|context| Pin::new(&mut io).poll_shutdown(context)).await.unwrap();
        assert_eq!(read(&mut client).await.unwrap(), b"");
    });
}

#[test]
fn a_reader_with_little_room_gets_the_rest_later() {
    in_loop(async {
        let (mut client, server) = sessions("room").await;
        let mut io = Io::new(Box::new(server));
        write(&mut client, b"abcdefgh").await.unwrap();
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        while pieces.concat().len() < 8 {
            let mut room = [0; 3];
            let mut buffer = ReadBuf::new(&mut room);
            poll_fn(|context| Pin::new(&mut io).poll_read(context, &mut buffer)).await.unwrap();
            pieces.push(buffer.filled().to_vec());
        }
        assert_eq!(pieces, [b"abc".to_vec(), b"def".to_vec(), b"gh".to_vec()]);
    });
}

#[test]
fn what_is_written_while_work_waits_is_sent() {
    in_loop(async {
        let (mut client, server) = sessions("waiting").await;
        let io = Rc::new(std::cell::RefCell::new(Io::new(Box::new(server))));
        let flusher = io.borrow().flusher();
        let work = async {
            let write = |context: &mut std::task::Context<'_>| {
                Pin::new(&mut *io.borrow_mut()).poll_write(context, b"ping")
            };
            poll_fn(write).await.unwrap();
            assert_eq!(read(&mut client).await.unwrap(), b"ping");
            "done"
        };
        assert_eq!(flusher.while_waiting(work).await, "done");
    });
}
