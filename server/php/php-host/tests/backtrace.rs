//! A worker reports where its script is, in every state.

mod driver;

use driver::{Host, TempDir, Worker, finished, get, settings_as_nobody};
use outboard_ring::control::{BACKTRACE_SIGNAL, Event};
use outboard_ring::frame::{FrameKind, Tag};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

/// Starts a script that flushes before it gets stuck.
fn stick(worker: &mut Worker, folder: &TempDir, code: &str) -> Tag {
    let text = format!(
        "<?php\nclass Pump {{\n    static function run() {{\n        echo 1; flush(); {code}\n    }}\n}}\n\
         function work() {{\n    Pump::run();\n}}\nwork();\n"
    );
    folder.write("stuck.php", &text);
    let tag = worker.begin(&get("stuck.php").root(&folder.0));
    while worker.frame().0.kind != FrameKind::Flush {}
    tag
}

/// Signals until a backtrace comes: the first signal may find the worker in a system call.
fn backtrace(host: &Host, worker: &Worker, tag: Tag) -> Vec<String> {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        host.signal(worker.number, BACKTRACE_SIGNAL);
        if let Some(text) = worker.channel.backtrace(tag) {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(std::time::Instant::now() < deadline, "no backtrace came");
        std::thread::yield_now();
    }
}

/// User time, in ticks (field 14 of proc_pid_stat(5)).
fn busy_ticks(worker: &Worker) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", worker.pid)).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(11).unwrap().parse().unwrap()
}

/// Waits until the script has used two ticks, so that it is in its loop.
fn wait_until_busy(worker: &Worker) {
    let begin = busy_ticks(worker);
    while busy_ticks(worker) < begin + 2 {
        std::thread::yield_now();
    }
}

#[track_caller]
fn assert_frames(found: &[String], folder: &TempDir, innermost: Option<&str>) {
    let file = folder.0.join("stuck.php");
    let file = file.display();
    let mut expected: Vec<String> =
        innermost.into_iter().map(|f| format!("{f}() {file}:4")).collect();
    expected.push(format!("Pump::run() {file}:4"));
    expected.push(format!("work() {file}:8"));
    expected.push(format!("{{main}} {file}:10"));
    let expected: Vec<String> =
        expected.iter().enumerate().map(|(i, line)| format!("#{i} {line}")).collect();
    assert_eq!(found, expected);
}

fn kill(host: &Host, worker: &Worker) {
    host.signal(worker.number, 9);
    assert_eq!(host.event(), Event::Exited { worker: worker.number, code: None, signal: Some(9) });
}

#[test]
fn a_busy_loop_is_found_at_its_line() {
    let (mut host, folder) = (Host::new(), TempDir::new());
    let mut worker = host.fork();
    let tag = stick(&mut worker, &folder, "while (true);");
    wait_until_busy(&worker);
    host.signal(worker.number, BACKTRACE_SIGNAL);
    let text = worker.backtrace(tag);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    assert_frames(&lines, &folder, None);
    kill(&host, &worker);
}

/// It is read from outside, as one that does not get the processor for long.
#[test]
fn a_stopped_function_without_calls_is_found_at_its_beginning() {
    let (mut host, folder) = (Host::new(), TempDir::new());
    let mut worker = host.fork();
    // What it has called leaves its own position where that of the function would be.
    let text = "<?php\nfunction calls() {\n    return strlen(str_repeat('x', rand(1, 9)));\n}\n\
                function loops() {\n    while (true);\n}\ncalls();\necho 1; flush();\nloops();\n";
    folder.write("stuck.php", text);
    let tag = worker.begin(&get("stuck.php").root(&folder.0));
    while worker.frame().0.kind != FrameKind::Flush {}
    wait_until_busy(&worker);
    kill_process(Pid::from_raw(worker.pid).unwrap(), Signal::STOP).unwrap();
    let lines = backtrace(&host, &worker, tag);
    let file = folder.0.join("stuck.php");
    let file = file.display();
    assert_eq!(lines, [format!("#0 loops() {file}:6"), format!("#1 {{main}} {file}:10")]);
    kill(&host, &worker);
}

#[test]
fn a_sleeping_script_is_found_and_sleeps_on() {
    let (mut host, folder) = (Host::new(), TempDir::new());
    let mut worker = host.fork();
    let tag = stick(&mut worker, &folder, "sleep(1000);");
    let mut lines = Vec::new();
    // The first signal may come before the call of sleep().
    while lines.first().is_none_or(|line: &String| !line.contains("sleep()")) {
        lines = backtrace(&host, &worker, tag);
    }
    assert_frames(&lines, &folder, Some("sleep"));
    for _ in 0..10 {
        backtrace(&host, &worker, tag);
    }
    assert!(worker.try_frame().is_none(), "the request is still running");
    kill(&host, &worker);
}

#[test]
fn a_sleeping_script_is_found_under_another_user_too() {
    let (mut host, folder) = (Host::with(settings_as_nobody()), TempDir::new());
    let mut worker = host.fork();
    let tag = stick(&mut worker, &folder, "sleep(1000);");
    let mut lines = Vec::new();
    while lines.first().is_none_or(|line: &String| !line.contains("sleep()")) {
        lines = backtrace(&host, &worker, tag);
    }
    assert!(worker.try_frame().is_none(), "the request is still running");
    kill(&host, &worker);
}

#[test]
fn a_blocked_flock_is_found_and_released_by_the_kill() {
    let (mut host, folder) = (Host::new(), TempDir::new());
    let mut worker = host.fork();
    let lock = std::fs::File::create(folder.0.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let tag = stick(&mut worker, &folder, "flock(fopen('lock', 'r'), LOCK_EX);");
    let mut lines = Vec::new();
    while lines.first().is_none_or(|line: &String| !line.contains("flock()")) {
        lines = backtrace(&host, &worker, tag);
    }
    assert_frames(&lines, &folder, Some("flock"));
    kill(&host, &worker);
}

#[test]
fn an_idle_worker_survives_the_signal() {
    let mut host = Host::new();
    let mut worker = host.fork();
    assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
    for _ in 0..5 {
        host.signal(worker.number, BACKTRACE_SIGNAL);
    }
    for _ in 0..100 {
        host.signal(worker.number, BACKTRACE_SIGNAL);
        assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
    }
}

#[test]
fn signals_at_any_time_keep_requests_intact() {
    let (mut host, folder) = (Host::new(), TempDir::new());
    let mut worker = host.fork();
    folder.write(
        "deep.php",
        "<?php function f($n) { return $n ? f($n - 1) + strlen(implode(',', range(1, 5))) : 0; }
         for ($i = 0; $i < 200; $i++) { f(100); } echo 'done';",
    );
    for _ in 0..50 {
        let tag = worker.begin(&get("deep.php").root(&folder.0));
        for _ in 0..20 {
            host.signal(worker.number, BACKTRACE_SIGNAL);
        }
        assert_eq!(finished(&worker.finish(tag, b"")), "done");
    }
}
