//! The end of siblings: each zygote ends with its workers and without those of the others, and the
//! first one with all.

mod driver;

use driver::{
    Host, Mode, TempDir, Worker, children, eventually, finished, get, is_running, kill, settings_in,
};
use outboard_ring::control::{Event, Order};

#[test]
fn a_closed_control_socket_ends_a_sibling_and_nothing_else() {
    let mut first = Host::new();
    let mut worker = first.fork();
    let (mut sibling, _output) = first.split(1);
    let (mut other, _output) = first.split(2);
    let of_sibling = sibling.fork();
    let mut of_other = other.fork();
    sibling.close();
    assert_eq!(first.event(), Event::SiblingExited { sibling: 1, code: Some(0), signal: None });
    eventually(|| !is_running(of_sibling.pid));
    for worker in [&mut worker, &mut of_other] {
        assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
    }
    assert_eq!(children(first.pid()), [worker.pid, other.raw_pid()].into());
}

/// In a worker: a child that waits in its group, and one that has left it. Their ids are in `notes`.
const CHILDREN: &str = "exec('sleep 300 > /dev/null 2>&1 & echo $! >> ' . __DIR__ . '/notes');
    exec('setsid sh -c \"echo \\$\\$ >> ' . __DIR__ . '/notes; exec sleep 300\" > /dev/null 2>&1 &');
    sleep(300);";

/// Begins a request that never ends, and returns the ids of the children in and out of the group.
#[track_caller]
fn begin_children(host: &mut Host, folder: &TempDir) -> (Worker, Vec<i32>) {
    let mut worker = host.fork();
    worker.begin(&get("worker.php").root(&folder.0));
    let noted = || -> Vec<i32> {
        let text = std::fs::read_to_string(folder.0.join("notes")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    eventually(|| noted().len() == 2);
    let (pids, is_in_session) = (noted(), |pid: i32| {
        let session = rustix::process::getsid(rustix::process::Pid::from_raw(pid)).unwrap();
        session.as_raw_pid() == host.raw_pid()
    });
    let (inside, outside) = pids.into_iter().partition::<Vec<i32>, _>(|pid| is_in_session(*pid));
    (worker, [inside, outside].concat())
}

#[test]
fn a_killed_sibling_is_reported_and_its_workers_end() {
    for mode in [Mode::Classic, Mode::Fork] {
        let folder = TempDir::new();
        let mut first = Host::with(settings_in(&folder, mode, "", CHILDREN));
        let idle = first.fork();
        let (mut sibling, _output) = first.split(1);
        let (busy, started) = begin_children(&mut sibling, &folder);
        kill(sibling.raw_pid());
        assert_eq!(
            first.event(),
            Event::SiblingExited { sibling: 1, code: None, signal: Some(9) },
            "{mode:?}"
        );
        eventually(|| !is_running(busy.pid) && !is_running(started[0]));
        assert!(is_running(idle.pid));
        if let Mode::Classic = mode {
            // What left the session lives as long as the app, and is a child of the first.
            assert!(is_running(started[1]));
            eventually(|| children(first.pid()) == [idle.pid, started[1]].into());
        } else {
            eventually(|| children(first.pid()) == [idle.pid].into());
        }
        first.close();
        eventually(|| !is_running(started[1]));
    }
}

#[test]
fn a_sibling_is_killed_by_its_number_even_if_it_is_stopped() {
    let mut first = Host::new();
    let (mut sibling, _output) = first.split(5);
    let worker = sibling.fork();
    let pid = rustix::process::Pid::from_raw(sibling.raw_pid()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    first.signal(5, 9);
    first.order(&Order::KillSibling { sibling: 4 });
    // A fork after these orders: they have been carried out.
    first.fork();
    assert!(is_running(sibling.raw_pid()), "these numbers are of others");
    first.order(&Order::KillSibling { sibling: 5 });
    assert_eq!(first.event(), Event::SiblingExited { sibling: 5, code: None, signal: Some(9) });
    eventually(|| !is_running(worker.pid));
}

#[test]
fn a_killed_first_zygote_ends_all_siblings_and_their_workers() {
    for mode in [Mode::Classic, Mode::Fork] {
        let folder = TempDir::new();
        let mut first = Host::with(settings_in(&folder, mode, "", "echo 'up';"));
        let (mut sibling, _output) = first.split(1);
        let (mut other, _output) = first.split(2);
        let mut all = vec![sibling.raw_pid(), other.raw_pid()];
        for host in [&mut first, &mut sibling, &mut other] {
            all.push(host.fork().pid);
        }
        kill(first.raw_pid());
        eventually(|| !all.iter().any(|pid| is_running(*pid)));
    }
}

#[test]
fn the_end_of_the_first_zygote_ends_everything_below_it() {
    let folder = TempDir::new();
    let mut first = Host::with(settings_in(&folder, Mode::Classic, "", CHILDREN));
    let (mut sibling, _output) = first.split(1);
    let (worker, started) = begin_children(&mut sibling, &folder);
    first.close();
    let all = [started, vec![worker.pid, sibling.raw_pid()]].concat();
    eventually(|| !all.iter().any(|pid| is_running(*pid)));
}

#[test]
fn the_end_of_a_sibling_ends_everything_below_it() {
    let folder = TempDir::new();
    let first = Host::with(settings_in(&folder, Mode::Classic, "", CHILDREN));
    let (mut sibling, _output) = first.split(1);
    let (worker, started) = begin_children(&mut sibling, &folder);
    sibling.close();
    assert_eq!(first.event(), Event::SiblingExited { sibling: 1, code: Some(0), signal: None });
    eventually(|| !started.iter().chain([&worker.pid]).any(|pid| is_running(*pid)));
    eventually(|| children(first.pid()).is_empty());
}
