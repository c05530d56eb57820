use super::*;
use outboard_ring::control::{self, HostSettings, Order};
use std::collections::BTreeMap;
use std::path::Path;

fn settings() -> HostSettings {
    HostSettings {
        app: "test".into(),
        document_root: "/srv".into(),
        sapi_name: "fpm-fcgi".into(),
        ini_file: None,
        ini_scan_dir: None,
        ini: BTreeMap::new(),
        fixed_ini: BTreeMap::new(),
        env: BTreeMap::new(),
        run_as: None,
    }
}

fn order(number: u64) -> (Zygote, WorkerProcess) {
    let (zygote, _output) = Zygote::spawn(Path::new("/bin/cat"), settings()).unwrap();
    let doorbell = Doorbell::nonblocking().unwrap();
    let worker =
        WorkerProcess::order(&zygote, number, Capacities::default(), &doorbell, 7).unwrap();
    (zygote, worker)
}

#[test]
fn an_ordered_worker_is_forking_and_has_its_output_once() {
    let (_zygote, mut worker) = order((5 << 32) | 3);
    assert_eq!(worker.life.state(), life::State::Forking);
    assert_eq!(worker.epoch(), 3);
    assert!(worker.take_output().is_some());
    assert!(worker.take_output().is_none());
    worker.forked(1234);
    assert_eq!((worker.pid, worker.life.state()), (Some(1234), life::State::Booting));
}

#[test]
fn a_worker_that_is_told_to_stop_is_woken() {
    let (_zygote, mut worker) = order(1);
    worker.forked(1234);
    assert_eq!(worker.life.ready(8), life::Moved::Yes);
    assert_eq!(worker.drain(100).unwrap(), Stopping::Now);
    assert_eq!(worker.drain(100).unwrap(), Stopping::Already);
    assert_eq!(worker.life.state(), life::State::Draining);
}

#[test]
fn an_order_to_a_zygote_that_has_gone_fails() {
    let (ours, theirs) = control::pair().unwrap();
    drop(theirs);
    let error = control::send(&ours, &Order::Fork { worker: 1 }, &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
