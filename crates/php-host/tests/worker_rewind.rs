//! Isolation by rewind: the script boots once, and one process handles each request from the same memory.

mod driver;

use driver::{Response, ScriptWorker, finished};
use outboard_ring::control::Isolation;

/// Each rewind is compared with the snapshot, byte by byte.
fn rewinding(code: &str) -> ScriptWorker {
    ScriptWorker::with(code, |settings| {
        settings.worker.as_mut().unwrap().isolation = Isolation::Rewind;
        settings.env.insert("OUTBOARD_VERIFY_REWIND".into(), "1".into());
    })
}

/// Sends a request, after which the worker takes another one.
fn request(app: &mut ScriptWorker, name: &str) -> Response {
    let response = app.request(name);
    if response.done.leaving {
        let next = app.host.fork();
        let printed = std::mem::replace(&mut app.worker, next).output();
        panic!("the worker leaves: {printed}\n{response:?}\n{:?}", app.host.started);
    }
    response
}

#[track_caller]
fn output(app: &mut ScriptWorker, name: &str) -> String {
    finished(&request(app, name))
}

/// Prints state of the request before, and changes as much state as possible.
const DIRTY: &str = r#"
    class Stored { public static $static = 0; }
    function counted() { static $n = 0; return ++$n; }
    $global = 0;
    function response() {
        $found = [$GLOBALS['global']++, Stored::$static++, counted(), getenv('LEFT'), ini_get('precision'),
            defined('LEFT'), date_default_timezone_get(), mb_internal_encoding(), basename(getcwd()), set_error_handler(fn () => true)];
        putenv('LEFT=1'); ini_set('precision', '3'); define('LEFT', 1); date_default_timezone_set('Asia/Tokyo');
        mb_internal_encoding('ISO-8859-1'); chdir('/');
        return json_encode($found);
    }"#;

#[test]
fn no_state_of_a_request_reaches_the_next() {
    for asking in [
        "Outboard\\serve(fn () => response());",
        "while (frankenphp_handle_request(function () { echo response(); }));",
        "Outboard\\snapshot(); echo response();",
    ] {
        let mut app = rewinding(&format!("chdir('/tmp'); {DIRTY} {asking}"));
        let first = output(&mut app, "a");
        assert!(first.starts_with("[0,0,1,false,"), "{first}");
        for n in 0..100 {
            eprintln!("{n} {asking}");
            assert_eq!(output(&mut app, "a"), first, "{asking}");
        }
    }
}

#[test]
fn one_process_handles_all_requests() {
    let mut app = rewinding(
        "file_put_contents(__DIR__ . '/boots', '.', FILE_APPEND); Outboard\\serve(fn () => (string) getmypid());",
    );
    let first = output(&mut app, "a");
    assert_eq!((output(&mut app, "b"), output(&mut app, "c")), (first.clone(), first));
    assert_eq!(std::fs::read_to_string(app.folder.0.join("boots")).unwrap(), ".");
    assert_eq!(app.stop(), Some(0));
}
