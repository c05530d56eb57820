//! Superglobals in files that are compiled during a request, when PHP's importers run.

mod driver;

use driver::{Host, ScriptWorker, TempDir, finished, get, ini, post, settings_of_worker};
use outboard_ring::control::{HostSettings, Isolation};

const HANDLING: &str =
    "while (Outboard\\handle_request(function () { include __DIR__ . '/late.php'; }));";
const SERVING: &str = "Outboard\\serve(function () { include __DIR__ . '/late.php'; return ''; });";
const SNAPSHOT: &str = "Outboard\\snapshot(); include __DIR__ . '/late.php';";

/// The response to a GET whose handler includes a file with this code, which was never compiled
/// before.
fn first_response(worker: &str, late: &str, change: impl Fn(&mut HostSettings)) -> String {
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

/// A script that includes the file, and the settings of its host.
type Setup = (&'static str, fn(&mut HostSettings));

const SETUPS: [Setup; 8] = [
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
fn an_empty_superglobal_survives_a_late_compilation() {
    for (worker, change) in SETUPS {
        for name in ["_POST", "_COOKIE", "_FILES"] {
            let text = first_response(worker, &format!("echo json_encode(${name});"), change);
            assert_eq!(text, "[]", "{name} {worker}");
        }
    }
}

#[test]
fn values_of_a_request_survive_a_late_compilation() {
    let code = "while (Outboard\\handle_request(function () {
        $_GET['page'] = 8; $_POST['more'] = 9; include __DIR__ . '/late.php'; }));";
    for change in [reset, coroutines, fork] {
        let text = first_response(code, "echo json_encode([$_GET, $_POST]);", change);
        assert_eq!(text, r#"[{"page":8},{"more":9}]"#);
    }
}

#[test]
fn phpinfo_answers_a_get() {
    for (worker, change) in SETUPS {
        let text = first_response(worker, "phpinfo(INFO_VARIABLES);", change);
        assert!(text.contains("$_GET['page']") && text.contains("$_SERVER['"), "{worker}: {text}");
    }
}

#[test]
fn an_upload_after_such_a_get_arrives() {
    let mut app = ScriptWorker::new(HANDLING);
    app.folder.write("late.php", "<?php echo json_encode(array_keys($_FILES));");
    assert_eq!(app.get("a"), "[]");
    let body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\r\nhello\r\n--b--\r\n";
    let upload = post("a", "multipart/form-data; boundary=b", body);
    assert_eq!(finished(&app.worker.request(&upload)), r#"["f"]"#);
    assert_eq!(app.get("a"), "[]");
}

#[test]
fn the_shared_environment_has_no_fields_of_a_request() {
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
fn the_session_mark_is_per_response() {
    let mut app = ScriptWorker::new(HANDLING);
    app.folder.write("late.php", "<?php if ($_GET) { $_SESSION = ['mine' => 1]; } echo 'text';");
    let own = app.worker.request(&get("a").query("session=1"));
    assert_eq!(own.line("X-Outboard-Session"), Some("1"));
    assert_eq!(app.request("a").line("X-Outboard-Session"), None);
}
