//! The generator as the lab uses it, against servers that misbehave in one known way each.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::*;
use crate::load::{Failure, Failures};

/// A server that answers each connection's k-th request (from 1) with `response(k)` and closes
/// where that is `None`. It serves until the test process ends.
fn server(response: fn(u64) -> Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream, response));
        }
    });
    address
}

fn serve(stream: TcpStream, response: fn(u64) -> Option<&'static str>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket clones")).lines();
    for count in 1.. {
        while !lines.next().is_none_or(|line| line.is_ok_and(|line| line.is_empty())) {}
        match response(count) {
            Some(text) if (&stream).write_all(text.as_bytes()).is_ok() => {}
            _ => return,
        }
    }
}

fn task(address: SocketAddr, connections: usize) -> Task {
    Task { is_numbered: true, ..Task::get(address, "/", connections) }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_count_is_exact_with_any_connections() {
    let address = server(|_| Some(OK));
    for connections in [1, 3, 16] {
        let account = run_count(&task(address, connections), 100).expect("the server answers");
        assert_eq!(account.statuses, BTreeMap::from([(200, 100)]));
        assert_eq!(account.load.failures, Failures::default());
    }
}

#[test]
fn a_closed_connection_costs_its_own_request_and_no_other() {
    let address = server(|count| (count % 5 != 0).then_some(OK));
    let account = run_count(&task(address, 1), 50).expect("the server answers");
    assert_eq!((account.statuses[&200], account.load.failures.count(Failure::Closed)), (40, 10));
}

#[test]
fn rejected_responses_carry_the_number_of_their_request() {
    let address = server(|count| {
        let bad = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
        Some(if count == 3 { bad } else { OK })
    });
    let account = run_count(&task(address, 1), 5).expect("the server answers");
    assert_eq!(account.rejected, [(2, 502)]);
    assert_eq!(account.load.failures.count(Failure::Status), 1);
}

#[test]
fn an_announced_close_is_not_a_failure() {
    let address = server(|count| {
        let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        (count == 1).then_some(close)
    });
    let account = run_count(&task(address, 2), 20).expect("the server answers");
    assert_eq!((account.statuses[&200], account.load.failures.total()), (20, 0));
}

#[test]
fn a_missing_listener_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let error = run_count(&task(address, 1), 3).expect_err("nobody is there");
    assert!(error.to_string().contains("is the server running?"), "{error}");
}

#[test]
fn every_number_is_sent_once_as_the_query() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    let seen = thread::spawn(move || {
        let lines = listener.incoming().flatten().flat_map(|stream| {
            let lines = BufReader::new(stream.try_clone().expect("a socket clones")).lines();
            lines.map_while(std::result::Result::ok).inspect(move |line| {
                if line.is_empty() {
                    let _ = (&stream).write_all(OK.as_bytes());
                }
            })
        });
        let requested = lines.filter(|line| line.starts_with("GET "));
        requested.take(3).collect::<Vec<String>>()
    });
    let task = Task { is_numbered: true, ..Task::get(address, "/{x}", 1) };
    // The listener ends with the third request, whose outcome is irrelevant.
    run_count(&task, 3).expect("the server is there");
    let path = |id| format!("GET /{{x}}?id={id} HTTP/1.1");
    assert_eq!(seen.join().expect("it does not panic"), [0, 1, 2].map(path));
}

#[test]
fn another_length_is_a_failure_of_its_own_class() {
    let address = server(|count| {
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok!";
        Some(if count == 2 { long } else { OK })
    });
    let requests = vec![RequestSpec::get("/").expecting(2)];
    let account = run_count(&Task { requests, ..task(address, 1) }, 5).expect("the server answers");
    assert_eq!(
        (account.load.failures.count(Failure::Length), account.load.failures.total()),
        (1, 1)
    );
}

#[test]
fn requests_on_reused_connections_are_counted() {
    let address = server(|_| Some(OK));
    let account = run_count(&task(address, 4), 100).expect("the server answers");
    assert_eq!(account.load.reused, Some(96));
}

#[test]
fn idle_connections_are_closed_for_waiting_ones() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    // One connection after the other, as in a server with a process per connection that has no
    // more.
    thread::spawn(move || listener.incoming().flatten().for_each(|one| serve(one, |_| Some(OK))));
    let account = run_count(&task(address, 3), 30).expect("the server answers");
    assert_eq!((account.statuses[&200], account.load.failures.total()), (30, 0));
}
