//! The cores that a worker may run on. The tests take the cores of this process: a machine may have one.

mod driver;

use driver::{Host, Worker, finished, get};
use outboard_ring::control::{Event, Order};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};

fn cores_of(pid: i32) -> Vec<u16> {
    let set = sched_getaffinity(Pid::from_raw(pid)).unwrap();
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).map(|core| core as u16).collect()
}

/// Orders are carried out one after another.
fn place(host: &mut Host, worker: &Worker, cores: &[u16]) {
    host.order(&Order::Place { worker: worker.number, cores: cores.to_vec() });
    let next = host.fork();
    host.signal(next.number, 9);
    assert!(matches!(host.event(), Event::Exited { .. }));
}

#[test]
fn a_worker_is_moved_to_cores_and_back() {
    let mut first = Host::new();
    let (mut sibling, _output) = first.split(1);
    let all = cores_of(first.pid().cast_signed());
    for host in [&mut sibling, &mut first] {
        let mut worker = host.fork();
        assert_eq!(cores_of(worker.pid), all);
        let one = all[all.len() - 1];
        place(host, &worker, &[one, 1023, u16::MAX]);
        assert_eq!(cores_of(worker.pid), [one], "without cores that do not exist");
        assert_eq!(cores_of(host.fork().pid), all, "the next has those of its zygote");
        assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
        place(host, &worker, &[]);
        assert_eq!(cores_of(worker.pid), all);
    }
}

#[test]
fn an_impossible_placement_changes_nothing() {
    let mut host = Host::new();
    let worker = host.fork();
    let all = cores_of(worker.pid);
    place(&mut host, &worker, &[1023]);
    assert_eq!(cores_of(worker.pid), all);
    host.order(&Order::Place { worker: 1000, cores: vec![0] });
    assert_eq!(finished(&host.fork().request(&get("hello.php"))), "hello\n");
}
