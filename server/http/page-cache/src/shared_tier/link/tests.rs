use super::*;
use crate::test_support::until;
use outboard_reactor::{run, spawn, yield_now};
use outboard_upstream::{Client, Destination, Settings};
use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// A link over TCP, and the peer's end.
async fn connected() -> (Rc<Link>, Channel, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let to = Destination { host: "127.0.0.1".to_owned(), port, tls_verified: None };
    let client = Client::new(Settings::default());
    let channel = client.dial(&to, now_ms() + 20_000).await.unwrap();
    (Rc::default(), channel, listener.accept().unwrap().0)
}

/// Drives the link until an event that is not of idleness.
async fn next(link: &Link, channel: &mut Channel, input: &mut Input) -> LinkEvent {
    loop {
        match link.next_event(channel, input, 20_000).await {
            LinkEvent::Idle => {}
            event => return event,
        }
    }
}

fn why(event: LinkEvent) -> String {
    match event {
        LinkEvent::Ended(why) => why,
        LinkEvent::Pushed(_) | LinkEvent::Idle => panic!("it has not ended"),
    }
}

#[test]
fn replies_settle_in_order_and_pushes_are_apart() {
    run(async {
        let (link, mut channel, mut peer) = connected().await;
        let replies = [link.request(&[b"GET", b"a"]), link.request(&[b"GET", b"b"])];
        peer.write_all(b":1\r\n>2\r\n+x\r\n+y\r\n:2\r\n>1\r\n+z\r\n").unwrap();
        let mut input = Input::default();
        for expected in [&["x", "y"][..], &["z"]] {
            let event = next(&link, &mut channel, &mut input).await;
            let LinkEvent::Pushed(values) = event else { panic!("no push") };
            let words: Vec<&[u8]> = values.iter().filter_map(Value::as_bytes).collect();
            assert_eq!(words, expected.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        }
        for (reply, number) in replies.iter().zip(1..) {
            assert_eq!(reply.wait().await, Ok(Value::Integer(number)));
        }
    })
    .unwrap();
}

#[test]
fn a_reply_in_pieces_is_one_reply() {
    run(async {
        let (link, mut channel, mut peer) = connected().await;
        let reply = link.request(&[b"GET", b"a"]);
        let settled = Rc::new(RefCell::new(None));
        let (driven, result) = (link.clone(), settled.clone());
        spawn(async move {
            next(&driven, &mut channel, &mut Input::default()).await;
        });
        spawn(async move {
            let outcome = reply.wait().await;
            result.replace(Some(outcome));
        });
        for byte in b"$5\r\nhello\r\n" {
            assert_eq!(*settled.borrow(), None);
            peer.write_all(&[*byte]).unwrap();
            yield_now().await;
        }
        until(|| settled.borrow().is_some()).await;
        assert_eq!(settled.take(), Some(Ok(Value::Bytes(b"hello".to_vec()))));
        link.disconnect("the test is over");
    })
    .unwrap();
}

#[test]
fn an_end_fails_all_pending_and_later_requests() {
    run(async {
        let (link, mut channel, peer) = connected().await;
        let pending = [link.request(&[b"A"]), link.request(&[b"B"])];
        drop(peer);
        let why = why(next(&link, &mut channel, &mut Input::default()).await);
        link.disconnect(&why);
        for reply in pending {
            assert_eq!(reply.wait().await, Err(Disconnected));
        }
        assert_eq!(link.request(&[b"C"]).wait().await, Err(Disconnected));
    })
    .unwrap();
}

#[test]
fn a_late_reply_ends_the_connection() {
    run(async {
        let (link, mut channel, _peer) = connected().await;
        let _pending = link.request(&[b"A"]);
        let event = link.next_event(&mut channel, &mut Input::default(), 10).await;
        assert_eq!(why(event), "no reply in 10 ms");
    })
    .unwrap();
}

#[test]
fn a_reply_without_a_request_ends_the_connection() {
    run(async {
        let (link, mut channel, mut peer) = connected().await;
        peer.write_all(b":1\r\n").unwrap();
        let event = next(&link, &mut channel, &mut Input::default()).await;
        assert_eq!(why(event), Error::Malformed.to_string());
    })
    .unwrap();
}

#[test]
fn a_server_that_does_not_read_is_congested() {
    let link = Link::default();
    link.send(&[&[0; CONGESTED_BYTES / 2]]);
    assert!(!link.is_congested());
    link.send(&[&[0; CONGESTED_BYTES / 2]]);
    assert!(link.is_congested());
}
