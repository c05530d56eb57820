//! Listeners on real sockets, with a service that echoes.

use super::*;
use crate::testing::{Echo, context, context_of, limits};
use outboard_buffer::TempDir;
use outboard_config::Limits;
use outboard_reactor::{blocking, run, yield_now};
use rustix::fd::OwnedFd;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn any_port() -> ListenAddress {
    ListenAddress::Tcp("127.0.0.1:0".parse().unwrap())
}

fn unix(path: &std::path::Path) -> ListenAddress {
    ListenAddress::Unix { path: path.to_owned(), mode: 0o600 }
}

/// A path for a socket, in a directory of the test's own.
fn socket_path(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("outboard-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory.join("socket")
}

fn start(service: &Rc<Echo>, inherited: &[OwnedFd], address: ListenAddress) -> Rc<BoundListener> {
    let context = Arc::new(ListenerContext::plain(Role::Apps));
    let mut sockets = ListeningSocket::for_shards(1, inherited, &address, 16).unwrap();
    BoundListener::start(service, sockets.pop().unwrap(), context).unwrap()
}

fn service(limits: Limits) -> Rc<Echo> {
    Rc::new(Echo { context: context(limits) })
}

const REQUEST: &[u8] = b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

fn get(mut stream: impl Read + Write) -> String {
    stream.write_all(REQUEST).unwrap();
    rest(stream)
}

fn rest(mut stream: impl Read) -> String {
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn a_tcp_listener_serves_and_knows_its_port() {
    run(async {
        let service = service(limits());
        let bound = start(&service, &[], any_port());
        let local = bound.local.unwrap();
        assert_eq!(bound.url(), format!("http://{local}/"));
        let response = blocking(move || get(TcpStream::connect(local).unwrap())).await;
        assert!(response.ends_with("/hello"), "{response}");
        assert_eq!(service.context.counters().connections, 1);
    })
    .unwrap();
}

#[test]
fn a_unix_listener_has_its_mode_and_removes_its_file() {
    run(async {
        let path = socket_path("unix-listener");
        let service = service(limits());
        let bound = start(&service, &[], unix(&path));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let at = path.clone();
        let response = blocking(move || get(UnixStream::connect(at).unwrap())).await;
        assert!(response.ends_with("/hello"), "{response}");
        bound.stop();
        assert!(!path.exists());
    })
    .unwrap();
}

#[test]
fn the_socket_of_a_killed_server_is_replaced_and_a_live_one_is_not() {
    run(async {
        let path = socket_path("dead-socket");
        let _ = std::fs::remove_file(&path);
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let service = service(limits());
        let bound = start(&service, &[], unix(&path));
        let error = ListeningSocket::for_shards(1, &[], &unix(&path), 16).unwrap_err();
        assert!(error.to_string().contains("another server listens there"), "{error}");
        bound.stop();
    })
    .unwrap();
}

#[test]
fn an_inherited_socket_is_used_and_stays_open() {
    run(async {
        let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ListenAddress::Tcp(probe.local_addr().unwrap());
        drop(probe);
        let [inherited] = <[_; 1]>::try_from(bind_before(1, &address, 16).unwrap()).ok().unwrap();
        let sockets = [inherited.socket];
        assert!(is_among(&sockets, &address) && !is_among(&sockets, &any_port()));
        let service = service(limits());
        for _ in 0..2 {
            // A reload without the address, and one that uses it again.
            let bound = start(&service, &sockets, address.clone());
            let local = bound.local.unwrap();
            let response = blocking(move || get(TcpStream::connect(local).unwrap())).await;
            assert!(response.ends_with("/hello"), "{response}");
            bound.stop();
            yield_now().await;
        }
    })
    .unwrap();
}

#[test]
fn port_0_is_not_bound_early() {
    assert!(bind_before(2, &any_port(), 16).unwrap().is_empty());
}

#[test]
fn an_address_in_use_is_reported_with_a_hint() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ListenAddress::Tcp(other.local_addr().unwrap());
    let error = bind_before(1, &address, 16).err().unwrap();
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("another server"), "{text}");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_full_server_admits_a_client_when_another_has_left() {
    run(async {
        let service = service(Limits { max_connections: 1, ..limits() });
        let local = start(&service, &[], any_port()).local.unwrap();
        let first = blocking(move || TcpStream::connect(local).unwrap()).await;
        let second = blocking(move || get(TcpStream::connect(local).unwrap())).await;
        assert!(second.ends_with("/hello"), "the idle one has closed: {second}");
        drop(first);
        assert_eq!(service.context.max_connections(), 1);
    })
    .unwrap();
}

#[test]
fn the_limit_of_an_address_rejects_connections() {
    run(async {
        let service = service(Limits { connections_per_ip: Some(1), ..limits() });
        let local = start(&service, &[], any_port()).local.unwrap();
        let busy = blocking(move || {
            let mut stream = TcpStream::connect(local).unwrap();
            stream
                .write_all(
                    b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
                )
                .unwrap();
            // It is sent once the head was parsed and the body is read.
            let mut interim = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
            stream.read_exact(&mut interim).unwrap();
            stream
        })
        .await;
        let rejected = blocking(move || {
            let mut bytes = Vec::new();
            TcpStream::connect(local).unwrap().read_to_end(&mut bytes).map(|_| bytes)
        })
        .await;
        assert!(rejected.map_or(true, |bytes| bytes.is_empty()));
        let reasons = service.context.counters().reasons();
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        drop(busy);
    })
    .unwrap();
}

/// Serves one of the sockets on each of several threads, until `work` is done. Returns how many connections
/// each has accepted.
fn serve_on_threads(sockets: Vec<ListeningSocket>, work: impl FnOnce()) -> Vec<u64> {
    let shared = crate::ServerShared::new(sockets.len(), TempDir::new("/tmp".into(), 1 << 20));
    let done = Arc::new(AtomicBool::new(false));
    let shards = sockets.into_iter().map(|socket| {
        let (shared, done) = (shared.clone(), done.clone());
        std::thread::spawn(move || {
            run(async move {
                let service = Rc::new(Echo { context: context_of(&shared, limits()) });
                let listener = Arc::new(ListenerContext::plain(Role::Apps));
                let bound = BoundListener::start(&service, socket, listener).unwrap();
                while !done.load(Ordering::Relaxed) {
                    outboard_reactor::sleep(1).await;
                }
                bound.stop();
                bound.closed().await;
                service.context.counters().connections
            })
            .unwrap()
        })
    });
    let shards: Vec<_> = shards.collect();
    work();
    done.store(true, Ordering::Relaxed);
    shards.into_iter().map(|shard| shard.join().unwrap()).collect()
}

#[test]
fn shards_have_sockets_of_one_port_that_no_other_server_gets() {
    let sockets = ListeningSocket::for_shards(2, &[], &any_port(), 16).unwrap();
    let locals: Vec<SocketAddr> = sockets
        .iter()
        .map(|one| SocketAddr::try_from(net::getsockname(&one.socket).unwrap()).unwrap())
        .collect();
    let local = locals[0];
    assert!(local.port() != 0 && locals == [local, local]);
    assert!(sockets.iter().all(|socket| !socket.is_duplicate));
    // Another server of this user, with any number of shards.
    for shards in 1..3 {
        let address = ListenAddress::Tcp(local);
        let error = ListeningSocket::for_shards(shards, &[], &address, 16).unwrap_err();
        assert!(error.to_string().contains("another server listens there"), "{error}");
    }
    let accepted = serve_on_threads(sockets, || {
        for _ in 0..64 {
            assert!(get(TcpStream::connect(local).unwrap()).ends_with("/hello"));
        }
    });
    assert_eq!(accepted.iter().sum::<u64>(), 64);
    assert!(accepted.iter().all(|count| *count > 0), "{accepted:?}");
}

#[test]
fn shards_share_a_unix_socket_whose_file_goes_with_the_first() {
    let path = socket_path("shared-queue");
    let _ = std::fs::remove_file(&path);
    let sockets = ListeningSocket::for_shards(3, &[], &unix(&path), 16).unwrap();
    assert!(sockets.iter().all(|socket| socket.is_duplicate));
    assert_eq!(sockets.iter().filter(|socket| socket.unlink.is_some()).count(), 1);
    let accepted = serve_on_threads(sockets, || {
        for _ in 0..30 {
            assert!(get(UnixStream::connect(&path).unwrap()).ends_with("/hello"));
        }
    });
    assert_eq!(accepted.iter().sum::<u64>(), 30);
    assert!(!path.exists());
}

#[test]
fn inherited_sockets_are_for_one_shard_each_or_shared() {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ListenAddress::Tcp(probe.local_addr().unwrap());
    drop(probe);
    let early = bind_before(2, &address, 16).unwrap();
    let sockets: Vec<OwnedFd> = early.into_iter().map(|one| one.socket).collect();
    assert_eq!(sockets.len(), 2);
    let duplicates = |sockets: &[OwnedFd]| {
        let all = ListeningSocket::for_shards(2, sockets, &address, 16).unwrap();
        all.into_iter().map(|one| one.is_duplicate).collect::<Vec<_>>()
    };
    assert_eq!(duplicates(&sockets), [false, false]);
    assert_eq!(duplicates(&sockets[..1]), [true, true]);
}

#[test]
fn connections_in_the_backlog_of_a_listener_that_stops_are_served() {
    run(async {
        let service = service(limits());
        let bound = start(&service, &[], any_port());
        let local = bound.local.unwrap();
        // They are established before the loop has a chance to accept them.
        let clients = [(); 3].map(|()| {
            let mut stream = TcpStream::connect(local).unwrap();
            stream.write_all(REQUEST).unwrap();
            stream
        });
        bound.stop();
        bound.closed().await;
        service.context.drain();
        let responses = blocking(move || clients.map(rest)).await;
        assert!(responses.iter().all(|response| response.ends_with("/hello")), "{responses:?}");
    })
    .unwrap();
}
