//! Child processes: a forked child of a script is not a worker, and no descendant of a worker
//! outlives it, its zygote or the gateway.

mod driver;

use driver::{
    Host, TempDir, Worker, eventually, finished, get, is_running, kill, settings,
    settings_of_worker,
};
use outboard_ring::control::{Event, HostSettings, Isolation};
use std::path::Path;

#[derive(Debug, Clone, Copy)]
enum Mode {
    Classic,
    Reset,
    Coroutines,
    Fork,
    Snapshot,
}

const MODES: [Mode; 5] = [Mode::Classic, Mode::Reset, Mode::Coroutines, Mode::Fork, Mode::Snapshot];

fn serving(folder: &TempDir, mode: Mode, code: &str) -> Host {
    let note = "function note($line) { file_put_contents(__DIR__ . '/notes', \"$line\\n\", FILE_APPEND); }";
    let code = match mode {
        Mode::Classic => code.to_owned(),
        Mode::Snapshot => format!("Outboard\\snapshot(); {code}"),
        _ => format!("while (Outboard\\handle_request(function () {{ {code} }}));"),
    };
    let script = folder.write("worker.php", &format!("<?php {note} {code}"));
    Host::with(match mode {
        Mode::Classic => settings(),
        Mode::Reset => settings_of_worker(script),
        Mode::Coroutines => with(settings_of_worker(script), 8, Isolation::Reset),
        Mode::Fork | Mode::Snapshot => with(settings_of_worker(script), 1, Isolation::Fork),
    })
}

fn with(mut settings: HostSettings, concurrency: u32, isolation: Isolation) -> HostSettings {
    let worker = settings.worker.as_mut().unwrap();
    worker.concurrency = concurrency;
    worker.isolation = isolation;
    settings
}

/// Runs the code in each mode, twice per worker where possible.
#[track_caller]
fn everywhere(code: &str, body: &str, notes: &str) {
    for mode in MODES {
        let folder = TempDir::new();
        let mut host = serving(&folder, mode, code);
        let mut worker = host.fork();
        for _ in 0..2 {
            let request = get("worker.php").root(&folder.0);
            assert_eq!(finished(&worker.request(&request)), body, "{mode:?}");
            let noted = std::fs::read_to_string(folder.0.join("notes")).unwrap_or_default();
            assert_eq!(noted, notes, "{mode:?}");
            let _ = std::fs::remove_file(folder.0.join("notes"));
            if matches!(mode, Mode::Fork | Mode::Snapshot) {
                assert!(matches!(host.event(), Event::Exited { code: Some(0), .. }));
                worker = host.fork();
            }
        }
    }
}

/// The process ids that a script has written, once there are `many`.
#[track_caller]
fn noted(folder: &Path, many: usize) -> Vec<i32> {
    let read = || -> Vec<i32> {
        let text = std::fs::read_to_string(folder.join("notes")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    eventually(|| read().len() >= many);
    read()
}

#[test]
fn a_child_runs_the_shutdown_and_sends_no_response() {
    everywhere(
        "$object = new class { public $me; function __construct() { $this->me = getmypid(); }
             function __destruct() { if ($this->me !== getmypid()) note('destructed'); } };
         $GLOBALS['held'] = $object;
         $pid = pcntl_fork();
         if ($pid === 0) { register_shutdown_function(fn () => note('shutdown')); echo 'child'; header('X-Child: 1'); }
         else { pcntl_waitpid($pid, $status); echo 'parent ', pcntl_wexitstatus($status); }
         unset($GLOBALS['held']); if ($pid === 0) { $GLOBALS['in_child'] = $object; }",
        "parent 0",
        "shutdown\ndestructed\n",
    );
}

#[test]
fn a_child_may_exit_or_fail() {
    everywhere(
        "$pid = pcntl_fork(); if ($pid === 0) { exit(7); } pcntl_waitpid($pid, $status); echo pcntl_wexitstatus($status);
         $pid = pcntl_fork(); if ($pid === 0) { throw new Exception('of a child'); } pcntl_waitpid($pid, $status); echo ' ', pcntl_wexitstatus($status);",
        "7 255",
        "",
    );
}

#[test]
fn a_child_has_no_gateway() {
    everywhere(
        "$pid = pcntl_fork();
         if ($pid === 0) {
             try { Outboard\\handle_request(fn () => 1); } catch (RuntimeException) { note('no request'); }
             note('finish ' . (int) fastcgi_finish_request()); note('slept ' . usleep(1000)); flush(); exit;
         }
         pcntl_waitpid($pid, $status); echo 'parent';",
        "parent",
        "no request\nfinish 0\nslept \n",
    );
}

#[test]
fn a_child_does_not_close_resources_of_its_parent() {
    everywhere(
        "$file = tmpfile(); $name = stream_get_meta_data($file)['uri'];
         $pid = pcntl_fork(); if ($pid === 0) { exit; } pcntl_waitpid($pid, $status); echo (int) is_file($name);",
        "1",
        "",
    );
}

#[test]
fn the_number_of_children_is_bounded() {
    everywhere(
        "$forked = 0; $children = [];
         for ($i = 0; $i < 40; $i++) { $pid = @pcntl_fork(); if ($pid === 0) { sleep(300); exit; } if ($pid > 0) { $children[] = $pid; } }
         echo count($children);
         foreach ($children as $pid) { posix_kill($pid, SIGKILL); pcntl_waitpid($pid, $status); }
         for ($i = 0; $i < 40; $i++) { $pid = pcntl_fork(); if ($pid === 0) { exit; } pcntl_waitpid($pid, $status); }
         $pid = pcntl_fork();
         if ($pid === 0) { for ($n = 0; ($pid = @pcntl_fork()) > 0; $n++); if ($pid === 0) { sleep(300); exit; } exit($n); }
         pcntl_waitpid($pid, $status); echo ' ', pcntl_wexitstatus($status);",
        "32 8",
        "",
    );
}

/// A worker that waits forever, and the process ids of its descendants.
#[track_caller]
fn stuck(folder: &TempDir, mode: Mode, code: &str, many: usize) -> (Host, Worker, Vec<i32>) {
    let mut host = serving(folder, mode, code);
    let mut worker = host.fork();
    worker.begin(&get("worker.php").root(&folder.0));
    let started = noted(&folder.0, many);
    assert!(started.iter().all(|pid| is_running(*pid)), "{started:?}");
    (host, worker, started)
}

const FORKING: &str = "if (pcntl_fork() === 0) { if (pcntl_fork() === 0) { note(getmypid()); sleep(300); exit; } note(getmypid()); sleep(300); exit; } sleep(300);";
const STARTING: &str =
    "exec('echo $$ >> ' . __DIR__ . '/notes; sleep 300 & echo $! >> ' . __DIR__ . '/notes; wait');";

#[test]
fn no_descendant_outlives_a_killed_worker() {
    for mode in MODES {
        for code in [FORKING, STARTING] {
            let folder = TempDir::new();
            let (host, worker, started) = stuck(&folder, mode, code, 2);
            host.signal(worker.number, 9);
            assert!(matches!(host.event(), Event::Exited { signal: Some(9), .. }));
            eventually(|| !started.iter().any(|pid| is_running(*pid)));
        }
    }
}

#[test]
fn no_descendant_of_a_zygote_outlives_the_gateway() {
    let leaving = "exec('setsid sh -c \"echo \\$\\$ >> ' . __DIR__ . '/notes; sleep 300\" > /dev/null 2>&1 &'); sleep(300);";
    for mode in [Mode::Classic, Mode::Snapshot] {
        for (code, many) in [(FORKING, 2), (STARTING, 2), (leaving, 1)] {
            let folder = TempDir::new();
            let (mut host, _worker, started) = stuck(&folder, mode, code, many);
            host.close();
            eventually(|| !started.iter().any(|pid| is_running(*pid)));
        }
    }
}

#[test]
fn a_configured_background_program_lives_as_long_as_its_app() {
    let folder = TempDir::new();
    let code =
        "exec('sh -c \"echo \\$\\$ >> ' . __DIR__ . '/notes; sleep 300\" > /dev/null 2>&1 &');";
    let script = folder.write("worker.php", &format!("<?php Outboard\\snapshot(); {code}"));
    let mut settings = with(settings_of_worker(script), 1, Isolation::Fork);
    settings.background_programs = true;
    let mut host = Host::with(settings);
    let mut worker = host.fork();
    finished(&worker.request(&get("worker.php").root(&folder.0)));
    assert!(matches!(host.event(), Event::Exited { code: Some(0), .. }));
    let started = noted(&folder.0, 1);
    let mut worker = host.fork();
    finished(&worker.request(&get("worker.php").root(&folder.0)));
    assert!(is_running(started[0]));
    host.close();
    eventually(|| !is_running(started[0]));
}

#[test]
fn a_child_in_use_dies_with_a_killed_zygote() {
    let waiting = "exec('echo $$ >> ' . __DIR__ . '/notes; exec sleep 300');";
    let opened = "$p = proc_open('echo $$ >> ' . __DIR__ . '/notes; exec sleep 300', [], $pipes); proc_close($p);";
    for (code, many) in [(FORKING, 2), (waiting, 1), (opened, 1)] {
        let folder = TempDir::new();
        let (host, _worker, started) = stuck(&folder, Mode::Classic, code, many);
        let Event::Started { php_version, .. } = &host.started else { panic!("it has started") };
        if code == opened && !php_version.starts_with("8.2.") {
            // Later versions use posix_spawn(3), which runs no code of this program in the child.
            // So the child outlives a killed zygote.
            kill(started[0]);
            continue;
        }
        kill(host.pid() as i32);
        eventually(|| !started.iter().any(|pid| is_running(*pid)));
    }
}
