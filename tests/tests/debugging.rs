//! Requests with a trigger of Xdebug get a worker that has it, and others none of its costs.

#![forbid(unsafe_code)]

#[path = "debugging/scenarios.rs"]
mod scenarios;
#[path = "debugging/stage.rs"]
mod stage;

use outboard_e2e::{Connection, Debugger, Request, eventually};
use scenarios::SCENARIOS;
use stage::{DEBUGGED, Mode, Stage, USUAL};

fn play(mode: Mode) {
    let stage = Stage::new(mode, "");
    for (name, scenario) in SCENARIOS {
        println!("{mode:?}: {name}");
        scenario(&stage);
        assert!(stage.debugger.is_unused(), "{name}: a session more than was expected");
        // Nobody else has seen anything of it.
        stage.site.client().get("/").expect(200).saying(USUAL);
    }
}

#[test]
fn scenarios_in_classic_mode() {
    play(Mode::Classic);
}

#[test]
fn scenarios_in_worker_mode() {
    play(Mode::Worker);
}

#[test]
fn scenarios_with_a_rewound_script() {
    play(Mode::Rewind);
}

#[test]
fn scenarios_in_coroutines() {
    play(Mode::Coroutines);
}

#[test]
fn the_deadline_waits_for_a_debugger_and_for_nothing_else() {
    for mode in Mode::ALL {
        let stage = Stage::new(mode, "[app.site.limits]\nrequest_deadline = \"2s\"\n");
        stage.warm_up();
        let mut waiting = stage.debugged("/");
        let mut session = stage.debugger.accept();
        session.break_at(&stage.page(), 4);
        assert_eq!(session.stops("run"), 4);
        // It has begun later and has the same deadline.
        stage.site.client().get("/?end=loop").expect(504);
        assert_eq!(session.value("1 + 1"), 2);
        session.finish();
        assert_eq!(waiting.response().expect("the server answers").text(), DEBUGGED, "{mode:?}");
        let mut looping = stage.debugged("/?end=loop");
        let mut session = stage.debugger.accept();
        session.command("detach");
        drop(session);
        assert_eq!(looping.response().expect("the server answers").status, 504, "{mode:?}");
    }
}

#[test]
fn a_reload_does_not_end_what_is_at_a_breakpoint() {
    for mode in [Mode::Classic, Mode::Worker] {
        let tables = "[app.site.debug]\nclients = [\"127.0.0.1\"]\n[app.site.limits]\nrequest_deadline = \"2s\"\n";
        let stage = Stage::started(mode, tables, "drain_timeout = \"1s\"\n");
        stage.warm_up();
        let mut waiting = stage.debugged("/");
        let mut session = stage.debugger.accept();
        session.break_at(&stage.page(), 4);
        assert_eq!(session.stops("run"), 4);
        assert!(stage.site.command("reload", &[]).status.success());
        // It has the present configuration, and takes longer than the reload's drain time-out.
        stage.site.client().get("/?end=loop").expect(504);
        session.finish();
        assert_eq!(waiting.response().expect("the server answers").text(), DEBUGGED, "{mode:?}");
    }
}

#[test]
fn a_request_is_answered_where_no_debugger_listens() {
    for mode in Mode::ALL {
        let mut stage = Stage::new(mode, "");
        stage.debugger = Debugger::listen();
        for _ in 0..2 {
            let answer = stage.debugged("/").response().expect("the server answers");
            assert_eq!(answer.text(), DEBUGGED, "{mode:?}");
        }
        stage.site.logs(&["Could not connect to debugging client"]);
    }
}

#[test]
fn a_client_that_may_not_gets_a_worker_as_everybody_does() {
    let proxies = "[app.site.debug]\nclients = [\"10.0.0.0/8\"]\n";
    let stage = Stage::started(Mode::Classic, proxies, "trusted_proxies = [\"127.0.0.1\"]\n");
    let ask = |client: &str| {
        let request = Request::get("/?XDEBUG_TRIGGER=1").header("X-Forwarded-For", client);
        stage.begin(&request)
    };
    for client in ["11.0.0.1", "127.0.0.1", "10.0.0.1, 11.0.0.1"] {
        assert_eq!(ask(client).response().expect("the server answers").text(), USUAL, "{client}");
    }
    let mut waiting = ask("11.0.0.1, 10.0.0.1");
    stage.debugger.accept().finish();
    assert_eq!(waiting.response().expect("the server answers").text(), DEBUGGED);
}

#[test]
fn in_production_nobody_may_by_default() {
    let stage = Stage::started(Mode::Classic, "", "");
    assert_eq!(stage.debugged("/").response().expect("the server answers").text(), USUAL);
    assert_eq!(stage.site.status()["pools"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_sandbox_lets_xdebug_reach_the_debugger_and_nothing_else() {
    for mode in [Mode::Classic, Mode::Worker, Mode::Rewind] {
        let stage =
            Stage::new(mode, "[app.site.sandbox]\nlevel = \"strict\"\nconnect_ports = [3306]\n");
        let mut waiting = stage.debugged("/");
        let mut session = stage.debugger.accept();
        session.break_at(&stage.page(), 4);
        assert_eq!(session.stops("run"), 4);
        let other = Debugger::listen();
        let connect = format!("(int) (bool) @fsockopen('127.0.0.1', {})", other.port());
        assert_eq!(session.value(&connect), 0);
        session.finish();
        assert_eq!(waiting.response().expect("the server answers").text(), DEBUGGED, "{mode:?}");
    }
}

#[test]
fn xdebug_of_the_ini_files_is_unloaded_unless_configured() {
    let module = "zend_extension = xdebug.so\nxdebug.mode = off\n";
    for (keys, expected) in [("", USUAL), ("in_all_workers = true\n", DEBUGGED)] {
        let debug = format!("[app.site.debug]\nclients = [\"127.0.0.1\"]\n{keys}");
        let stage = Stage::with_ini_file(Mode::Classic, &debug, module);
        assert_eq!(stage.site.client().get("/").expect(200).text(), expected);
        let mut waiting = stage.debugged("/");
        stage.debugger.accept().finish();
        assert_eq!(waiting.response().expect("the server answers").text(), DEBUGGED);
    }
}

#[test]
fn a_task_of_a_debugged_request_is_debugged_and_others_are_not() {
    for mode in [Mode::Worker, Mode::Rewind, Mode::Coroutines] {
        let stage =
            Stage::new(mode, "[app.site.tasks]\nworkers = 1\nscript = \"www/worker.php\"\n");
        let usual = USUAL.replace("nobody", "abc").replace("without", "without,cba without");
        stage.site.client().get("/?name=abc&end=task").expect(200).saying(&usual);
        let mut waiting = stage.debugged("/?name=abc&end=task");
        let mut session = stage.debugger.accept();
        session.begin("run");
        let mut task = stage.debugger.accept();
        let line = 47;
        task.break_at(&stage.page(), line);
        assert_eq!(task.stops("run"), line);
        assert_eq!(task.value("$hauled === 'cba'"), 1);
        // The only task worker is free.
        stage.site.client().get("/?name=abc&end=task").expect(200).saying(&usual);
        task.finish();
        session.ends();
        let debugged = DEBUGGED.replace("nobody", "abc").replace("with\n", "with,cba with\n");
        assert_eq!(waiting.response().expect("the server answers").text(), debugged, "{mode:?}");
    }
}

#[test]
fn requests_and_tasks_of_all_threads_are_debugged() {
    let tables = "[app.site.debug]\nclients = [\"127.0.0.1\"]\n[app.site.tasks]\nworkers = 1\nscript = \"www/worker.php\"\n";
    let stage =
        Stage::started(Mode::Worker, tables, "threads = 3\nio.gather_connections = false\n");
    let expected = DEBUGGED.replace("with\n", "with,ydobon with\n");
    // Each on a connection of its own, which a thread takes; more of them than there are workers.
    let waiting: Vec<_> = (0..6).map(|_| stage.debugged("/?end=task")).collect();
    // A request waits for its task, so all go on at the same time.
    let sessions = (0..2 * waiting.len()).map(|_| {
        let session = stage.debugger.accept();
        std::thread::spawn(move || session.finish())
    });
    let sessions: Vec<_> = sessions.collect();
    sessions.into_iter().for_each(|session| session.join().expect("the session ends"));
    for mut one in waiting {
        assert_eq!(one.response().expect("the server answers").text(), expected);
    }
}

#[test]
fn workers_with_xdebug_leave_when_there_is_nothing_to_debug() {
    let stage = Stage::new(Mode::Worker, "idle_timeout = \"200ms\"\n");
    stage.warm_up();
    let asleep = || {
        let status = stage.site.status();
        let pool =
            status["pools"].as_array()?.iter().find(|pool| pool["app"] == "site:debug")?.clone();
        (pool["phase"] == "asleep" && pool["workers"].as_array()?.is_empty()).then_some(())
    };
    eventually("the pool of workers with Xdebug sleeps", || asleep().ok_or("it is awake"));
}

#[test]
fn a_page_cache_neither_serves_nor_stores_what_is_debugged() {
    let cache = "[app.site.page_cache]\nmode = \"on\"\n";
    let stage = Stage::new(Mode::Classic, cache);
    let cached = |connection: &mut Connection| {
        let answer = connection.response().expect("the server answers");
        (answer.text(), answer.header("Cache-Status").unwrap_or_default().to_owned())
    };
    for _ in 0..2 {
        let mut waiting = stage.debugged("/");
        stage.debugger.accept().finish();
        let (text, status) = cached(&mut waiting);
        assert_eq!(text, DEBUGGED);
        assert!(status.contains("debugged"), "{status}");
        stage.site.client().get("/").expect(200).saying(USUAL);
    }
}
