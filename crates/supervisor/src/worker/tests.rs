use super::*;
use crate::zygote::tests::{settings, wait_closed};
use std::path::Path;

fn order(number: u64) -> (Zygote, WorkerProcess) {
    let (zygote, _output) = Zygote::spawn(Path::new("/bin/cat"), settings()).unwrap();
    let worker = WorkerProcess::fork(&zygote, number, Capacities::default(), 7).unwrap();
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
    let order = WorkerProcess::fork(&zygote, 1, Capacities::default(), 0);
    assert_eq!(order.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
