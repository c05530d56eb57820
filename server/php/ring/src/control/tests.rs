//! Messages and descriptors over a real socket pair.

use super::*;

#[test]
fn an_order_arrives_with_its_descriptors() {
    let (ours, theirs) = pair().unwrap();
    let (read_end, write_end) = rustix::pipe::pipe().unwrap();
    send(&ours, &Order::Fork { worker: 5 }, &[write_end.as_fd()]).unwrap();
    drop(write_end);
    let (order, mut descriptors) = receive::<Order>(&theirs).unwrap().unwrap();
    assert_eq!(order, Order::Fork { worker: 5 });
    let received = descriptors.pop().unwrap();
    assert!(descriptors.is_empty());
    rustix::io::write(&received, b"!").unwrap();
    let mut byte = [0];
    assert_eq!(rustix::io::read(&read_end, &mut byte), Ok(1));
    assert_eq!(&byte, b"!");
}

#[test]
fn a_closed_peer_is_the_end_and_nonsense_is_an_error() {
    let (ours, theirs) = pair().unwrap();
    rustix::io::write(&ours, b"{\"order\":\"dance\"}").unwrap();
    let error = receive::<Order>(&theirs).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    drop(ours);
    assert!(receive::<Order>(&theirs).unwrap().is_none());
}

#[test]
fn orders_and_events_about_siblings_and_cores_arrive_as_sent() {
    let (ours, theirs) = pair().unwrap();
    for order in [
        Order::Split { sibling: 1 },
        Order::KillSibling { sibling: u64::MAX },
        Order::Place { worker: 2, cores: vec![0, u16::MAX] },
        Order::Place { worker: 2, cores: Vec::new() },
    ] {
        send(&ours, &order, &[]).unwrap();
        assert_eq!(receive::<Order>(&theirs).unwrap().unwrap().0, order);
    }
    for event in [
        Event::Split { sibling: 1, pid: 7 },
        Event::SplitFailed { sibling: 1, message: "no memory".into() },
        Event::SiblingExited { sibling: 1, code: None, signal: Some(9) },
    ] {
        send(&theirs, &event, &[]).unwrap();
        assert_eq!(receive::<Event>(&ours).unwrap().unwrap().0, event);
    }
}

#[test]
fn numbers_of_workers_and_of_siblings_are_not_confused() {
    let (ours, theirs) = pair().unwrap();
    let exited = r#"{"event":"exited","sibling":1,"code":0,"signal":null}"#;
    rustix::io::write(&ours, exited.as_bytes()).unwrap();
    assert_eq!(receive::<Event>(&theirs).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_message_that_is_too_long_is_rejected_with_a_reason() {
    let (ours, theirs) = pair().unwrap();
    let message = "x".repeat(MESSAGE_BYTES);
    let error = send(&ours, &Event::StartFailed { message }, &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert_eq!(
        error.to_string(),
        "the PHP settings are too long to be handed to the host (128 KiB)"
    );
    let many = [ours.as_fd(); 2 * DESCRIPTORS_MAX];
    let error = send(&ours, &Order::Fork { worker: 1 }, &many).unwrap_err();
    assert_eq!(error.to_string(), "too many descriptors");
    drop(ours);
    assert!(receive::<Event>(&theirs).unwrap().is_none(), "nothing of either was sent");
}

#[test]
fn a_packet_longer_than_a_message_is_an_error_and_the_next_is_read() {
    let (ours, theirs) = pair().unwrap();
    let long = Event::StartFailed { message: "x".repeat(MESSAGE_BYTES) };
    rustix::io::write(&ours, &serde_json::to_vec(&long).unwrap()).unwrap();
    send(&ours, &Order::Fork { worker: 2 }, &[]).unwrap();
    let error = receive::<Event>(&theirs).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "it was cut");
    assert_eq!(receive::<Order>(&theirs).unwrap().unwrap().0, Order::Fork { worker: 2 });
}

#[test]
fn a_socket_without_room_is_reported_and_does_not_block() {
    let (ours, theirs) = pair().unwrap();
    let event = Event::StartFailed { message: "x".repeat(10_000) };
    let mut sent = 0;
    let error = loop {
        match try_send(&ours, &event, &[]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    for _ in 0..sent {
        assert_eq!(receive::<Event>(&theirs).unwrap().unwrap().0, event);
    }
    try_send(&ours, &event, &[]).unwrap();
}

#[test]
fn a_peer_that_is_gone_is_an_error_and_no_signal() {
    let (ours, theirs) = pair().unwrap();
    drop(theirs);
    let error = send(&ours, &Order::Fork { worker: 1 }, &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn damaged_messages_are_errors_of_the_peer() {
    let (ours, theirs) = pair().unwrap();
    for text in [
        "null",
        "{}",
        "{\"order\":\"fork\"}",
        "{\"order\":\"fork\",\"worker\":-1}",
        "{\"order\":\"fork\",\"worker\":1}}",
        "{\"order\":\"place\",\"worker\":1,\"cores\":[65536]}",
        "\u{0}",
    ] {
        rustix::io::write(&ours, text.as_bytes()).unwrap();
        let error = receive::<Order>(&theirs).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
    }
}
