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
