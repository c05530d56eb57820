//! Isolation by fork: the script boots once, and a copy of it handles each request.

mod driver;

use driver::{Host, Response, TempDir, dirty, finished, get, settings_of_worker, start_printing};
use outboard_ring::control::{Event, HostSettings, Isolation};

struct Forking {
    host: Host,
    folder: TempDir,
}

fn settings(folder: &TempDir, code: &str) -> HostSettings {
    let mut settings = settings_of_worker(folder.write("worker.php", &format!("<?php {code}")));
    settings.worker.as_mut().unwrap().isolation = Isolation::Fork;
    settings
}

impl Forking {
    fn new(code: &str) -> Self {
        let folder = TempDir::new();
        Self { host: Host::with(settings(&folder, code)), folder }
    }

    /// Sends a request to a new fork and waits for its exit.
    fn request(&mut self, name: &str) -> Response {
        let mut worker = self.host.fork();
        let response = worker.request(&get(name));
        assert!(response.done.leaving, "{response:?}");
        match self.host.event() {
            Event::Exited { worker: number, code, signal } => {
                assert_eq!((number, code, signal), (worker.number, Some(0), None));
            }
            other => panic!("expected the fork's end, got {other:?}"),
        }
        response
    }

    #[track_caller]
    fn get(&mut self, name: &str) -> String {
        finished(&self.request(name))
    }
}

#[test]
fn no_state_of_a_request_reaches_the_next() {
    for asking in [
        "Outboard\\serve(fn () => response());",
        "while (frankenphp_handle_request(function () { echo response(); }));",
        "Outboard\\snapshot(); echo response();",
    ] {
        let mut app = Forking::new(&dirty(asking));
        let first = app.get("a");
        assert!(first.starts_with("[0,0,1,false,"), "{first}");
        for _ in 0..3 {
            assert_eq!(app.get("a"), first, "{asking}");
        }
    }
}

#[test]
fn the_script_boots_once() {
    let mut app = Forking::new(
        "file_put_contents(__DIR__ . '/boots', '.', FILE_APPEND); Outboard\\serve(fn () => 'up');",
    );
    assert_eq!((app.get("a"), app.get("b"), app.get("c")), ("up".into(), "up".into(), "up".into()));
    assert_eq!(std::fs::read_to_string(app.folder.0.join("boots")).unwrap(), ".");
}

#[test]
fn after_the_snapshot_the_script_is_an_ordinary_one() {
    let mut app = Forking::new(
        "$booted = 'booted'; Outboard\\snapshot();
         header('X-Query: ' . ($_GET['q'] ?? 'none')); http_response_code(201); session_id('x');
         register_shutdown_function(function () { echo ' shutdown'; });
         echo $booted, ' ', $_SERVER['REQUEST_METHOD'], ' ', Outboard\\request()->path();
         if (isset($_GET['exit'])) exit(' exit'); echo ' end';",
    );
    let mut worker = app.host.fork();
    let response = worker.request(&get("p").query("q=1"));
    assert_eq!((response.status, response.line("X-Query")), (201, Some("1")));
    assert_eq!(finished(&response), "booted GET /p end shutdown");
    app.host.event();
    let mut worker = app.host.fork();
    assert_eq!(finished(&worker.request(&get("p").query("exit"))), "booted GET /p exit shutdown");
}

#[test]
fn an_exception_after_the_snapshot_is_a_500() {
    let mut app = Forking::new("Outboard\\snapshot(); throw new DomainException('a bug');");
    for _ in 0..2 {
        let failed = app.request("a");
        assert_eq!(failed.status, 500, "{failed:?}");
        assert!(failed.log_text().contains("Uncaught DomainException: a bug"), "{failed:?}");
    }
}

#[test]
fn a_fatal_error_after_the_snapshot_is_a_500() {
    let mut app = Forking::new("Outboard\\snapshot(); str_repeat('x', 1 << 30);");
    let failed = app.request("a");
    assert_eq!(failed.status, 500, "{failed:?}");
    assert!(failed.log_text().contains("Allowed memory size"), "{failed:?}");
}

#[test]
fn a_snapshot_in_another_mode_does_nothing() {
    let folder = TempDir::new();
    folder.write("a.php", "<?php Outboard\\snapshot(); echo 'classic';");
    assert_eq!(finished(&Host::new().fork().request(&get("a.php").root(&folder.0))), "classic");
    let mut reset =
        driver::ScriptWorker::new("Outboard\\snapshot(); Outboard\\serve(fn () => 'reset');");
    assert_eq!(reset.get("a"), "reset");
}

#[test]
fn forks_wait_concurrently() {
    let mut app = Forking::new("Outboard\\serve(fn ($request) => $request->path());");
    let mut forks: Vec<_> = (0..4).map(|_| app.host.fork()).collect();
    for (n, fork) in forks.iter_mut().enumerate().rev() {
        assert_eq!(finished(&fork.request(&get(&format!("{n}")))), format!("/{n}"));
    }
}

#[test]
fn a_fork_may_be_stopped_without_a_request() {
    let mut app =
        Forking::new("Outboard\\serve(fn () => 'up'); file_put_contents(__DIR__ . '/end', '');");
    let mut worker = app.host.fork();
    worker.stop();
    assert!(matches!(app.host.event(), Event::Exited { code: Some(0), .. }));
    assert_eq!(app.get("a"), "up");
}

#[test]
fn coroutines_work_in_a_fork() {
    let mut app = Forking::new(
        "Outboard\\serve(fn () => Outboard\\concurrently([function () { Outboard\\sleep(0.001); return 1; }, fn () => 2]));",
    );
    assert_eq!((app.get("a"), app.get("a")), ("[1,2]".into(), "[1,2]".into()));
}

#[test]
fn coroutines_work_after_the_snapshot() {
    let mut app = Forking::new(
        "Outboard\\snapshot(); echo json_encode(Outboard\\concurrently([function () { Outboard\\sleep(0.001); return 1; }, fn () => 2]));
         Outboard\\defer(function () { file_put_contents(__DIR__ . '/deferred', ''); });",
    );
    assert_eq!((app.get("a"), app.get("a")), ("[1,2]".into(), "[1,2]".into()));
    assert!(app.folder.0.join("deferred").exists());
}

#[test]
fn coroutines_are_unavailable_before_the_snapshot() {
    let mut app = Forking::new(
        "try { Outboard\\spawn(fn () => 1); } catch (RuntimeException $e) { $said = $e->getMessage(); }
         usleep(1); Outboard\\serve(fn () => $said);",
    );
    assert!(app.get("a").contains("isolation \"fork\""));
}

#[test]
fn random_numbers_of_forks_differ() {
    for draw in
        ["mt_rand()", "rand()", "lcg_value()", "uniqid('', true)", "bin2hex(random_bytes(4))"]
    {
        let mut app = Forking::new(&format!("{draw}; Outboard\\serve(fn () => (string) {draw});"));
        assert_ne!(app.get("a"), app.get("a"), "{draw}");
    }
}

#[test]
fn a_script_without_a_call_does_not_start_the_app() {
    let folder = TempDir::new();
    let (host, printed) = start_printing(settings(&folder, "echo 'done already';"));
    let Event::StartFailed { message } = &host.started else { panic!("{:?}", host.started) };
    assert!(message.contains("worker.php ended without a call for a request"), "{message}");
    assert_eq!(printed, "done already");
}

#[test]
fn a_script_that_fails_while_booting_does_not_start_the_app() {
    for (code, words) in [
        (
            "throw new DomainException('no configuration');",
            "Uncaught DomainException: no configuration",
        ),
        ("if (", "Parse error"),
        ("$x = str_repeat('x', 1 << 30);", "Allowed memory size"),
    ] {
        let folder = TempDir::new();
        let (host, printed) = start_printing(settings(&folder, code));
        assert!(matches!(host.started, Event::StartFailed { .. }), "{code}: {:?}", host.started);
        assert!(printed.contains(words), "{code}: {printed}");
    }
}

#[test]
fn the_boot_prints_at_once_and_its_forks_do_not_again() {
    let folder = TempDir::new();
    let script = "echo 'a notice'; Outboard\\serve(fn () => 'up');";
    let (mut host, printed) = start_printing(settings(&folder, script));
    assert_eq!(printed, "a notice");
    let mut worker = host.fork();
    assert_eq!(finished(&worker.request(&get("a"))), "up");
    host.event();
    assert_eq!(worker.output(), "");
}

#[test]
fn each_request_has_its_position_in_a_file_of_the_boot() {
    let mut app = Forking::new(
        "file_put_contents(__DIR__ . '/data', 'abcdef'); $file = fopen(__DIR__ . '/data', 'r+'); $log = fopen(__DIR__ . '/log', 'a'); fread($file, 1);
         Outboard\\snapshot();
         fwrite($log, '.'); echo fread($file, 2), (int) flock($file, LOCK_EX | LOCK_NB);
         if ($_SERVER['QUERY_STRING'] === 'hold') { touch(__DIR__ . '/held'); while (!is_file(__DIR__ . '/go')) { usleep(1000); clearstatcache(); } }",
    );
    assert_eq!((app.get("a"), app.get("b")), ("bc1".into(), "bc1".into()));
    let mut holding = app.host.fork();
    let tag = holding.begin(&get("p").query("hold"));
    while !app.folder.0.join("held").exists() {
        std::thread::yield_now();
    }
    assert_eq!(finished(&app.host.fork().request(&get("p"))), "bc0");
    app.folder.write("go", "");
    assert_eq!(finished(&holding.finish(tag, b"")), "bc1");
    assert_eq!(std::fs::read_to_string(app.folder.0.join("log")).unwrap(), "....");
}
