//! The generator, as the lab uses it, against servers that misbehave in one known way each.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use super::*;

/// A server that answers each connection's k-th request (from 1) with `answer(k)` and closes
/// where that is `None`. It serves until the test process ends.
fn server(answer: fn(u64) -> Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream, answer));
        }
    });
    address
}

fn serve(stream: TcpStream, answer: fn(u64) -> Option<&'static str>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket clones")).lines();
    for count in 1.. {
        while !lines.next().is_none_or(|line| line.is_ok_and(|line| line.is_empty())) {}
        match answer(count) {
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
fn a_count_is_kept_exactly_whatever_the_connections() {
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
    assert_eq!((account.statuses[&200], account.load.failures.broken), (40, 10));
}

#[test]
fn rejected_answers_carry_the_number_of_their_request() {
    let address = server(|count| {
        let bad = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n";
        Some(if count == 3 { bad } else { OK })
    });
    let account = run_count(&task(address, 1), 5).expect("the server answers");
    assert_eq!(account.rejected, [(2, 502)]);
    assert_eq!(account.load.failures.status, 1);
}

#[test]
fn an_announced_close_is_no_failure() {
    let address = server(|count| {
        let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        (count == 1).then_some(close)
    });
    let account = run_count(&task(address, 2), 20).expect("the server answers");
    assert_eq!((account.statuses[&200], account.load.failures.total()), (20, 0));
}

#[test]
fn nobody_listening_is_an_error() {
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
        let asked = lines.filter(|line| line.starts_with("GET "));
        asked.take(3).collect::<Vec<String>>()
    });
    let task = Task { is_numbered: true, ..Task::get(address, "/{x}", 1) };
    // Whoever listens goes away with the third request; what that one comes to is of no interest.
    run_count(&task, 3).expect("the server is there");
    let path = |id| format!("GET /{{x}}?id={id} HTTP/1.1");
    assert_eq!(seen.join().expect("it does not panic"), [0, 1, 2].map(path));
}

#[test]
fn an_answer_of_another_length_is_a_failure_of_its_own_class() {
    let address = server(|count| {
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok!";
        Some(if count == 2 { long } else { OK })
    });
    let asks = vec![Ask::get("/").expecting(2)];
    let account = run_count(&Task { asks, ..task(address, 1) }, 5).expect("the server answers");
    assert_eq!((account.load.failures.length, account.load.failures.total()), (1, 1));
}

#[test]
fn requests_on_a_used_connection_are_told_apart() {
    let address = server(|_| Some(OK));
    let account = run_count(&task(address, 4), 100).expect("the server answers");
    assert_eq!(account.load.reused, Some(96));
}

#[test]
fn a_connection_with_nothing_left_to_send_makes_room_for_one_that_waits() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    // One connection after the other, as a process for each does that has no more of them.
    thread::spawn(move || listener.incoming().flatten().for_each(|one| serve(one, |_| Some(OK))));
    let account = run_count(&task(address, 3), 30).expect("the server answers");
    assert_eq!((account.statuses[&200], account.load.failures.total()), (30, 0));
}
