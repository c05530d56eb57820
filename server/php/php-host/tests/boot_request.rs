//! `Outboard\snapshot()` in a script of classic mode: what the script sees of a request while it boots, what
//! it reads of it, and what it leaves in it.

mod driver;

use driver::{Host, RequestSpec, ScriptWorker, TempDir, finished, get};
use outboard_ring::control::{Event, Isolation, RequestRead};

/// `ci/test-asan` leaves out this module: AddressSanitizer reserves more memory than a snapshot may have.
mod a_rewound_worker {
    use super::*;

    /// A worker whose script has booted with this request; each rewind is compared with the snapshot.
    fn booted(code: &str, request: &RequestSpec) -> ScriptWorker {
        ScriptWorker::with(code, |settings| {
            let worker = settings.worker.as_mut().unwrap();
            worker.isolation = Isolation::Rewind;
            let mut frame = Vec::new();
            request.clone().root(worker.script.parent().unwrap()).encode(&mut frame);
            worker.boot_request = Some(frame);
            settings.env.insert("OUTBOARD_VERIFY_REWIND".into(), "1".into());
        })
    }

    /// What the start has reported.
    fn reads(app: &ScriptWorker) -> Vec<(&str, u32)> {
        let Event::Started { request_reads, .. } = &app.host.started else { panic!() };
        request_reads.iter().map(|read: &RequestRead| (read.name.as_str(), read.line)).collect()
    }

    /// Why there is no snapshot.
    fn refusal(code: &str) -> String {
        let app = driver::TempDir::new();
        let script = app.write("worker.php", &format!("<?php {code}"));
        let mut settings = driver::settings_of_worker(script);
        let worker = settings.worker.as_mut().unwrap();
        worker.isolation = Isolation::Rewind;
        let mut frame = Vec::new();
        get("worker.php").root(&app.0).encode(&mut frame);
        worker.boot_request = Some(frame);
        match &driver::start(settings).started {
            Event::StartFailed { message } => message.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_boot_sees_its_request_and_each_request_its_own() {
        let code = "$boot = $_SERVER['HTTP_HOST'] . ' ' . $_SERVER['REQUEST_METHOD'] . getcwd();
            Outboard\\snapshot();
            echo json_encode([$boot, $_SERVER['HTTP_HOST'], $_SERVER['SCRIPT_NAME'], $_GET, getcwd() == __DIR__,
                isset($_SERVER['OUTBOARD_WORKER']), Outboard\\is_worker()]);";
        let mut app = booted(code, &get("worker.php"));
        let here = app.folder.0.display().to_string().replace('/', "\\/");
        for host in ["a.test", "b.test", "a.test"] {
            let mut request = get("worker.php").query("q=1").root(&app.folder.0);
            request.headers = vec![("Host".into(), host.into())];
            let expected = format!(
                "[\"example.test GET{here}\",\"{host}\",\"\\/worker.php\",{{\"q\":\"1\"}},true,false,false]"
            );
            assert_eq!(finished(&app.worker.request(&request)), expected);
        }
    }

    #[test]
    fn a_script_knows_whether_it_boots() {
        let code = "$boots = [Outboard\\is_booting()]; Outboard\\snapshot();
            $boots[] = Outboard\\is_booting(); echo json_encode($boots);";
        let mut app = booted(code, &get("worker.php"));
        for _ in 0..2 {
            assert_eq!(app.get("worker.php"), "[true,false]");
        }
        let mut resident = ScriptWorker::new(
            "$boots = Outboard\\is_booting(); Outboard\\serve(fn () => json_encode([$boots, Outboard\\is_booting()]));",
        );
        assert_eq!(resident.get("a"), "[false,false]");
    }

    #[test]
    fn the_boot_has_the_cookies_of_its_request() {
        let code = "$boot = $_COOKIE; Outboard\\snapshot(); echo json_encode([$boot, $_COOKIE]);";
        let mut app = booted(code, &get("worker.php").header("Cookie", "a=1; b=x%20y"));
        assert_eq!(app.get("worker.php"), r#"[{"a":"1","b":"x y"},[]]"#);
    }

    #[test]
    fn reads_are_reported_with_their_line() {
        let code = "
            $a = $_SERVER['HTTP_HOST'];
            $b = isset($_SERVER['HTTPS']) || isset($_COOKIE['lang']);
            $key = 'REMOTE_ADDR'; $c = $_SERVER[$key] ?? '';
            function later() { return array_key_exists('HTTP_ACCEPT', $_SERVER) || $_GET; } later();
            $d = $_SERVER['DOCUMENT_ROOT'] . $_SERVER['APP_ENV'] ?? '';
            $_SERVER['HTTP_X_SET'] = 'no read'; unset($_SERVER['HTTP_X_UNSET']);
            getenv('HTTP_X_ENV'); getenv('PATH'); filter_input(INPUT_COOKIE, 'theme');
            foreach ($_COOKIE as $name => $value);
            $_SERVER['HTTP_X_OP'] .= 'x';
            Outboard\\snapshot(); $_SERVER['HTTP_X_LATER'] ?? 1;";
        let app = booted(code, &get("worker.php"));
        let expected = [
            ("_SERVER.HTTP_HOST", 2),
            ("_SERVER.HTTPS", 3),
            ("_COOKIE.lang", 3),
            ("_SERVER.REMOTE_ADDR", 4),
            ("_SERVER.HTTP_ACCEPT", 5),
            ("_GET", 5),
            ("_SERVER.HTTP_X_ENV", 8),
            ("_COOKIE.theme", 8),
            ("_COOKIE", 9),
            ("_SERVER.HTTP_X_OP", 10),
        ];
        assert_eq!(reads(&app), expected);
    }

    #[test]
    fn arrays_as_a_whole_are_reads_and_ignored_names_are_not() {
        let code = "function f($x) {} f($_SERVER); $x = $_COOKIE['a']; $y = $_POST['b'] ?? 1; getallheaders();";
        let app = booted(&format!("{code} Outboard\\snapshot();"), &get("worker.php"));
        assert_eq!(reads(&app), [("_SERVER", 1), ("_COOKIE.a", 1), ("_POST", 1)]);
        let ignoring = "['_SERVER', '_COOKIE.a']";
        let app = booted(&format!("{code} Outboard\\snapshot({ignoring});"), &get("worker.php"));
        assert_eq!(reads(&app), [("_POST", 1)]);
        let app =
            booted("$x = $_COOKIE['a']; Outboard\\snapshot(['_COOKIE']);", &get("worker.php"));
        assert_eq!(reads(&app), []);
    }

    #[test]
    fn a_read_is_ignored_in_the_named_files_alone() {
        let code = "file_put_contents(__DIR__ . '/own.php', '<?php $x = $_SERVER; $y = $_COOKIE[\"a\"];');
            require __DIR__ . '/own.php'; $y = $_COOKIE['a']; $z = $_SERVER['HTTP_X'] ?? 1;
            Outboard\\snapshot(['_SERVER' => __DIR__ . '/own', '_COOKIE.a' => __DIR__ . '/own.php', '_GET' => __DIR__]);";
        let app = booted(code, &get("worker.php"));
        assert_eq!(reads(&app), [("_COOKIE.a", 2), ("_SERVER.HTTP_X", 2)]);
    }

    #[test]
    fn an_array_is_read_as_a_whole_by_what_does_not_name_it() {
        let ways = [
            ("$x = $GLOBALS[$n];", "_COOKIE"),
            ("$x = $$n['a'] ?? 1;", "_COOKIE"),
            ("$x = &$GLOBALS[$n];", "_COOKIE"),
            ("$_COOKIE['a'] = 1; $x = $GLOBALS[$n]['b'] ?? 1;", "_COOKIE"),
            ("$x = compact('_COOKIE');", "_COOKIE"),
            ("file_get_contents('php://input');", "_POST"),
        ];
        for (code, array) in ways {
            // No path of a file is an excuse for them.
            let ignored = "['_COOKIE' => __DIR__]";
            let code = format!("$n = '_COOKIE'; {code} Outboard\\snapshot({ignored});");
            assert_eq!(reads(&booted(&code, &get("worker.php"))), [(array, 1)], "{code}");
        }
    }

    #[test]
    fn what_the_boot_changes_is_in_each_request() {
        let code = "$_SERVER['HTTPS'] = 'on'; unset($_SERVER['HTTP_HOST']); $_GET['added'] = ['x' => 1]; $_REQUEST[7] = 'n';
            header('X-Boot: 1'); header_remove('X-Powered-By'); http_response_code(203);
            Outboard\\snapshot();
            echo json_encode([$_SERVER['HTTPS'], isset($_SERVER['HTTP_HOST']), $_GET, $_POST, $_REQUEST]);
            $_SERVER['HTTPS'] = 'changed'; $_GET['added']['x'] = 2;";
        let mut app = booted(code, &get("worker.php"));
        for _ in 0..3 {
            let response = app.worker.request(&get("worker.php").query("q=1").root(&app.folder.0));
            let expected = r#"["on",false,{"q":"1","added":{"x":1}},[],{"q":"1","7":"n"}]"#;
            assert_eq!(finished(&response), expected);
            assert_eq!((response.line("X-Boot"), response.line("X-Powered-By")), (Some("1"), None));
            assert_eq!(response.status, 203);
        }
    }

    #[test]
    fn a_boot_that_answers_takes_no_snapshot() {
        for (code, why) in [
            ("echo 'x';", "printed"),
            ("ob_start();", "output buffer"),
            ("setcookie('a', 'b');", "cookie"),
            (
                "ini_set('session.use_cookies', 0); session_save_path(__DIR__); session_start();",
                "session",
            ),
        ] {
            let message = refusal(&format!("{code} Outboard\\snapshot();"));
            assert!(message.contains(why), "{code}: {message}");
        }
        let message =
            refusal("if ($_SERVER['REQUEST_METHOD'] == 'GET') exit; Outboard\\snapshot();");
        assert!(message.contains("without a call for a request"), "{message}");
    }
}

#[test]
fn a_classic_request_says_that_its_script_could_be_booted_once() {
    let folder = TempDir::new();
    folder.write("plain.php", "<?php echo 1;");
    folder.write("snapshot.php", "<?php Outboard\\snapshot(); echo 1 + Outboard\\is_booting();");
    let mut host = Host::new();
    let mut worker = host.fork();
    let mut run = |name| worker.request(&get(name).root(&folder.0));
    let (plain, snapshot) = (run("plain.php"), run("snapshot.php"));
    assert!(!plain.done.takes_snapshot && snapshot.done.takes_snapshot);
    assert_eq!(finished(&snapshot), "1");
}
