//! The test has the places of the first zygote and of the sibling.

use super::super::tests::{wait_closed, with_host_end};
use super::super::{Received, Zygote};
use super::SiblingEnds;
use outboard_ring::control::{self, Event, Order};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A sibling whose kills are counted.
fn sibling() -> (Zygote, OwnedFd, SiblingEnds, Arc<AtomicU32>) {
    let kills = Arc::new(AtomicU32::new(0));
    let counted = kills.clone();
    let request_kill = Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let (zygote, output, ends) = Zygote::sibling(request_kill).unwrap();
    (zygote, output, ends, kills)
}

fn started(pid: i32) -> Event {
    Event::Started {
        pid,
        php_version: "8.2".into(),
        opcache: true,
        ini_file: None,
        post_max_bytes: 0,
        rewind: None,
        request_reads: Vec::new(),
        rewind_refused: None,
    }
}

fn order_of(host_end: &OwnedFd) -> (Order, Vec<OwnedFd>) {
    control::receive(host_end).unwrap().unwrap()
}

#[test]
fn the_first_zygote_gets_the_ends_of_a_sibling_from_another_thread() {
    let (mut sibling, output, ends, _kills) = sibling();
    assert!(!sibling.has_exited());
    let (first, first_end) = with_host_end();
    assert!(matches!(order_of(&first_end), (Order::Start { .. }, _)));
    std::thread::spawn(move || first.split(3, ends).unwrap()).join().unwrap();
    let (order, descriptors) = order_of(&first_end);
    assert_eq!(order, Order::Split { sibling: 3 });
    let [control, output_end] = <[OwnedFd; 2]>::try_from(descriptors).unwrap();

    assert_eq!((sibling.pid(), sibling.receive().unwrap()), (None, Received::Nothing));
    control::send(&control, &started(77), &[]).unwrap();
    assert_eq!(sibling.receive().unwrap(), Received::Event(started(77)));
    assert_eq!(sibling.pid(), Some(77));
    sibling.signal(1, 9).unwrap();
    assert_eq!(order_of(&control).0, Order::Signal { worker: 1, signal: 9 });
    rustix::io::write(&output_end, b"printed").unwrap();
    let mut text = [0; 16];
    assert_eq!(rustix::io::read(&output, &mut text), Ok(7));
}

#[test]
fn a_closed_socket_is_the_exit_of_a_sibling_before_its_events() {
    let (mut sibling, _output, ends, _kills) = sibling();
    control::send(&ends.control, &started(-1), &[]).unwrap();
    drop(ends);
    assert!(sibling.has_exited());
    assert_eq!(sibling.receive().unwrap(), Received::Event(started(-1)));
    assert_eq!(sibling.pid(), None, "no process has this id");
    wait_closed(&sibling);
}

#[test]
fn the_kill_of_a_sibling_is_requested() {
    let (mut sibling, _output, ends, kills) = sibling();
    sibling.kill().unwrap();
    assert_eq!(kills.load(Ordering::Relaxed), 1);
    assert!(!sibling.has_exited(), "it has only been requested");
    drop(sibling);
    assert_eq!(kills.load(Ordering::Relaxed), 2);
    let error = control::send(&ends.control, &started(1), &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "the end of its orders");
}

#[test]
fn no_kill_is_requested_for_a_sibling_that_has_exited() {
    let (sibling, _output, ends, kills) = sibling();
    drop(ends);
    drop(sibling);
    assert_eq!(kills.load(Ordering::Relaxed), 0);
}

#[test]
fn a_kill_and_a_placement_are_orders_of_a_zygote() {
    let (first, first_end) = with_host_end();
    assert!(matches!(order_of(&first_end), (Order::Start { .. }, _)));
    first.kill_sibling(3).unwrap();
    assert_eq!(order_of(&first_end).0, Order::KillSibling { sibling: 3 });
    first.place(5, &[0, 7]).unwrap();
    assert_eq!(order_of(&first_end).0, Order::Place { worker: 5, cores: vec![0, 7] });
}
