//! `frankenphp_handle_request()` and its own name: behaviour that scripts for it rely on.

mod driver;

use driver::{ScriptWorker, TempDir, finished, get, ini, post, settings_of_worker, start};
use outboard_ring::channel::Capacities;
use outboard_ring::control::Event;
use outboard_ring::frame::FrameKind;
use outboard_ring::response::Outcome;

/// A script with the usual loop around this handler body.
fn looping(body: &str) -> String {
    format!("while (frankenphp_handle_request(function () {{ {body} }}));")
}

#[test]
fn it_returns_true_after_a_request_and_false_on_stop() {
    let code = r#"
        $seen = [];
        do {
            $seen[] = $more = frankenphp_handle_request(function () { echo "response"; });
        } while ($more);
        file_put_contents(__DIR__ . '/seen', json_encode($seen));"#;
    let mut app = ScriptWorker::new(code);
    assert_eq!((app.get("a"), app.get("b")), ("response".into(), "response".into()));
    assert_eq!(app.stop(), Some(0));
    assert_eq!(std::fs::read_to_string(app.folder.0.join("seen")).unwrap(), "[true,true,false]");
}

#[test]
fn its_own_name_does_the_same() {
    let mut app =
        ScriptWorker::new("while (Outboard\\handle_request(function () { echo 'own'; }));");
    assert_eq!((app.get("a"), app.get("b")), ("own".into(), "own".into()));
}

#[test]
fn frankenphp_names_can_be_disabled() {
    let code =
        "Outboard\\serve(fn () => json_encode(function_exists('frankenphp_handle_request')));";
    let mut with = ScriptWorker::new(code);
    assert_eq!(with.get("a"), "true");
    let mut without = ScriptWorker::with(code, |settings| {
        settings.worker.as_mut().unwrap().frankenphp = false;
    });
    assert_eq!(without.get("a"), "false");
}

#[test]
fn outside_of_worker_mode_it_throws() {
    let folder = TempDir::new();
    folder.write(
        "a.php",
        "<?php try { Outboard\\handle_request(fn () => 1); } catch (RuntimeException $e) { echo $e->getMessage(); }",
    );
    let response = driver::Host::new().fork().request(&get("a.php").root(&folder.0));
    assert_eq!(finished(&response), "frankenphp_handle_request() called while not in worker mode");
}

#[test]
fn within_a_request_it_throws() {
    let mut app = ScriptWorker::new(&looping(
        "try { frankenphp_handle_request(fn () => 1); }
         catch (RuntimeException $e) { echo get_class($e); }",
    ));
    assert_eq!(app.get("a"), "RuntimeException");
    assert_eq!(app.get("a"), "RuntimeException");
}

#[test]
fn the_response_is_sent_before_it_returns() {
    let code = r#"
        while (frankenphp_handle_request(function () { echo "answered"; })) {
            fopen(__DIR__ . '/gate', 'r');
            file_put_contents(__DIR__ . '/after', 'ran');
        }"#;
    let mut app = ScriptWorker::new(code);
    let gate = app.folder.0.join("gate");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &gate,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    )
    .unwrap();
    assert_eq!(app.get("a"), "answered");
    assert!(!app.folder.0.join("after").exists());
    drop(std::fs::File::options().write(true).open(&gate).unwrap());
    let second = app.worker.begin(&get("b"));
    let response = app.worker.finish(second, b"");
    drop(std::fs::File::options().read(true).write(true).open(&gate).unwrap());
    assert_eq!(finished(&response), "answered");
    assert!(app.folder.0.join("after").exists());
}

#[test]
fn superglobals_are_those_of_the_request() {
    let mut app = ScriptWorker::new(&looping(
        "echo json_encode([$_GET, $_POST, $_COOKIE, $_REQUEST, $_SERVER['REQUEST_METHOD'], $_SERVER['HTTP_X_ONE'] ?? null]);",
    ));
    let form = "application/x-www-form-urlencoded";
    let request = post("a", form, "p=1").query("g=2").header("Cookie", "c=3").header("X-One", "4");
    assert_eq!(
        finished(&app.worker.request(&request)),
        r#"[{"g":"2"},{"p":"1"},{"c":"3"},{"g":"2","p":"1"},"POST","4"]"#
    );
    assert_eq!(app.get("b"), r#"[[],[],[],[],"GET",null]"#);
}

#[test]
fn uploads_are_removed_with_their_request() {
    let mut app = ScriptWorker::new(&looping(
        "echo json_encode([count($_FILES), isset($_FILES['f']) ? file_get_contents($_FILES['f']['tmp_name']) : null,
            is_uploaded_file($_FILES['f']['tmp_name'] ?? ''), $_FILES['f']['tmp_name'] ?? '']);",
    ));
    let body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\r\nhello\r\n--b--\r\n";
    let response = app.worker.request(&post("a", "multipart/form-data; boundary=b", body));
    let text = finished(&response);
    assert!(text.starts_with(r#"[1,"hello",true,"#), "{text}");
    let file = text.rsplit('"').nth(1).unwrap().replace("\\/", "/");
    assert!(!std::path::Path::new(&file).exists(), "{file}");
    assert_eq!(app.get("b"), r#"[0,null,false,""]"#);
}

#[test]
fn server_is_imported_for_handlers_that_mention_it() {
    let folder = TempDir::new();
    folder.write("late.php", "<?php return fn () => $_SERVER['QUERY_STRING'];");
    let late = folder.0.join("late.php");
    let mut app = ScriptWorker::new(&looping(&format!(
        "echo $_GET['late'] ?? 0 ? (require '{}')() : 'not mentioned';",
        late.display()
    )));
    assert_eq!(app.get("a"), "not mentioned");
    for query in ["late=1", "late=2", "late=3"] {
        assert_eq!(finished(&app.worker.request(&get("a").query(query))), query);
    }
}

#[test]
fn the_boot_finds_the_environment_in_server() {
    let mut app = ScriptWorker::new(&format!(
        "$colour = $_SERVER['APP_COLOUR'] ?? 'none'; $worker = $_SERVER['FRANKENPHP_WORKER'] ?? 'none';
         while (frankenphp_handle_request(function () use ($colour, $worker) {{ {} }}));",
        "echo \"$colour $worker \", $_SERVER['FRANKENPHP_WORKER'] ?? 'none';"
    ));
    assert_eq!(app.get("a"), "blue 1 1");
}

#[test]
fn the_body_is_readable_as_input() {
    let mut app = ScriptWorker::new(&looping("echo strrev(file_get_contents('php://input'));"));
    assert_eq!(finished(&app.worker.request(&post("a", "text/plain", "abc"))), "cba");
    assert_eq!(app.get("b"), "");
    assert_eq!(finished(&app.worker.request(&post("a", "text/plain", "xyz"))), "zyx");
}

#[test]
fn a_body_that_is_not_read_does_not_reach_the_next_request() {
    let mut app = ScriptWorker::new(&looping(
        "echo $_GET['read'] ?? 0 ? file_get_contents('php://input') : 'unread';",
    ));
    let long = "x".repeat(100_000);
    assert_eq!(finished(&app.worker.request(&post("a", "text/plain", long))), "unread");
    assert_eq!(
        finished(&app.worker.request(&post("a", "text/plain", "mine").query("read=1"))),
        "mine"
    );
}

#[test]
fn too_many_fields_are_a_warning_of_the_call() {
    let code = looping("echo error_get_last()['message'] ?? 'none';");
    let mut app = ScriptWorker::with(&code, |settings| {
        settings.ini.extend(ini(&[("max_input_vars", "1")]));
    });
    let text = finished(&app.worker.request(&get("a").query("a=1&b=2")));
    assert!(text.contains("max_input_vars") || text.contains("Input variables exceeded"), "{text}");
    assert_eq!(app.get("b"), "none");
}

#[test]
fn an_uncaught_exception_is_a_500_and_the_loop_goes_on() {
    let code =
        looping("if (isset($_GET['throw'])) throw new LogicException('a bug'); echo 'fine';");
    let mut app = ScriptWorker::new(&code);
    for _ in 0..3 {
        let failed = app.worker.request(&get("a").query("throw"));
        assert_eq!((failed.status, failed.done.outcome), (500, Outcome::Failed));
        assert!(!failed.done.leaving);
        assert!(failed.log_text().contains("Uncaught LogicException: a bug"), "{failed:?}");
        assert_eq!(app.get("b"), "fine");
    }
    let mut loud = ScriptWorker::with(&code, |settings| {
        settings.ini.extend(ini(&[("display_errors", "1")]));
    });
    let failed = loud.worker.request(&get("a").query("throw"));
    assert!(failed.text().contains("Uncaught LogicException: a bug"), "{failed:?}");
    assert_eq!(loud.get("b"), "fine");
}

#[test]
fn exit_ends_only_the_request() {
    let mut app = ScriptWorker::new(&looping(
        "register_shutdown_function(function () { echo ' shutdown'; });
         try { echo 'before'; if (isset($_GET['exit'])) exit(' said'); } finally { $n = 1; } echo ' after';",
    ));
    assert_eq!(finished(&app.worker.request(&get("a").query("exit"))), "before said shutdown");
    assert_eq!(app.get("b"), "before after shutdown");
    let pid = app.worker.pid;
    assert_eq!(finished(&app.worker.request(&get("a").query("exit"))), "before said shutdown");
    assert_eq!(app.worker.pid, pid);
}

#[test]
fn exit_in_nested_buffers_sends_their_content() {
    let mut app = ScriptWorker::new(&looping(
        "ob_start(); echo 'outer '; ob_start(fn ($text) => strtoupper($text)); echo 'inner'; if (isset($_GET['exit'])) exit; echo '!';",
    ));
    assert_eq!(finished(&app.worker.request(&get("a").query("exit"))), "outer INNER");
    assert_eq!(app.get("b"), "outer INNER!");
}

#[test]
fn a_finished_request_runs_on_without_its_client() {
    let mut app = ScriptWorker::new(&looping(
        "echo 'sent'; var_export(frankenphp_finish_request()); file_put_contents(__DIR__ . '/after', 'ran'); echo 'lost';",
    ));
    let response = app.request("a");
    assert_eq!((response.text().as_str(), response.ended), ("sent", true));
    assert!(app.folder.0.join("after").exists());
    assert_eq!(app.get("b"), "sent");
}

#[test]
fn status_and_headers_are_those_of_the_request() {
    let mut app = ScriptWorker::new(&looping(
        "if (isset($_GET['set'])) { http_response_code(404); header('X-Mine: 1'); setcookie('c', 'v'); header('Content-Type: text/plain'); }
         echo json_encode([http_response_code(), headers_list(), headers_sent()]);",
    ));
    let first = app.worker.request(&get("a").query("set"));
    assert_eq!(
        (first.status, first.line("X-Mine"), first.line("Set-Cookie")),
        (404, Some("1"), Some("c=v"))
    );
    let second = app.request("b");
    assert_eq!(
        (second.status, second.line("X-Mine"), second.line("Set-Cookie")),
        (200, None, None)
    );
    assert_eq!(second.line("Content-Type"), Some("text/html; charset=UTF-8"));
    assert!(second.text().ends_with(",false]"), "{second:?}");
}

#[test]
fn request_and_response_headers_are_listed() {
    let mut app = ScriptWorker::new(&looping(
        "header('X-Out: 2'); echo json_encode([frankenphp_request_headers()['X-In'] ?? null, frankenphp_response_headers()['X-Out'] ?? null]);",
    ));
    assert_eq!(finished(&app.worker.request(&get("a").header("X-In", "1"))), r#"["1","2"]"#);
    assert_eq!(app.get("b"), r#"[null,"2"]"#);
}

#[test]
fn a_script_may_end_after_requests() {
    let code =
        "for ($n = 0; $n < 2; $n++) { frankenphp_handle_request(function () { echo 'one'; }); }";
    let mut app = ScriptWorker::new(code);
    assert_eq!((app.get("a"), app.get("b")), ("one".into(), "one".into()));
    assert_eq!(app.wait_for_exit(), Some(0));
}

#[test]
fn each_call_may_have_another_handler() {
    let code = "$n = 0; do { $n++; $handler = function () use ($n) { echo $n; }; } while (frankenphp_handle_request($handler));";
    let mut app = ScriptWorker::new(code);
    assert_eq!((app.get("a"), app.get("b"), app.get("c")), ("1".into(), "2".into(), "3".into()));
}

#[test]
fn code_between_requests_may_take_its_time() {
    let code = r#"
        $between = 0;
        while (frankenphp_handle_request(function () use (&$between) { echo $between; })) { $between++; gc_collect_cycles(); }"#;
    let mut app = ScriptWorker::new(code);
    assert_eq!((app.get("a"), app.get("b"), app.get("c")), ("0".into(), "1".into(), "2".into()));
}

#[test]
fn the_time_limit_is_per_request() {
    let code =
        looping("if (isset($_GET['burn'])) { while (true); } echo ini_get('max_execution_time');");
    let mut app = ScriptWorker::with(&code, |settings| {
        settings.ini.extend(ini(&[("max_execution_time", "1")]));
    });
    assert_eq!(app.get("a"), "1");
    let late = app.worker.request(&get("a").query("burn"));
    assert_eq!(late.status, 500);
    assert!(late.log_text().contains("Maximum execution time of 1 second exceeded"), "{late:?}");
}

#[test]
fn exhausted_memory_is_a_500_and_the_worker_exits() {
    let code = looping("if (isset($_GET['eat'])) { str_repeat('x', 1 << 30); } echo 'fine';");
    let mut app = ScriptWorker::new(&code);
    assert_eq!(app.get("a"), "fine");
    let failed = app.worker.request(&get("a").query("eat"));
    assert_eq!(
        (failed.status, failed.done.outcome, failed.done.leaving),
        (500, Outcome::Failed, true)
    );
    assert!(failed.log_text().contains("Allowed memory size"), "{failed:?}");
    assert_eq!(app.wait_for_exit(), Some(0));
}

#[test]
fn a_fatal_error_is_a_500_and_the_worker_exits() {
    let folder = TempDir::new();
    let broken = folder.write(
        "broken.php",
        "<?php abstract class A { abstract function f(); } class B extends A {}",
    );
    let code = looping(&format!(
        "if (isset($_GET['fatal'])) {{ require '{}'; }} echo 'fine';",
        broken.display()
    ));
    let mut app = ScriptWorker::new(&code);
    assert_eq!(app.get("a"), "fine");
    let failed = app.worker.request(&get("a").query("fatal"));
    assert_eq!((failed.status, failed.done.leaving), (500, true), "{failed:?}");
    assert!(failed.log_text().contains("abstract method"), "{failed:?}");
    assert_eq!(app.wait_for_exit(), Some(0));
}

#[test]
fn a_script_without_a_call_is_reported_and_its_worker_exits() {
    let folder = TempDir::new();
    let script = folder.write("worker.php", "<?php echo 'nothing to do';");
    let mut host = driver::Host::with(settings_of_worker(script));
    let worker = host.fork_unready(Capacities::default());
    assert!(matches!(host.event(), Event::Exited { code: Some(4), .. }));
    let said = worker.output();
    assert!(said.contains("nothing to do"), "{said}");
    assert!(said.contains("the worker script ended without a call for a request"), "{said}");
}

#[test]
fn a_script_that_fails_while_booting_is_reported() {
    for (code, words) in [
        (
            "throw new DomainException('no configuration');",
            "Uncaught DomainException: no configuration",
        ),
        ("if (", "Parse error"),
        ("missing_function();", "undefined function missing_function()"),
        ("require '/nowhere/at/all.php';", "/nowhere/at/all.php"),
        ("$x = str_repeat('x', 1 << 30);", "Allowed memory size"),
    ] {
        let folder = TempDir::new();
        let script = folder.write("worker.php", &format!("<?php {code}"));
        let mut host = driver::Host::with(settings_of_worker(script));
        let worker = host.fork_unready(Capacities::default());
        assert!(matches!(host.event(), Event::Exited { code: Some(4), .. }), "{code}");
        let said = worker.output();
        assert!(said.contains(words), "{code}: {said}");
    }
}

#[test]
fn ready_comes_with_the_first_call() {
    let folder = TempDir::new();
    let gate = folder.0.join("gate");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &gate,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    )
    .unwrap();
    let code = format!("<?php fopen('{}', 'r'); {}", gate.display(), looping("echo 'up';"));
    let script = folder.write("worker.php", &code);
    let mut host = driver::Host::with(settings_of_worker(script));
    let mut worker = host.fork_unready(Capacities::default());
    assert!(worker.try_frame().is_none());
    drop(std::fs::File::options().write(true).open(&gate).unwrap());
    assert_eq!(worker.frame().0.kind, FrameKind::Ready);
    assert_eq!(finished(&worker.request(&get("a"))), "up");
}

#[test]
fn a_missing_script_is_reported() {
    let folder = TempDir::new();
    let event = start(settings_of_worker(folder.0.join("missing.php"))).started.clone();
    assert!(matches!(event, Event::Started { .. }), "{event:?}");
    let mut host = driver::Host::with(settings_of_worker(folder.0.join("missing.php")));
    let worker = host.fork_unready(Capacities::default());
    assert!(matches!(host.event(), Event::Exited { code: Some(4), .. }));
    assert!(worker.output().contains("missing.php"));
}
