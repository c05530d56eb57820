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
