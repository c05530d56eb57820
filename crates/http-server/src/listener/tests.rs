//! Listeners on real sockets, with a service that echoes.

use super::*;
use crate::testing::{Echo, context, limits};
use outboard_config::Limits;
use outboard_reactor::{blocking, run, yield_now};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

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
    let context = Rc::new(ListenerContext::plain(Role::Apps));
    BoundListener::start(service, inherited, address, context, 16).unwrap()
}

fn service(limits: Limits) -> Rc<Echo> {
    Rc::new(Echo { context: context(limits) })
}

fn get(mut stream: impl Read + Write) -> String {
    stream.write_all(b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
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
        let context = Rc::new(ListenerContext::plain(Role::Apps));
        let error = BoundListener::start(&service, &[], unix(&path), context, 16).unwrap_err();
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
        let inherited = bind_before(&address, 16).unwrap().unwrap();
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
    assert!(bind_before(&any_port(), 16).unwrap().is_none());
}

#[test]
fn an_address_in_use_is_reported_with_a_hint() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = ListenAddress::Tcp(other.local_addr().unwrap());
    let error = bind_before(&address, 16).err().unwrap();
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
                .write_all(b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
                .unwrap();
            stream
        })
        .await;
        while service.context.open_connections() == 0 {
            outboard_reactor::sleep(1).await;
        }
        // Its body is read only once its head was parsed.
        outboard_reactor::sleep(50).await;
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
