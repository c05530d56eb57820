//! Tests of a client whose spawner is the other end of a socket in the test.

use super::*;
use std::process::Command;
use std::thread;

const SOON: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

fn client() -> (Client, OwnedFd) {
    let (control, spawner) = control::pair().unwrap();
    (Client::new(control, Command::new("/bin/true").spawn().unwrap()), spawner)
}

fn read() -> Request {
    Request::Read("/tmp/a".into())
}

/// What a client gets that is sent this response to a request.
fn call(response: Response) -> io::Result<Response> {
    let (client, spawner) = client();
    thread::scope(|scope| {
        scope.spawn(move || {
            let (request, _) = control::receive::<Request>(&spawner).unwrap().unwrap();
            assert!(matches!(request, Request::Read(path) if path.ends_with("a")));
            control::send(&spawner, &response, &[]).unwrap();
        });
        client.call(&read(), &[]).map(|(response, _)| response)
    })
}

#[test]
fn requests_without_a_response_do_not_wait_for_a_stopped_spawner() {
    const COUNT: u64 = 5_000;
    let (client, spawner) = client();
    (0..COUNT).for_each(|number| client.notify(Request::Forget(number)));
    assert!(!lock(&client.pending).is_empty(), "the socket is full");
    for expected in 0..COUNT {
        let (request, _) = control::receive(&spawner).unwrap().unwrap();
        assert!(matches!(request, Request::Forget(number) if number == expected));
        client.send_pending();
    }
}

#[test]
fn the_last_call_does_not_wait_for_those_of_others() {
    let (client, _spawner) = client();
    let _turn = lock(&client.turn);
    let error = client.last_call(&Request::Remove("/tmp/a".into())).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_failure_has_the_error_number_or_a_reason() {
    let failed = |errno| Response::Failed { why: "because".to_owned(), errno };
    let error = call(failed(Some(13))).unwrap_err();
    assert_eq!((error.kind(), error.raw_os_error()), (io::ErrorKind::PermissionDenied, Some(13)));
    let error = call(failed(None)).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (io::ErrorKind::Unsupported, "because".to_owned())
    );
    assert!(matches!(call(Response::Exited(Some(256))), Ok(Response::Exited(Some(256)))));
}

#[test]
fn a_late_response_is_not_taken_for_that_of_the_next_request() {
    let (client, spawner) = client();
    let error = client.exchange(SOON, &read(), &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "the spawner does not respond");
    assert!(control::send(&spawner, &Response::Opened, &[]).is_err(), "nothing receives it");
    assert!(client.call(&read(), &[]).is_err());
    assert!(client.last_call(&read()).is_err());
}

#[test]
fn a_spawner_that_receives_nothing_counts_as_exited() {
    let (client, _spawner) = client();
    while lock(&client.pending).is_empty() {
        client.notify(Request::Kill(1));
    }
    let error = client.exchange(SOON, &read(), &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    client.send_pending();
    assert!(lock(&client.pending).is_empty(), "no memory is held for it");
}

#[test]
fn the_exit_of_the_spawner_hangs_up_and_is_an_error() {
    let (client, spawner) = client();
    let watch = client.watch().unwrap();
    let mut watched = [PollFd::new(&watch, PollFlags::IN)];
    assert_eq!(poll(&mut watched, Some(&SOON)), Ok(0));
    drop(spawner);
    // A child of another test may hold its end until it runs its program.
    assert_eq!(poll(&mut watched, Some(&TIMEOUT)), Ok(1));
    let error = client.call(&read(), &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{error}");
    client.notify(Request::Kill(1));
    assert!(lock(&client.pending).is_empty());
}

#[test]
fn a_spawner_that_exits_before_its_response_is_reported() {
    let (client, spawner) = client();
    thread::scope(|scope| {
        scope.spawn(move || control::receive::<Request>(&spawner).unwrap().unwrap());
        let error = client.call(&read(), &[]).unwrap_err();
        assert_eq!(error.to_string(), "the spawner has exited");
    });
}
