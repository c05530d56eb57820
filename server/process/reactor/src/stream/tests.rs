//! Sockets with peers that are slow, gone or hostile.

use super::*;
use crate::{Elapsed, now_ms, run, with_deadline, without_budget, yield_now};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

fn pair() -> (Stream, UnixStream) {
    let (own, peer) = UnixStream::pair().unwrap();
    own.set_nonblocking(true).unwrap();
    (Stream::new(own.into()).unwrap(), peer)
}

/// A connection over TCP: its two ends.
async fn connection() -> (Accepted, TcpStream) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
    let listener = Listener::new(socket.into()).unwrap();
    (listener.accept().await.unwrap(), client)
}

#[test]
fn the_peer_and_the_own_address_are_known() {
    run(async {
        let (accepted, client) = connection().await;
        assert_eq!(accepted.peer, Peer::Tcp(client.local_addr().unwrap()));
        assert_eq!(accepted.stream.local_address(), Some(client.peer_addr().unwrap()));
        assert!(sockopt::tcp_nodelay(&accepted.stream).unwrap());

        let path = std::env::temp_dir().join(format!("stream-{}.sock", std::process::id()));
        let listener = Listener::new(UnixListener::bind(&path).unwrap().into()).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let accepted = listener.accept().await.unwrap();
        assert_eq!(accepted.peer, Peer::Unix);
        assert_eq!(accepted.stream.local_address(), None);
        drop(client);
    })
    .unwrap();
}

#[test]
fn a_connection_that_was_reset_is_an_error_to_read_and_to_write() {
    run(async {
        let (Accepted { stream, .. }, client) = connection().await;
        sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop(client);
        std::future::poll_fn(|_| stream.source().poll_gone()).await;
        let mut buffer = Vec::with_capacity(16);
        let read = stream.read(&mut buffer).await;
        assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
        let written = stream.write_all(&mut [IoSlice::new(b"late")]).await;
        assert_eq!(written.unwrap_err().kind(), ErrorKind::BrokenPipe, "without a signal");
    })
    .unwrap();
}

#[test]
fn one_slice_or_many_are_not_written_to_a_peer_that_is_gone() {
    run(async {
        for slices in [&mut [IoSlice::new(b"one")][..], &mut [IoSlice::new(b"two"); 2]] {
            let (stream, peer) = pair();
            drop(peer);
            let written = stream.write_all(slices).await;
            assert_eq!(written.unwrap_err().kind(), ErrorKind::BrokenPipe);
        }
    })
    .unwrap();
}

#[test]
fn a_full_socket_accepts_more_only_after_a_read() {
    run(async {
        let (stream, mut peer) = pair();
        let chunk = [IoSlice::new(&[7; 1000])];
        let fill = || {
            let mut total = 0;
            while let Some(count) = stream.try_write(&chunk).unwrap() {
                total += count;
            }
            total
        };
        let filled = without_budget(fill);
        assert!(filled > 0);
        let full = with_deadline(now_ms() + 30, stream.source().writable()).await;
        assert_eq!(full, Err(Elapsed));
        let mut data = vec![0; filled];
        peer.read_exact(&mut data).unwrap();
        assert!(data.iter().all(|byte| *byte == 7));
        stream.source().writable().await;
        assert!(without_budget(fill) > 0);
    })
    .unwrap();
}

#[test]
fn empty_slices_are_written_at_once_and_send_nothing() {
    run(async {
        let (stream, mut peer) = pair();
        stream.write_all(&mut []).await.unwrap();
        stream.write_all(&mut [IoSlice::new(&[]), IoSlice::new(&[])]).await.unwrap();
        stream.shutdown_write();
        let mut data = Vec::new();
        peer.read_to_end(&mut data).unwrap();
        assert!(data.is_empty());
    })
    .unwrap();
}

#[test]
fn a_peer_that_has_ended_its_side_still_receives() {
    run(async {
        let (stream, mut peer) = pair();
        peer.write_all(b"last").unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        let mut buffer = Vec::with_capacity(16);
        assert_eq!(stream.read(&mut buffer).await.unwrap(), 4);
        for _ in 0..2 {
            assert_eq!(stream.read(&mut buffer).await.unwrap(), 0, "the end stays");
        }
        stream.write_all(&mut [IoSlice::new(b"response")]).await.unwrap();
        drop(stream);
        let mut data = String::new();
        peer.read_to_string(&mut data).unwrap();
        assert_eq!((&buffer[..], &*data), (&b"last"[..], "response"));
    })
    .unwrap();
}

#[test]
fn a_file_is_sent_from_its_offset_to_its_end() {
    run(async {
        let path = std::env::temp_dir().join(format!("sent-{}", std::process::id()));
        fs::write(&path, "0123456789").unwrap();
        let file = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let (stream, mut peer) = pair();
        let mut offset = 3;
        let mut send = |len| stream.try_send_file(file.as_fd(), &mut offset, len).unwrap();
        assert_eq!([send(2), send(100), send(100)], [Some(2), Some(5), Some(0)]);
        assert_eq!(offset, 10);
        drop(stream);
        let mut data = String::new();
        peer.read_to_string(&mut data).unwrap();
        assert_eq!(data, "3456789");
    })
    .unwrap();
}

#[test]
fn a_stream_of_a_task_without_budget_would_block_for_a_turn() {
    run(async {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let (stream, mut peer) = pair();
        peer.write_all(b"data").unwrap();
        let mut buffer = Vec::with_capacity(16);
        budget::spend(usize::MAX);
        assert_eq!(stream.try_read(&mut buffer).unwrap(), None);
        assert_eq!(stream.try_write(&[IoSlice::new(b"out")]).unwrap(), None);
        assert_eq!(stream.try_send_file(file.as_fd(), &mut 0, 8).unwrap(), None);
        yield_now().await;
        assert_eq!(stream.try_read(&mut buffer).unwrap(), Some(4));
        assert_eq!(stream.try_write(&[IoSlice::new(b"out")]).unwrap(), Some(3));
        assert_eq!(stream.try_send_file(file.as_fd(), &mut 0, 8).unwrap(), Some(8));
    })
    .unwrap();
}
