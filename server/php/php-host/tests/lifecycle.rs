//! Processes: start, fork, exit, and the zygote's reports of them.

mod driver;

use driver::{
    Host, TempDir, eventually, finished, get, ini, is_running, kill, post, settings, start,
    start_printing,
};
use outboard_ring::control::Event;
use outboard_ring::frame::{FrameKind, Tag};
use std::collections::BTreeMap;

#[test]
fn a_worker_killed_by_a_signal_is_reported_with_it() {
    let mut host = Host::new();
    for signal in [9, 11] {
        let worker = host.fork();
        host.signal(worker.number, signal);
        let expected = Event::Exited { worker: worker.number, code: None, signal: Some(signal) };
        assert_eq!(host.event(), expected);
    }
    assert_eq!(finished(&host.fork().request(&get("hello.php"))), "hello\n");
}

#[test]
fn a_stopped_worker_finishes_its_request_and_exits() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = TempDir::new();
    folder.write("run.php", "<?php flush(); usleep(20000); echo 'whole';");
    let tag = worker.begin(&get("run.php").root(&folder.0));
    worker.stop();
    assert_eq!(finished(&worker.finish(tag, b"")), "whole");
    assert_eq!(host.event(), Event::Exited { worker: worker.number, code: Some(0), signal: None });
}

#[test]
fn termination_signals_are_left_to_the_gateway() {
    let mut host = Host::new();
    let mut worker = host.fork();
    for signal in [15, 2, 1, 3] {
        host.signal(worker.number, signal);
        // That of the shell: a small Debian has no /bin/kill.
        let status = std::process::Command::new("sh")
            .args(["-c", &format!("kill -{signal} {}", host.pid())])
            .status();
        assert!(status.unwrap().success());
    }
    assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n");
}

#[test]
fn a_worker_inherits_no_descriptors_of_others() {
    let mut host = Host::new();
    let first = host.fork();
    let second = host.fork();
    let targets = |pid: i32| -> Vec<String> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        entries
            .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
            .map(|target| target.to_string_lossy().into_owned())
            .collect()
    };
    let (first, second) = (targets(first.pid), targets(second.pid));
    assert_eq!(first.len(), second.len());
    for target in second {
        let shared = target == "/dev/null"
            || target.contains("ZendSem")
            || target.contains("opcache_lock")
            || target.contains("memfd:opcache users")
            || target.contains("eventfd")
            || target.contains("eventpoll");
        assert!(shared || !first.contains(&target), "{target} is shared");
        assert!(!target.starts_with("socket:"), "the control socket");
    }
}

#[test]
fn the_title_of_a_worker_names_its_app() {
    let mut host = Host::new();
    let worker = host.fork();
    let title = std::fs::read_to_string(format!("/proc/{}/cmdline", worker.pid)).unwrap();
    assert_eq!(title.trim_end_matches('\0'), format!("outboard: test worker {}", worker.number));
}

#[test]
fn workers_end_with_their_zygote_even_when_it_is_killed() {
    let mut host = Host::new();
    let worker = host.fork();
    kill(host.pid().cast_signed());
    eventually(|| !is_running(worker.pid));
}

#[test]
fn a_closed_control_socket_ends_zygote_and_workers() {
    let mut host = Host::new();
    let worker = host.fork();
    host.close();
    eventually(|| !is_running(worker.pid));
}

#[test]
fn a_failed_start_says_why() {
    let folder = TempDir::new();
    let preload = folder.write("preload.php", "<?php not_a_function();");
    let mut broken = settings();
    broken.ini.extend(ini(&[("opcache.preload", preload.to_str().unwrap())]));
    if rustix::process::geteuid().is_root() {
        broken.ini.extend(ini(&[("opcache.preload_user", "nobody")]));
    }
    let (_host, printed) = start_printing(broken);
    assert!(printed.contains("not_a_function"), "{printed}");

    let mut missing = settings();
    missing.ini_file = Some("/nowhere/php.ini".into());
    let Event::StartFailed { message } = &start(missing).started else { panic!() };
    assert!(message.contains("/nowhere/php.ini"), "{message}");

    let mut smuggled = settings();
    smuggled.ini.extend(ini(&[("memory_limit", "1M\nextension=evil.so")]));
    let Event::StartFailed { message } = &start(smuggled).started else { panic!() };
    assert!(message.contains("memory_limit"), "{message}");
}

#[test]
fn warnings_of_the_start_are_printed() {
    let mut odd = settings();
    odd.ini.extend(ini(&[("extension", "not-there.so")]));
    let (_host, printed) = start_printing(odd);
    assert!(printed.contains("not-there.so"), "{printed}");
}

#[test]
fn a_preloaded_class_exists_in_every_worker() {
    let folder = TempDir::new();
    let preload = folder.write("preload.php", "<?php class Preloaded { const X = 'preloaded'; }");
    folder.write("run.php", "<?php echo Preloaded::X;");
    let mut preloading = settings();
    preloading.ini.extend(ini(&[("opcache.preload", preload.to_str().unwrap())]));
    if rustix::process::geteuid().is_root() {
        preloading.ini.extend(ini(&[("opcache.preload_user", "nobody")]));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&folder.0, mode).unwrap();
    }
    let mut host = Host::with(preloading);
    for _ in 0..2 {
        assert_eq!(finished(&host.fork().request(&get("run.php").root(&folder.0))), "preloaded");
    }
}

#[test]
fn workers_share_opcache() {
    let mut host = Host::new();
    let folder = TempDir::new();
    folder.write("run.php", "<?php echo opcache_is_script_cached(__DIR__ . '/other.php') ? 1 : 0;");
    folder.write("other.php", "<?php echo 'other';");
    let (mut first, mut second) = (host.fork(), host.fork());
    assert_eq!(finished(&second.request(&get("run.php").root(&folder.0))), "0");
    assert_eq!(finished(&first.request(&get("other.php").root(&folder.0))), "other");
    assert_eq!(finished(&second.request(&get("run.php").root(&folder.0))), "1");
}

#[test]
fn the_user_is_changed_permanently() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut other = settings();
    other.run_as = Some((65534, 65534));
    other.env = BTreeMap::new();
    let mut host = Host::with(other);
    let folder = TempDir::new();
    folder.write(
        "run.php",
        "<?php echo json_encode([posix_getuid(), posix_geteuid(), posix_getgid(),
             posix_getgroups(), getenv('USER'), @posix_setuid(0)]);",
    );
    let text = finished(&host.fork().request(&get("run.php").root(&folder.0)));
    assert_eq!(text, "[65534,65534,65534,[65534],\"nobody\",false]");
}

fn resident_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn ten_thousand_requests_leave_no_memory_behind() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let request = get("server.php").header("Cookie", "a=1").query("a=b");
    let mut settled = 0;
    for round in 0..11_000 {
        finished(&worker.request(&request));
        if round == 1000 {
            settled = resident_kib(worker.pid);
        }
    }
    let grown = resident_kib(worker.pid).saturating_sub(settled);
    assert!(grown < 128, "{grown} KiB more after 10,000 requests");
}

/// Of the worker's processor, since a busy machine delays what takes little (`Documentation/scheduler/sched-stats.rst`
/// of Linux: nanoseconds on a processor come first).
#[test]
fn a_fork_is_ready_in_milliseconds() {
    let mut host = Host::new();
    let mut times_ns: Vec<u64> = (0..50)
        .map(|_| {
            let worker = host.fork();
            let stat = std::fs::read_to_string(format!("/proc/{}/schedstat", worker.pid)).unwrap();
            host.signal(worker.number, 9);
            assert!(matches!(host.event(), Event::Exited { .. }));
            stat.split(' ').next().unwrap().parse().unwrap()
        })
        .collect();
    times_ns.sort_unstable();
    assert!((1..100_000_000).contains(&times_ns[25]), "until it was ready: {times_ns:?}");
}

#[test]
fn a_withdrawn_request_is_skipped() {
    let folder = TempDir::new();
    folder.write("run.php", "<?php touch(__DIR__ . '/ran');");
    let mut host = Host::new();
    let mut worker = host.fork();
    let withdrawn = Tag { slot: 0, generation: 100 };
    let mut payload = Vec::new();
    post("run.php", "text/plain", "body").root(&folder.0).encode(&mut payload);
    // Not published yet, so the worker cannot have started it.
    worker.channel.offer(withdrawn);
    assert!(worker.channel.push(FrameKind::Request, withdrawn, &[&payload]).unwrap());
    assert!(worker.channel.push(FrameKind::RequestBody, withdrawn, &[b"body"]).unwrap());
    assert!(worker.channel.withdraw(withdrawn));
    let tag = worker.begin(&get("hello.php"));
    assert_eq!(finished(&worker.finish(tag, b"")), "hello\n");
    assert!(!folder.0.join("ran").exists());
    assert!(!worker.channel.withdraw(tag), "a handled request cannot be withdrawn");
}

#[test]
fn a_malformed_request_ends_only_its_worker() {
    let mut host = Host::new();
    let mut worker = host.fork();
    worker.push(FrameKind::Request, Default::default(), b"not a request");
    let Event::Exited { code: Some(code), .. } = host.event() else { panic!() };
    assert_ne!(code, 0);
    assert!(worker.output().contains("broke the ring protocol"));
    assert_eq!(finished(&host.fork().request(&get("hello.php"))), "hello\n");
}

#[test]
fn started_by_hand_it_names_its_purpose() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_outboard-php"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("started by `outboard`"));
}
