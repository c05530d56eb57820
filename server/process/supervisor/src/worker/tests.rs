use super::*;
use crate::zygote::tests::{settings, wait_closed, with_host_end};
use outboard_ring::control::{Order, receive};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::write;
use std::path::Path;

fn order(number: u64) -> (Zygote, WorkerProcess) {
    let (zygote, _output) = Zygote::spawn(Path::new("/bin/cat"), settings()).unwrap();
    let worker = WorkerProcess::fork(&zygote, number, Capacities::default(), false, 7).unwrap();
    (zygote, worker)
}

#[test]
fn an_ordered_worker_is_forking_and_has_its_output_once() {
    let (_zygote, mut worker) = order((5 << 32) | 3);
    assert_eq!(worker.lifecycle.state(), lifecycle::State::Forking);
    assert_eq!(worker.epoch(), 3);
    assert!(worker.take_output().is_some());
    assert!(worker.take_output().is_none());
    worker.forked(1234);
    assert_eq!((worker.pid, worker.lifecycle.state()), (Some(1234), lifecycle::State::Booting));
}

#[test]
fn a_worker_that_is_ordered_to_stop_is_woken() {
    let (_zygote, mut worker) = order(1);
    worker.forked(1234);
    assert_eq!(worker.lifecycle.ready(8), lifecycle::Transition::Applied);
    assert_eq!(worker.drain(100).unwrap(), Stopping::Now);
    assert_eq!(worker.drain(100).unwrap(), Stopping::Already);
    assert_eq!(worker.lifecycle.state(), lifecycle::State::Draining);
}

#[test]
fn an_order_to_a_zygote_that_has_gone_fails() {
    let (mut zygote, _output) = Zygote::spawn(Path::new("/bin/cat"), settings()).unwrap();
    zygote.kill().unwrap();
    wait_closed(&zygote);
    let order = WorkerProcess::fork(&zygote, 1, Capacities::default(), false, 0);
    assert_eq!(order.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

/// Two ordered workers, and the descriptors that each of them gets.
fn two_workers() -> (Zygote, [(WorkerProcess, Vec<OwnedFd>); 2]) {
    let (zygote, host_end) = with_host_end();
    let workers = [1, 2].map(|number| {
        let worker = WorkerProcess::fork(&zygote, number, Capacities::default(), false, 7).unwrap();
        loop {
            match receive(&host_end).unwrap().unwrap() {
                (Order::Fork { worker: ordered }, descriptors) if ordered == number => {
                    return (worker, descriptors);
                }
                _ => {}
            }
        }
    });
    (zygote, workers)
}

fn is_readable(fd: impl AsFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() == 1
}

const FULL: [u8; 8] = (u64::MAX - 1).to_ne_bytes();

#[test]
fn no_worker_can_block_the_gateway_that_wakes_it() {
    let (_zygote, [(worker, descriptors), _]) = two_workers();
    let waits_on = &descriptors[1];
    assert!(write(waits_on, &FULL).is_err(), "it cannot fill the counter");
    // A full counter and these flags would block the gateway.
    fcntl_setfl(waits_on, OFlags::empty()).unwrap();
    worker.doorbell.ring();
    assert!(is_readable(waits_on));
}

#[test]
fn no_worker_can_use_the_doorbell_of_another() {
    let (_zygote, [(mut one, of_one), (mut other, of_other)]) = two_workers();
    let (one, other) = (one.take_worker_doorbell().unwrap(), other.take_worker_doorbell().unwrap());
    write(&of_one[2], &FULL).unwrap();
    assert!(is_readable(&one) && !is_readable(&other), "they are the same");
    fcntl_setfl(&of_one[2], OFlags::empty()).unwrap();
    write(&of_other[2], &1_u64.to_ne_bytes()).unwrap();
    assert!(is_readable(&other));
}
