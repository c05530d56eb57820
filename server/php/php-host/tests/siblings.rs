//! Siblings: zygotes that a started one forks. Their workers are like its own, in every mode.

mod driver;

use driver::{
    Host, MODES, Mode, TempDir, eventually, finished, get, settings, settings_as_nobody,
    settings_in,
};
use outboard_ring::control::{BACKTRACE_SIGNAL, Event, Order};
use outboard_ring::frame::FrameKind;
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// The output of a new worker for one request; its exit, if it serves one only, is reported.
#[track_caller]
fn answer(host: &mut Host, folder: &TempDir) -> String {
    let mut worker = host.fork();
    let response = worker.request(&get("worker.php").root(&folder.0));
    if response.done.leaving {
        let exit = Event::Exited { worker: worker.number, code: Some(0), signal: None };
        assert_eq!(host.event(), exit);
    }
    finished(&response)
}

#[test]
fn workers_of_a_sibling_serve_in_each_mode() {
    let boot = "file_put_contents(__DIR__ . '/boots', '.', FILE_APPEND); $booted = getmypid();";
    for mode in MODES {
        let folder = TempDir::new();
        let code = "echo 'by ', posix_getppid();";
        let mut first = Host::with(settings_in(&folder, mode, boot, code));
        let (mut sibling, _output) = first.split(1);
        let (mut other, _output) = first.split(2);
        for host in [&mut sibling, &mut first, &mut other] {
            for _ in 0..2 {
                assert_eq!(answer(host, &folder), format!("by {}", host.pid()), "{mode:?}");
            }
        }
        let boots = std::fs::read_to_string(folder.0.join("boots")).unwrap_or_default().len();
        let expected = match mode {
            Mode::Classic => 0,
            Mode::Reset => 6,
            Mode::Fork | Mode::Snapshot => 1,
        };
        assert_eq!(boots, expected, "{mode:?}");
    }
}

#[test]
fn a_sibling_reports_the_facts_of_the_start() {
    let folder = TempDir::new();
    let settings = settings_in(&folder, Mode::Fork, "echo 'booted';", "echo 'up';");
    let first = Host::with(settings);
    let (sibling, mut output) = first.split(1);
    let facts = |host: &Host| match host.started.clone() {
        Event::Started {
            php_version,
            opcache,
            ini_file,
            post_max_bytes,
            pid,
            rewind,
            rewind_refused,
            request_reads,
        } => {
            assert_eq!(pid, host.raw_pid());
            let rewind = (rewind, rewind_refused, request_reads);
            (php_version, opcache, ini_file, post_max_bytes, rewind)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(facts(&first), facts(&sibling));
    // What it prints itself goes to its pipe.
    sibling.order(&Order::Start { settings: Box::new(driver::settings()) });
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "outboard-php: a zygote exits: the engine has started already\n");
    assert_eq!(first.event(), Event::SiblingExited { sibling: 1, code: Some(1), signal: None });
}

#[test]
fn siblings_share_opcache_and_apcu() {
    let mut settings = settings();
    settings.ini.extend(driver::ini(&[("apc.enabled", "1")]));
    let mut first = Host::with(settings);
    let (mut sibling, _output) = first.split(1);
    let folder = TempDir::new();
    folder.write(
        "worker.php",
        "<?php require __DIR__ . '/other.php'; $all = opcache_get_status(true);
         $file = $all['scripts'][__DIR__ . '/other.php'];
         echo $file['hits'], ' ', $all['opcache_statistics']['misses'], ' ', function_exists('apcu_inc') ? apcu_inc('n') : $file['hits'] + 1;",
    );
    folder.write("other.php", "<?php");
    let seen = |text: String| -> Vec<u64> {
        text.split(' ').map(|number| number.parse().unwrap()).collect()
    };
    let by_first = seen(answer(&mut first, &folder));
    let by_sibling = seen(answer(&mut sibling, &folder));
    assert_eq!((by_first[0], by_first[2]), (0, 1), "compiled by a worker of the first");
    assert_eq!(by_sibling, [1, by_first[1], 2], "a hit, without another miss");
}

#[test]
fn random_numbers_of_workers_of_siblings_differ() {
    let draws = "echo json_encode([mt_rand(), rand(), lcg_value(), uniqid('', true), bin2hex(random_bytes(8))]);";
    for mode in MODES {
        let folder = TempDir::new();
        let mut first = Host::with(settings_in(&folder, mode, draws, draws));
        let (mut sibling, _output) = first.split(1);
        let (mut other, _output) = first.split(2);
        let drawn: Vec<Vec<String>> = [&mut first, &mut sibling, &mut other]
            .into_iter()
            .flat_map(|host| [answer(host, &folder), answer(host, &folder)])
            .map(|text| text.split(',').map(str::to_owned).collect())
            .collect();
        for draw in 0..drawn[0].len() {
            let distinct: BTreeSet<_> = drawn.iter().map(|numbers| &numbers[draw]).collect();
            assert_eq!(distinct.len(), drawn.len(), "{mode:?}: {drawn:?}");
        }
    }
}

#[test]
fn a_sibling_has_nothing_of_its_parent() {
    let mut first = Host::with(settings_as_nobody());
    let (mut before, _output) = first.split(1);
    let _worker = first.fork();
    let _worker = before.fork();
    let (sibling, _output) = first.split(2);
    let files = |host: &Host| -> Vec<(String, String)> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", host.pid())).unwrap();
        let entries = entries.map(|entry| entry.unwrap());
        let target = |path| std::fs::read_link(path).map(|to| to.to_string_lossy().into_owned());
        entries
            .filter_map(|entry| {
                Some((entry.file_name().into_string().unwrap(), target(entry.path()).ok()?))
            })
            .collect()
    };
    let is_own = |target: &str| {
        ["socket:", "pipe:", "memfd:outboard"].iter().any(|kind| target.starts_with(kind))
    };
    let own = |host: &Host| -> BTreeSet<String> {
        files(host).into_iter().map(|(_, target)| target).filter(|target| is_own(target)).collect()
    };
    let (of_first, of_before, of_sibling) = (own(&first), own(&before), own(&sibling));
    assert_eq!(
        of_sibling.len(),
        4,
        "a control socket, a pipe, and a pair for memories: {of_sibling:?}"
    );
    assert!(of_first.is_disjoint(&of_sibling) && of_before.is_disjoint(&of_sibling));

    let stat = |host: &Host| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", host.pid())).unwrap();
        let fields: Vec<i32> = stat
            .rsplit_once(") ")
            .unwrap()
            .1
            .split(' ')
            .skip(1)
            .take(3)
            .map(|field| field.parse().unwrap())
            .collect();
        (fields[0], fields[1], fields[2])
    };
    let pid = sibling.raw_pid();
    assert_eq!(stat(&sibling), (first.raw_pid(), pid, pid), "parent, group, session");
    let status = |host: &Host, name: &str| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", host.pid())).unwrap();
        status.lines().find(|line| line.starts_with(name)).unwrap().to_owned()
    };
    for name in ["Uid:", "NoNewPrivs:", "SigBlk:", "SigIgn:", "SigCgt:", "CapEff:"] {
        assert_eq!(status(&sibling, name), status(&first, name));
    }
    let title = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(title.trim_end_matches('\0'), "outboard: test zygote 2");
    // The files of a process that is not dumpable belong to root (proc(5)).
    assert_eq!(std::fs::metadata(format!("/proc/{pid}/environ")).unwrap().uid(), 0);
}

#[test]
fn an_impossible_split_is_refused() {
    let mut first = Host::new();
    first.order(&Order::Split { sibling: 1 });
    let Event::SplitFailed { sibling: 1, message } = first.event() else { panic!() };
    assert!(message.contains("without its two descriptors"), "{message}");
    assert_eq!(finished(&first.fork().request(&get("hello.php"))), "hello\n");
}

#[test]
fn a_sibling_reads_where_its_worker_waits() {
    let folder = TempDir::new();
    folder.write("worker.php", "<?php\necho 1; flush();\nsleep(300);");
    let first = Host::with(settings_as_nobody());
    let (mut sibling, _output) = first.split(1);
    let mut worker = sibling.fork();
    let tag = worker.begin(&get("worker.php").root(&folder.0));
    while worker.frame().0.kind != FrameKind::Flush {}
    // The first signal may interrupt it; then the sibling reads its memory.
    eventually(|| {
        sibling.signal(worker.number, BACKTRACE_SIGNAL);
        worker.channel.backtrace(tag).is_some_and(|text| text.starts_with("#0 sleep()"))
    });
}

#[test]
fn a_sibling_is_not_profiled_as_a_worker() {
    let folder = TempDir::new();
    let boot = "function compute() { while (true); }";
    let mut first =
        Host::with(settings_in(&folder, Mode::Fork, boot, "echo 1; flush(); compute();"));
    let (mut sibling, _output) = first.split(1);
    let (mut busy, _idle) = (sibling.fork(), first.fork());
    busy.begin(&get("worker.php").root(&folder.0));
    while busy.frame().0.kind != FrameKind::Flush {}
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_outboard-php"))
        .args(["sample", "200", "0.5", &first.pid().to_string(), &sibling.pid().to_string()])
        .output()
        .unwrap();
    let stacks = String::from_utf8(output.stdout).unwrap();
    assert!(stacks.contains(";compute "), "{stacks}");
    assert!(stacks.lines().all(|line| line.starts_with("test;")), "{stacks}");
}
