//! Superglobals in files that are compiled while a request is answered: PHP's importers run then.

mod driver;

use driver::{Host, ScriptWorker, TempDir, finished, get, ini, post, settings_of_worker};
use outboard_ring::control::{HostSettings, Isolation};

const HANDLING: &str =
    "while (Outboard\\handle_request(function () { include __DIR__ . '/late.php'; }));";
const SERVING: &str = "Outboard\\serve(function () { include __DIR__ . '/late.php'; return ''; });";
const SNAPSHOT: &str = "Outboard\\snapshot(); include __DIR__ . '/late.php';";

/// What a GET says whose handler includes a file with this code, which nobody has compiled before.
fn first_seen(worker: &str, late: &str, change: impl Fn(&mut HostSettings)) -> String {
    let folder = TempDir::new();
    folder.write("late.php", &format!("<?php {late}"));
    let mut settings = settings_of_worker(folder.write("worker.php", &format!("<?php {worker}")));
    change(&mut settings);
    finished(&Host::with(settings).fork().request(&get("a").query("page=7")))
}

fn reset(_: &mut HostSettings) {}

fn coroutines(settings: &mut HostSettings) {
    settings.worker.as_mut().unwrap().concurrency = 20;
}

fn fork(settings: &mut HostSettings) {
    settings.worker.as_mut().unwrap().isolation = Isolation::Fork;
}

fn eager(settings: &mut HostSettings) {
    settings.ini.extend(ini(&[("auto_globals_jit", "0")]));
}

/// A way to ask, and how the host is set up for it.
type Way = (&'static str, fn(&mut HostSettings));

const WAYS: [Way; 8] = [
    (HANDLING, reset),
    (HANDLING, coroutines),
    (HANDLING, fork),
    (HANDLING, eager),
    (SERVING, reset),
    (SERVING, coroutines),
    (SERVING, fork),
    (SNAPSHOT, fork),
];

#[test]
fn a_file_that_mentions_an_empty_one_may_be_compiled_in_a_request() {
    for (worker, change) in WAYS {
        for name in ["_POST", "_COOKIE", "_FILES"] {
            let said = first_seen(worker, &format!("echo json_encode(${name});"), change);
            assert_eq!(said, "[]", "{name} {worker}");
        }
    }
}

#[test]
fn what_a_request_has_set_stays_when_a_file_that_mentions_it_is_compiled() {
    let code = "while (Outboard\\handle_request(function () {
        $_GET['page'] = 8; $_POST['more'] = 9; include __DIR__ . '/late.php'; }));";
    for change in [reset, coroutines, fork] {
        let said = first_seen(code, "echo json_encode([$_GET, $_POST]);", change);
        assert_eq!(said, r#"[{"page":8},{"more":9}]"#);
    }
}

#[test]
fn phpinfo_answers_a_get() {
    for (worker, change) in WAYS {
        let said = first_seen(worker, "phpinfo(INFO_VARIABLES);", change);
        assert!(said.contains("$_GET['page']") && said.contains("$_SERVER['"), "{worker}: {said}");
    }
}

#[test]
fn an_upload_after_such_a_get_is_seen() {
    let mut app = ScriptWorker::new(HANDLING);
    app.folder.write("late.php", "<?php echo json_encode(array_keys($_FILES));");
    assert_eq!(app.get("a"), "[]");
    let body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\r\nhello\r\n--b--\r\n";
    let upload = post("a", "multipart/form-data; boundary=b", body);
    assert_eq!(finished(&app.worker.request(&upload)), r#"["f"]"#);
    assert_eq!(app.get("a"), "[]");
}

#[test]
fn the_environment_that_all_requests_share_has_nothing_of_one() {
    let mut app = ScriptWorker::with(HANDLING, |settings| {
        settings.ini.extend(ini(&[("variables_order", "EGPCS")]));
    });
    app.folder.write(
        "late.php",
        "<?php echo json_encode([$_ENV['HTTP_X_ONE'] ?? null, $_ENV['APP_COLOUR']]);",
    );
    let first = get("a").header("X-One", "secret");
    assert_eq!(finished(&app.worker.request(&first)), r#"[null,"blue"]"#);
    assert_eq!(app.get("a"), r#"[null,"blue"]"#);
}

#[test]
fn an_answer_without_a_session_is_marked_as_such_after_one_with_it() {
    let mut app = ScriptWorker::new(HANDLING);
    app.folder.write("late.php", "<?php if ($_GET) { $_SESSION = ['mine' => 1]; } echo 'said';");
    let own = app.worker.request(&get("a").query("session=1"));
    assert_eq!(own.line("X-Outboard-Session"), Some("1"));
    assert_eq!(app.request("a").line("X-Outboard-Session"), None);
}
