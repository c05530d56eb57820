//! What is flushed arrives while the script still runs, and `fastcgi_finish_request` lets go of
//! the client. A script waits at a gate (a named pipe) that the test opens once it has read.

use crate::{fifo, pair};
use outboard_e2e::{Client, Connection, Request};

#[test]
fn flushed_pieces_arrive_one_by_one() {
    for site in [&pair().reference, &pair().subject] {
        let mut gate = fifo();
        let mut connection = Connection::open(site.address());
        let target = format!("/stream.php?gate={}", gate.path().display());
        connection.send(&Request::get(&target).to_bytes("a")).unwrap();
        let head = connection.head().unwrap().expect(200);
        assert_eq!(head.header("transfer-encoding"), Some("chunked"), "{}", site.name());
        assert_eq!(head.header("x-accel-buffering"), None, "{}", site.name());
        let mut seen = String::new();
        for piece in 1..=3 {
            while !seen.ends_with(&format!("piece {piece}\n")) {
                let chunk = connection.chunk().unwrap().expect("the stream has not ended");
                seen.push_str(&String::from_utf8_lossy(&chunk));
            }
            gate.open();
        }
        while let Some(chunk) = connection.chunk().unwrap() {
            seen.push_str(&String::from_utf8_lossy(&chunk));
        }
        assert_eq!(seen, "piece 1\npiece 2\npiece 3\nend\n", "{}", site.name());
    }
}

#[test]
fn fastcgi_finish_request_answers_while_the_script_goes_on() {
    let reports: Vec<String> = [&pair().reference, &pair().subject]
        .into_iter()
        .map(|site| {
            let (mut gate, mut done) = (fifo(), fifo());
            let (gate_path, done_path) = (gate.path().display(), done.path().display());
            let target = format!("/finish_request.php?gate={gate_path}&done={done_path}");
            let mut client = Client::new(site.address());
            let response = client.send(&Request::get(&target)).expect(200).saying("answered\n");
            assert_eq!(response.header("x-before"), Some("yes"), "{}", site.name());
            // The answer is complete, and the script has not even been let through its gate.
            gate.say("late");
            done.hear()
        })
        .collect();
    assert!(reports[0].contains("\"finished\":true") && reports[0].contains("late"));
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn a_connection_serves_again_after_a_stream() {
    for site in [&pair().reference, &pair().subject] {
        let mut connection = Connection::open(site.address());
        for _ in 0..3 {
            connection.send(&Request::get("/implicit_flush.php").to_bytes("a")).unwrap();
            connection.response().unwrap().expect(200).holding("piece 4");
            connection.send(&Request::get("/hello.php").to_bytes("a")).unwrap();
            connection.response().unwrap().expect(200).saying("Hello, world\n");
        }
    }
}
