//! The start of a request in worker mode: what the engine does before the handler is called, as php-fpm does
//! before the script.

mod driver;

use driver::{RequestSpec, Response, ScriptWorker, get, ini, post};
use outboard_ring::control::Isolation::{self, Fork, Reset, Rewind};
use outboard_ring::response::Outcome;

const FORM: &str = "application/x-www-form-urlencoded";

/// Isolation and concurrency.
const MODES: [(Isolation, u32); 4] = [(Reset, 1), (Reset, 10), (Rewind, 1), (Fork, 1)];

struct App {
    app: ScriptWorker,
    isolation: Isolation,
}

impl App {
    fn new((isolation, concurrency): (Isolation, u32), code: &str, set: &[(&str, &str)]) -> Self {
        let app = ScriptWorker::with(code, |settings| {
            settings.ini.extend(ini(set));
            let worker = settings.worker.as_mut().unwrap();
            (worker.isolation, worker.concurrency) = (isolation, concurrency);
        });
        Self { app, isolation }
    }

    fn request(&mut self, request: &RequestSpec) -> Response {
        let response = self.app.worker.request(request);
        // With AddressSanitizer's memory there is no snapshot to rewind to.
        let is_sanitized =
            std::env::var("OUTBOARD_SANITIZE").is_ok_and(|checks| checks.contains("address"));
        let ends = self.isolation == Fork || is_sanitized && self.isolation == Rewind;
        assert!(ends || !response.done.leaving, "{response:?}");
        if ends {
            self.app.host.event();
            self.app.worker = self.app.host.fork();
        }
        response
    }
}

/// Code of a boot: every error becomes an exception, and an exception a page.
const THROWING: &str =
    "set_error_handler(function ($n, $text) { throw new ErrorException($text); });
    set_exception_handler(function ($e) { echo 'handled: ', $e->getMessage(); });";

#[test]
fn warnings_of_the_start_are_logged_and_the_handler_is_called() {
    let fields =
        |separator: &str| (0..30).map(|at| format!("v{at}=1")).collect::<Vec<_>>().join(separator);
    let parts =
        "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n".repeat(9) + "--B--\r\n";
    let multipart = |rest: &str| format!("multipart/form-data{rest}");
    let requests = [
        ("PHP Request Startup: Input variables exceeded", post("a", FORM, fields("&"))),
        ("PHP Request Startup: Input variables exceeded", get("a").query(&fields("&"))),
        ("PHP Request Startup: Input variables exceeded", get("a").header("Cookie", &fields("; "))),
        ("nesting level", post("a", FORM, format!("a{}=1", "[x]".repeat(100)))),
        ("exceeds the limit", post("a", FORM, "a=".to_owned() + &"x".repeat(3000))),
        ("Missing boundary", post("a", &multipart(""), "x")),
        ("Multipart body parts limit", post("a", &multipart("; boundary=B"), parts)),
    ];
    let calls = [
        "while (Outboard\\handle_request(function () { echo 'handler'; }));",
        "Outboard\\serve(fn () => 'handler');",
    ];
    let limits =
        [("max_input_vars", "20"), ("post_max_size", "2000"), ("max_multipart_body_parts", "5")];
    for (mode, call) in MODES.into_iter().flat_map(|mode| calls.map(|call| (mode, call))) {
        let mut app = App::new(mode, &format!("{THROWING} {call}"), &limits);
        for (warning, request) in &requests {
            let response = app.request(request);
            assert_eq!((response.status, &*response.text()), (200, "handler"), "{response:?}");
            let log = response.log_text();
            assert!(
                log.contains(warning) && log.contains("in Unknown on line 0"),
                "{mode:?} {log}"
            );
            assert!(!log.contains("frankenphp") && !log.contains("handle_request"), "{log}");
        }
        let response = app.request(&get("a"));
        assert_eq!((&*response.text(), &*response.log_text()), ("handler", ""), "{mode:?}");
    }
}

#[test]
fn errors_of_the_handler_are_for_the_handlers_of_the_boot() {
    for mode in MODES {
        let call = "while (Outboard\\handle_request(function () { echo $missing; }));";
        let mut app = App::new(mode, &format!("{THROWING} {call}"), &[]);
        for _ in 0..2 {
            let response = app.request(&post("a", "multipart/form-data", "x"));
            assert_eq!(response.text(), "handled: Undefined variable $missing", "{mode:?}");
        }
    }
}

#[test]
fn each_client_has_a_session_of_its_own_with_auto_start() {
    let code = "while (Outboard\\handle_request(function () {
        echo session_id(), '|', $_SESSION['who'] ?? '-';
        $_SESSION['who'] = $_GET['who'] ?? $_SESSION['who'] ?? '-';
    }));";
    for mode in MODES {
        let path = driver::TempDir::new();
        let path = path.0.to_str().unwrap();
        let set = [("session.auto_start", "1"), ("session.save_path", path)];
        let mut app = App::new(mode, &format!("{THROWING} {code}"), &set);
        let mut visit = |cookie: Option<&str>, query: &str| {
            let request = get("a").query(query);
            let request = cookie.map_or(request.clone(), |cookie| request.header("Cookie", cookie));
            let response = app.request(&request);
            let text = response.text();
            let (id, who) = text.split_once('|').unwrap_or_else(|| panic!("{response:?}"));
            let cookie = response.line("Set-Cookie").map(|line| line.split(';').next().unwrap());
            (format!("PHPSESSID={id}"), who.to_owned(), cookie.map(str::to_owned))
        };
        let (alice, _, alices_cookie) = visit(None, "who=alice");
        let (bob, who, bobs_cookie) = visit(None, "who=bob");
        assert_eq!((alices_cookie, bobs_cookie), (Some(alice.clone()), Some(bob.clone())));
        assert_eq!((alice == bob, &*who), (false, "-"), "{mode:?}");
        assert_eq!(visit(Some(&alice), ""), (alice.clone(), "alice".into(), None), "{mode:?}");
        assert_eq!(visit(Some(&bob), ""), (bob.clone(), "bob".into(), None), "{mode:?}");
        // PHP warns of this id; a session of its own is started.
        assert_eq!(visit(Some("PHPSESSID=*"), "").1, "-", "{mode:?}");
    }
}

#[test]
fn a_failed_session_handler_of_the_boot_ends_the_request() {
    let code = "final class Failing extends SessionHandler {
            public function read(string $id): string|false { throw new Exception('no storage'); }
        }
        session_set_save_handler(new Failing, true); set_exception_handler(fn () => print 'handled');
        while (Outboard\\handle_request(function () { echo 'handler'; }));";
    for mode in MODES {
        let mut app =
            App::new(mode, code, &[("session.auto_start", "1"), ("session.save_path", "/tmp")]);
        let response = app.request(&get("a"));
        assert_eq!((response.status, &*response.text()), (500, ""), "{mode:?} {response:?}");
        assert_eq!(response.done.outcome, Outcome::Failed, "{mode:?}");
        assert!(response.log_text().contains("no storage"), "{mode:?} {response:?}");
    }
}

#[test]
fn the_progress_of_an_upload_calls_no_session_handler_of_the_boot() {
    let code = "final class Handler extends SessionHandler {
            public function read(string $id): string|false { throw new Exception('called'); }
        }
        session_set_save_handler(new Handler, true);
        while (Outboard\\handle_request(function () { echo 'handler ', count($_FILES); }));";
    let part = |name: &str, content: &str| {
        format!("--B\r\nContent-Disposition: form-data; name={name}\r\n\r\n{content}\r\n")
    };
    let file = "a; filename=a\r\nContent-Type: text/plain";
    let body = part("PHP_SESSION_UPLOAD_PROGRESS", "x") + &part(file, "text") + "--B--\r\n";
    let upload =
        post("a", "multipart/form-data; boundary=B", body).header("Cookie", "PHPSESSID=abc");
    for mode in MODES {
        let mut app = App::new(mode, code, &[("session.save_path", "/tmp")]);
        let response = app.request(&upload);
        assert_eq!((&*response.text(), &*response.log_text()), ("handler 1", ""), "{mode:?}");
    }
}

#[test]
fn output_callbacks_of_the_boot_are_not_for_requests() {
    let boot = "function shout($text) { return strtoupper($text); }
        header_register_callback(function () { header('X-Callback: 1'); });";
    let handler = "function () { echo 'handler ', ob_get_level(); }";
    for (mode, call, callback) in [
        ((Reset, 1), "while (Outboard\\handle_request(HANDLER));", None),
        ((Reset, 10), "while (Outboard\\handle_request(HANDLER));", None),
        ((Fork, 1), "while (Outboard\\handle_request(HANDLER));", None),
        // One script, as in classic mode.
        ((Rewind, 1), "Outboard\\snapshot(); (HANDLER)();", Some("1")),
    ] {
        let code = format!("{boot} {}", call.replace("HANDLER", handler));
        let mut app = App::new(mode, &code, &[("output_handler", "shout")]);
        for _ in 0..3 {
            let response = app.request(&get("a"));
            assert_eq!(response.text(), "handler 0", "{mode:?} {response:?}");
            assert_eq!(response.line("X-Callback"), callback, "{mode:?}");
        }
    }
}

#[test]
fn a_worker_starts_without_opcache() {
    for mode in MODES {
        let code =
            "while (frankenphp_handle_request(function () { echo FRANKENPHP_LOG_LEVEL_INFO; }));";
        let mut app = App::new(mode, code, &[("opcache.enable", "0")]);
        assert_eq!(
            (app.request(&get("a")).text(), app.request(&get("a")).text()),
            ("0".into(), "0".into())
        );
    }
}
