//! Changes of the engine and the process by a request are undone before the next one in the same
//! worker, which finds the state of the script's boot. Each test sends two requests in a row.

mod driver;

use driver::{Host, ScriptWorker, TempDir, finished, get, ini, serve};
use std::os::unix::fs::MetadataExt;

/// After `boot`, a request that runs `change` leaves `probe` as the request before found it.
#[track_caller]
fn assert_reset(boot: &str, change: &str, probe: &str) -> String {
    let body = format!(
        "$probe = function () {{ return json_encode({probe}); }}; $before = $probe();
         if ($at === 'change') {{ {change}; return $before . ' ' . $probe(); }} return $before;"
    );
    let mut app = ScriptWorker::new(&format!("{boot} {}", serve(&body)));
    let before = app.get("probe");
    for _ in 0..2 {
        let changed = app.get("change");
        assert_ne!(changed, format!("{before} {before}"), "{change} changes nothing");
        assert!(changed.starts_with(&before), "{changed}");
        assert_eq!(app.get("probe"), before, "after {change}");
    }
    before
}

#[test]
fn the_session_is_reset() {
    let started = "session_save_path(sys_get_temp_dir()); session_id('theirs'); session_start(); $_SESSION['secret'] = 1";
    let probe = "[session_id(), session_status(), $_SESSION ?? null]";
    assert_reset("", started, probe);
    assert_reset("", "session_name('OTHER')", "session_name()");
    assert_reset(
        "",
        "session_set_cookie_params(['lifetime' => 77, 'path' => '/x'])",
        "session_get_cookie_params()",
    );
    assert_reset("session_name('BOOTED');", "session_name('OTHER')", "session_name()");
    assert_reset(
        "class Handler extends SessionHandler {}",
        "session_set_save_handler(new Handler, true)",
        "session_module_name()",
    );
    assert_reset(
        "",
        "session_module_name('files'); session_cache_limiter('public')",
        "session_cache_limiter()",
    );
}

#[test]
fn a_session_that_is_left_open_is_written_and_unlocked() {
    let mut app = ScriptWorker::new(&format!(
        "session_save_path(__DIR__); {}",
        serve(
            "session_id('abc'); session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; return (string) $_SESSION['n'];"
        )
    ));
    assert_eq!((app.get("a"), app.get("a"), app.get("a")), ("1".into(), "2".into(), "3".into()));
}

#[test]
fn the_session_of_a_failed_request_is_reset() {
    let mut app = ScriptWorker::new(&format!(
        "session_save_path(__DIR__); {}",
        serve(
            "if ($at === 'a') { session_start(); $_SESSION['secret'] = 1; throw new Exception('x'); } return json_encode([session_id(), $_SESSION ?? null]);"
        )
    ));
    assert_eq!(app.request("a").status, 500);
    assert_eq!(app.get("b"), r#"["",null]"#);
}

#[test]
fn a_save_handler_of_the_boot_serves_every_request() {
    let boot = r#"
        class Store implements SessionHandlerInterface {
            public static $log = [];
            private static $data = [];
            function open($path, $name): bool { self::$log[] = 'open'; return true; }
            function close(): bool { self::$log[] = 'close'; return true; }
            function read($id): string|false { return self::$data[$id] ?? ''; }
            function write($id, $data): bool { self::$data[$id] = $data; return true; }
            function destroy($id): bool { return true; }
            function gc($life): int|false { return 0; }
        }
        session_set_save_handler(new Store, true);"#;
    let body = "session_id('one'); session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; return json_encode([$_SESSION['n'], Store::$log]);";
    let mut app = ScriptWorker::new(&format!("{boot} {}", serve(body)));
    assert_eq!(app.get("a"), r#"[1,["open"]]"#);
    assert_eq!(app.get("a"), r#"[2,["open","close","open"]]"#);
    assert_eq!(app.get("a"), r#"[3,["open","close","open","close","open"]]"#);
}

#[test]
fn superglobals_except_env_are_reset() {
    for name in ["_GET", "_POST", "_COOKIE", "_FILES", "_REQUEST", "_SERVER", "_SESSION"] {
        assert_reset(
            "",
            &format!("$GLOBALS['{name}']['added'] = 1; ${name}['added'] = 1"),
            &format!("isset(${name}['added'])"),
        );
    }
    let mut app = ScriptWorker::with(
        &serve("$n = $_ENV['n'] ?? 0; $_ENV['n'] = $n + 1; return \"$n\";"),
        |settings| {
            settings.ini.extend(ini(&[("variables_order", "EGPCS")]));
        },
    );
    assert_eq!((app.get("a"), app.get("a")), ("0".into(), "1".into()));
}

#[test]
fn the_environment_is_reset() {
    assert_reset(
        "putenv('FROM_BOOT=1');",
        "putenv('FROM_BOOT=2'); putenv('ADDED=1')",
        "[getenv('FROM_BOOT'), getenv('ADDED')]",
    );
    assert_reset("", "putenv('APP_COLOUR')", "getenv('APP_COLOUR')");
    assert_reset(
        "putenv('TZ=UTC');",
        "putenv('TZ=Asia/Tokyo'); date_default_timezone_set('Asia/Tokyo')",
        "[getenv('TZ'), exec('date +%Z')]",
    );
}

/// Applications set it once, in the request that first needs a session.
#[test]
fn the_session_path_is_remembered() {
    let body = "if ($at === 'change') { ini_set('session.save_path', '/once'); } return ini_get('session.save_path');";
    let mut app = ScriptWorker::new(&serve(body));
    assert_ne!(app.get("probe"), "/once");
    assert_eq!(app.get("change"), "/once");
    assert_eq!(app.get("probe"), "/once");
}

#[test]
fn ini_values_are_reset() {
    assert_reset("", "ini_set('precision', '3')", "[ini_get('precision'), 1/3]");
    assert_reset(
        "ini_set('precision', '5');",
        "ini_set('precision', '3')",
        "[ini_get('precision'), 1/3]",
    );
    assert_reset(
        "ini_set('precision', '5');",
        "ini_restore('precision')",
        "[ini_get('precision'), 1/3]",
    );
    assert_reset("", "error_reporting(0)", "error_reporting()");
    assert_reset(
        "error_reporting(E_ERROR);",
        "error_reporting(E_ALL)",
        "[error_reporting(), ini_get('error_reporting')]",
    );
    assert_reset(
        "",
        "ini_set('display_errors', '1'); ini_set('memory_limit', '64M')",
        "[ini_get('display_errors'), ini_get('memory_limit')]",
    );
    assert_reset("", "ini_set('default_charset', 'x')", "ini_get('default_charset')");
    assert_reset(
        "",
        "ini_set('include_path', '/x'); ini_set('user_agent', 'me')",
        "[get_include_path(), ini_get('user_agent')]",
    );
    assert_reset("set_include_path('/boot');", "set_include_path('/x')", "get_include_path()");
    assert_reset("", "gc_disable()", "gc_enabled()");
    assert_reset(
        "",
        "foreach (ini_get_all(null, false) as $name => $v) { if ($name !== 'session.save_path' && (str_starts_with($name, 'date.') || str_starts_with($name, 'session.') || str_starts_with($name, 'mbstring.'))) @ini_set($name, '1'); }",
        "array_filter(ini_get_all(null, false), fn ($n) => str_starts_with($n, 'date.') || str_starts_with($n, 'session.') || str_starts_with($n, 'mbstring.'), ARRAY_FILTER_USE_KEY)",
    );
}

#[test]
fn time_limit_and_ignore_user_abort_are_reset() {
    assert_reset("", "set_time_limit(77)", "ini_get('max_execution_time')");
    assert_reset("", "ignore_user_abort(true)", "ignore_user_abort()");
    assert_reset("ignore_user_abort(true);", "ignore_user_abort(false)", "ignore_user_abort()");
    let mut app = ScriptWorker::serving(
        "if ($at === 'a') { ignore_user_abort(true); while (!connection_aborted()) { echo str_repeat('x', 10000); flush(); } file_put_contents(__DIR__ . '/gone', ''); return; } return json_encode(connection_status());",
    );
    let tag = app.worker.begin(&get("a"));
    app.worker.frame();
    app.worker.abort(tag);
    app.worker.drain(tag);
    assert!(app.folder.0.join("gone").exists());
    assert_eq!(app.get("b"), "0");
}

#[test]
fn error_handlers_and_the_last_error_are_reset() {
    let handlers = "[($h = set_error_handler(null)) && restore_error_handler() ? 1 : (restore_error_handler() ? gettype($h) : 0), gettype(set_exception_handler(null)), restore_exception_handler()]";
    assert_reset(
        "",
        "set_error_handler(fn () => true); set_exception_handler(fn () => 1)",
        handlers,
    );
    assert_reset("", "@trigger_error('left')", "error_get_last()['message'] ?? null");
    let mut app = ScriptWorker::new(&format!(
        "set_error_handler(function ($level, $message) {{ echo \"boot: $message \"; return true; }}); {}",
        serve(
            "if ($at === 'change') { restore_error_handler(); set_error_handler(fn () => true); } trigger_error('e'); return '.';"
        )
    ));
    assert_eq!(app.get("a"), "boot: e .");
    assert_eq!(app.get("change"), ".");
    assert_eq!(app.get("a"), "boot: e .");
}

#[test]
fn output_buffers_headers_and_status_are_reset() {
    assert_reset("", "ob_start(); ob_start(fn ($text) => $text)", "ob_get_level()");
    assert_reset(
        "",
        "ob_implicit_flush(true); header('X-A: 1'); http_response_code(404)",
        "[headers_list(), http_response_code()]",
    );
    assert_reset(
        "",
        "header_register_callback(function () { header('X-Callback: 1'); }); header('X-B: 1')",
        "headers_list()",
    );
    let mut app = ScriptWorker::serving(
        "if ($at === 'a') header_register_callback(function () { header('X-Callback: 1'); }); return '';",
    );
    assert_eq!(app.request("a").line("X-Callback"), Some("1"));
    assert_eq!(app.request("b").line("X-Callback"), None);
}

/// `output_buffering` and similar settings apply to each request, as in classic mode.
#[test]
fn output_begins_as_the_ini_files_set_it() {
    let handler = "echo 'text'; header('X-Late: 1'); return json_encode(ob_get_status(true));";
    let mut app = ScriptWorker::with(&serve(handler), |settings| {
        settings.ini.extend(ini(&[("output_buffering", "4096"), ("expose_php", "1")]));
    });
    for _ in 0..2 {
        let response = app.request("a");
        assert_eq!(response.line("X-Late"), Some("1"), "{response:?}");
        assert!(response.line("X-Powered-By").is_some_and(|line| line.starts_with("PHP/")));
        assert!(response.text().contains("default output handler"), "{response:?}");
    }
    let mut app =
        ScriptWorker::with(&serve("return json_encode(ob_list_handlers());"), |settings| {
            settings.ini.extend(ini(&[("output_handler", "ob_gzhandler")]));
        });
    assert_eq!(
        (app.get("a"), app.get("b")),
        (r#"["ob_gzhandler"]"#.into(), r#"["ob_gzhandler"]"#.into())
    );
}

#[test]
fn url_rewrite_variables_are_reset() {
    let mut app = ScriptWorker::with(
        &serve("output_add_rewrite_var($at, '1'); echo '<a href=\"/x\">';"),
        |settings| settings.ini.extend(ini(&[("url_rewriter.tags", "a=href")])),
    );
    assert_eq!(app.get("a"), "<a href=\"/x?a=1\">");
    assert_eq!(app.get("b"), "<a href=\"/x?b=1\">");
}

#[test]
fn shutdown_functions_belong_to_one_request() {
    let mut app = ScriptWorker::serving(
        "if ($at === 'a') register_shutdown_function(function () { echo ' once'; }); return 'body';",
    );
    assert_eq!((app.get("a"), app.get("b")), ("body once".into(), "body".into()));
}

#[test]
fn locale_and_time_zone_are_reset() {
    assert_reset("", "setlocale(LC_ALL, 'C.UTF-8', 'C.utf8')", "setlocale(LC_ALL, 0)");
    assert_reset(
        "setlocale(LC_ALL, 'C.UTF-8', 'C.utf8');",
        "setlocale(LC_ALL, 'C')",
        "setlocale(LC_ALL, 0)",
    );
    assert_reset(
        "",
        "date_default_timezone_set('Asia/Tokyo')",
        "[date_default_timezone_get(), date('H', 0)]",
    );
    assert_reset(
        "date_default_timezone_set('Europe/Berlin');",
        "date_default_timezone_set('Asia/Tokyo')",
        "[date_default_timezone_get(), date('H', 0)]",
    );
}

#[test]
fn working_directory_and_umask_are_reset() {
    assert_reset("", "chdir('/')", "getcwd()");
    assert_reset("chdir(sys_get_temp_dir());", "chdir('/')", "getcwd()");
    assert_reset("umask(027);", "umask(0)", "umask()");
    let mut app = ScriptWorker::new(&format!(
        "umask(0022); {}",
        serve("if ($at === 'a') umask(077); touch(__DIR__ . \"/$at\"); return '';")
    ));
    app.get("a");
    app.get("b");
    let mode = |name: &str| app.folder.0.join(name).metadata().unwrap().mode() & 0o777;
    assert_eq!((mode("a"), mode("b")), (0o600, 0o644));
}

#[test]
fn mbstring_is_reset() {
    let change = "mb_internal_encoding('ISO-8859-1'); mb_language('ja'); mb_substitute_character(0x3f + 1); mb_detect_order(['ASCII']); mb_http_output('SJIS'); mb_regex_encoding('EUC-JP')";
    let probe = "[mb_internal_encoding(), mb_language(), mb_substitute_character(), mb_detect_order(), mb_http_output(), mb_regex_encoding()]";
    assert_reset("", change, probe);
    assert_reset(
        "mb_internal_encoding('UTF-16'); mb_substitute_character('none'); mb_language('uni'); mb_detect_order(['UTF-8', 'SJIS']);",
        change,
        probe,
    );
}

#[test]
fn libxml_is_reset() {
    assert_reset(
        "",
        "libxml_use_internal_errors(true); simplexml_load_string('<a>')",
        "[libxml_use_internal_errors(), libxml_get_errors()]",
    );
    assert_reset(
        "libxml_use_internal_errors(true);",
        "simplexml_load_string('<a>'); libxml_use_internal_errors(false)",
        "[libxml_use_internal_errors(), libxml_get_errors()]",
    );
    // No function of libxml's settings is called by these requests.
    let errors = "[libxml_get_errors(), libxml_get_last_error()]";
    assert_reset("libxml_use_internal_errors(true);", "simplexml_load_string('<a>')", errors);
    assert_reset("", "@simplexml_load_string('<a>')", errors);
    let mut app = ScriptWorker::serving(
        "if ($at === 'a') libxml_set_external_entity_loader(function () { $GLOBALS['asked'] = true; return null; });
         $d = new DOMDocument; @$d->loadXML('<!DOCTYPE a SYSTEM \"x.dtd\"><a/>', LIBXML_DTDLOAD); $asked = $GLOBALS['asked'] ?? false; $GLOBALS['asked'] = false; return json_encode($asked);",
    );
    assert_eq!((app.get("a"), app.get("b")), ("true".into(), "false".into()));
}

/// A context may contain a password.
#[test]
fn the_stream_context_of_libxml_is_reset() {
    let wrapper = "class W { public $context;
        function stream_open($path) { echo json_encode(stream_context_get_options($this->context)); return false; }
        function url_stat() { return []; } }
        stream_wrapper_register('any', 'W');
        function context($name) { return stream_context_create(['any' => ['name' => $name]]); }";
    let handler = serve(
        "if ($at === 'change') libxml_set_streams_context(context('theirs')); @simplexml_load_file('any://x');",
    );
    for (boot, expected) in
        [("", "[]"), ("libxml_set_streams_context(context('boot'));", r#"{"any":{"name":"boot"}}"#)]
    {
        let mut app = ScriptWorker::new(&format!("{wrapper} {boot} {handler}"));
        assert_eq!(app.get("probe"), expected);
        for _ in 0..2 {
            assert_eq!(app.get("change"), r#"{"any":{"name":"theirs"}}"#);
            assert_eq!(app.get("probe"), expected);
        }
    }
}

#[test]
fn assert_options_are_reset() {
    assert_reset(
        "",
        "assert_options(ASSERT_ACTIVE, 0); assert_options(ASSERT_CALLBACK, fn () => 1)",
        "[assert_options(ASSERT_ACTIVE), gettype(assert_options(ASSERT_CALLBACK))]",
    );
    assert_reset(
        "assert_options(ASSERT_CALLBACK, 'strlen');",
        "assert_options(ASSERT_CALLBACK, 'trim')",
        "assert_options(ASSERT_CALLBACK)",
    );
}

#[test]
fn stream_wrappers_and_filters_are_reset() {
    let classes = "class W { public $context; } class F extends php_user_filter {} class G extends php_user_filter {} stream_wrapper_register('boot', 'W'); stream_filter_register('boot.f', 'F');";
    assert_reset(
        classes,
        "stream_wrapper_register('mine', 'W'); stream_wrapper_unregister('http'); stream_wrapper_unregister('boot')",
        "(function () { $w = stream_get_wrappers(); sort($w); return $w; })()",
    );
    assert_reset(classes, "stream_filter_register('mine.f', 'G')", "stream_get_filters()");
    assert_reset(
        "stream_wrapper_unregister('ftp');",
        "stream_wrapper_restore('ftp')",
        "in_array('ftp', stream_get_wrappers())",
    );
    let boot = "class W { public $context; function url_stat($p, $f) { return ['size' => 5]; } }";
    let mut app = ScriptWorker::new(&format!(
        "{boot} {}",
        serve(
            "if ($at === 'a') { stream_wrapper_unregister('file'); stream_wrapper_register('file', 'W'); return (string) filesize('/etc/passwd'); } clearstatcache(); return json_encode(filesize('/etc/passwd') > 5);"
        )
    ));
    assert_eq!((app.get("a"), app.get("b")), ("5".into(), "true".into()));
}

#[test]
fn a_wrapper_of_the_boot_survives_being_unregistered() {
    let boot = "class W { public $context; private $text = 'the boot';
        function stream_open() { return true; }
        function stream_read() { [$text, $this->text] = [$this->text, '']; return $text; }
        function stream_eof() { return $this->text === ''; }
        function stream_stat() { return []; } }
        class Other { public $context; }
        stream_wrapper_register('boot', 'W');";
    // PHP reuses freed memory for strings of the same size.
    let handler = "static $held = [];
        if ($at !== 'read') stream_wrapper_unregister('boot');
        if ($at === 'replace') stream_wrapper_register('boot', 'Other');
        for ($i = 0; $i < 50; $i++) $held[] = str_repeat('x', rand(16, 23));
        return $at === 'read' ? file_get_contents('boot://x') : 'done';";
    let mut app = ScriptWorker::new(&format!("{boot} {}", serve(handler)));
    for change in ["read", "unregister", "replace", "unregister"] {
        app.get(change);
        assert_eq!(app.get("read"), "the boot", "after {change}");
    }
}

#[test]
fn the_default_stream_context_is_reset() {
    assert_reset(
        "",
        "stream_context_set_default(['http' => ['header' => 'Authorization: secret']])",
        "stream_context_get_options(stream_context_get_default())",
    );
    assert_reset(
        "stream_context_set_default(['http' => ['timeout' => 3]]);",
        "stream_context_set_default(['http' => ['header' => 'Authorization: secret']])",
        "stream_context_get_options(stream_context_get_default())",
    );
    assert_reset(
        "$default = stream_context_get_default();",
        "stream_context_set_option($GLOBALS['default'], 'http', 'timeout', 3)",
        "stream_context_get_options($GLOBALS['default'])",
    );
    for boot in [
        "",
        "stream_context_set_params(stream_context_get_default(), ['notification' => 'strlen']);",
    ] {
        assert_reset(
            boot,
            "stream_context_set_params(stream_context_get_default(), ['notification' => 'trim'])",
            "stream_context_get_params(stream_context_get_default())",
        );
    }
}

#[test]
fn the_random_seed_is_reset() {
    let mut app = ScriptWorker::serving(
        "if ($at === 'seed') { mt_srand(1); srand(1); } return (string) mt_rand();",
    );
    let seeded = app.get("seed");
    let next = app.get("next");
    assert_eq!(app.get("seed"), seeded);
    assert_ne!(app.get("next"), next);
}

#[test]
fn locked_files_are_unlocked() {
    let mut app = ScriptWorker::new(&format!(
        "$kept = fopen(__DIR__ . '/lock', 'c'); {}",
        "Outboard\\serve(function ($request) use ($kept) {
             if ($request->path() === '/kept') { flock($kept, LOCK_EX); return 'locked'; }
             if ($request->path() === '/unlocked') { flock($kept, LOCK_EX); flock($kept, LOCK_UN); return 'unlocked'; }
             $other = fopen(__DIR__ . '/lock', 'c');
             $free = flock($other, LOCK_EX | LOCK_NB);
             if ($request->path() === '/throw') throw new Exception('x');
             return json_encode($free);
         });"
    ));
    assert_eq!((app.get("kept"), app.get("free")), ("locked".into(), "true".into()));
    assert_eq!((app.get("unlocked"), app.get("free")), ("unlocked".into(), "true".into()));
    app.request("throw");
    assert_eq!(app.get("free"), "true");
}

#[test]
fn streams_of_a_request_are_closed_at_its_end() {
    let mut app = ScriptWorker::serving(
        "if ($at === 'open') { $a = tmpfile(); $b = fopen('php://temp/maxmemory:1', 'w+'); fwrite($b, 'xx'); fopen('php://memory', 'w'); file_get_contents('php://input'); }
         return json_encode([count(get_resources()), count(scandir('/proc/self/fd'))]);",
    );
    app.get("open");
    let before = app.get("probe");
    for _ in 0..20 {
        app.get("open");
        let form = "multipart/form-data; boundary=b";
        let body = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n\"\r\n\r\nhello\r\n--b--\r\n";
        finished(&app.worker.request(&driver::post("x", form, body)));
        finished(&app.worker.request(&driver::post("x", "text/plain", "y".repeat(50_000))));
    }
    assert_eq!(app.get("probe"), before);
}

#[test]
fn a_transaction_that_is_left_open_is_rolled_back() {
    let mut app = ScriptWorker::new(&format!(
        "$db = new PDO('sqlite::memory:'); $db->exec('create table t (n)'); {}",
        "Outboard\\serve(function ($request) use ($db) {
             if ($request->path() === '/left') { $db->beginTransaction(); $db->exec('insert into t values (1)'); return 'left'; }
             if ($request->path() === '/thrown') { $db->beginTransaction(); $db->exec('insert into t values (1)'); throw new Exception('x'); }
             if ($request->path() === '/done') { $db->beginTransaction(); $db->exec('insert into t values (1)'); $db->commit(); }
             return json_encode([$db->inTransaction(), (int) $db->query('select count(*) from t')->fetchColumn()]);
         });"
    ));
    let left = app.request("left");
    assert!(
        left.log_text().contains("a request left a transaction open: it was rolled back"),
        "{left:?}"
    );
    assert_eq!(app.get("a"), "[false,0]");
    app.request("thrown");
    assert_eq!(app.get("a"), "[false,0]");
    assert_eq!(app.get("done"), "[false,1]");
    assert_eq!(app.request("a").log_text(), "");
}

/// All statements that lock SQLite's file.
#[test]
fn an_sqlite_transaction_begun_by_a_statement_is_rolled_back() {
    let pdo = "$db = new PDO('sqlite:' . $file);";
    let persistent = "$db = new PDO('sqlite:' . $file, options: [PDO::ATTR_PERSISTENT => true]);";
    let silent = "$db = new PDO('sqlite:' . $file); $db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_SILENT);";
    let sqlite = "$db = new SQLite3($file);";
    for (open, begin) in [
        (pdo, "$db->exec('BEGIN')"),
        (pdo, "$db->exec(' -- why\n /* not */ begin immediate')"),
        (pdo, "$db->exec('SAVEPOINT a')"),
        (pdo, "$db->query('BEGIN')"),
        (pdo, "$db->prepare('BEGIN')->execute()"),
        (pdo, "$db->exec('DELETE FROM t; BEGIN')"),
        (pdo, "$db->beginTransaction()"),
        (silent, "$db->exec('BEGIN')"),
        (persistent, "$db->exec('BEGIN')"),
        (sqlite, "$db->exec('BEGIN')"),
        (sqlite, "$db->query('SAVEPOINT a')"),
        (sqlite, "$db->querySingle('BEGIN')"),
        (sqlite, "$db->prepare('BEGIN')->execute()"),
    ] {
        for kept in ["static $kept = []; $kept[] = $db;", ""] {
            let mut app = ScriptWorker::serving(&format!(
                "$file = __DIR__ . '/database';
                 if ($at === 'left') {{ {open} {kept} $db->exec('CREATE TABLE IF NOT EXISTS t (n)'); {begin}; $db->exec('INSERT INTO t VALUES (1)'); return 'left'; }}
                 set_error_handler(fn () => throw new Exception('noticed'));
                 $db = new PDO('sqlite:' . $file, options: [PDO::ATTR_TIMEOUT => 0]); $db->exec('INSERT INTO t VALUES (2)');
                 return json_encode($db->query('SELECT n FROM t')->fetchAll(PDO::FETCH_COLUMN));"
            ));
            let left = app.request("left");
            assert_eq!(finished(&left), "left");
            assert_eq!(app.get("a"), "[2]", "{open} {begin} {kept}");
            let is_said =
                left.log_text().contains("a request left a transaction open: it was rolled back");
            assert!(is_said || kept.is_empty(), "{open} {begin} {left:?}");
            assert_eq!(app.request("a").log_text(), "");
        }
    }
}

#[test]
fn a_transaction_ended_by_a_statement_allows_the_next() {
    let mut app = ScriptWorker::serving(
        "static $db; $db ??= new PDO('sqlite::memory:'); $db->beginTransaction(); $db->exec('COMMIT'); return 'done';",
    );
    assert_eq!((app.get("a"), app.get("b")), ("done".into(), "done".into()));
}

#[test]
fn a_hundred_thousand_requests_do_not_grow_the_worker() {
    let mut app = ScriptWorker::serving(
        "ini_set('precision', '3'); putenv('A=' . $at); setlocale(LC_ALL, 'C.UTF-8'); mb_internal_encoding('ISO-8859-1'); date_default_timezone_set('Asia/Tokyo');
         set_error_handler(fn () => true); ob_start(); echo 'x'; $_SESSION['a'] = str_repeat('x', 1000); header(\"X: $at\"); tmpfile();
         stream_context_set_default(['http' => ['a' => 1]]); libxml_use_internal_errors(true); mt_srand(1);
         $a = new stdClass; $a->self = $a; register_shutdown_function(fn () => 1); Outboard\\defer(fn () => 1);
         return (string) memory_get_usage();",
    );
    let memory =
        |app: &mut ScriptWorker| -> u64 { app.get("m").trim_start_matches('x').parse().unwrap() };
    let resident = |pid: i32| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
        text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    for _ in 0..20_000 {
        app.get("a");
    }
    let (heap, rss) = (memory(&mut app), resident(app.worker.pid));
    for _ in 0..80_000 {
        app.get("a");
    }
    // The cycle collector runs at ten thousand roots, so the heap size oscillates.
    assert!(memory(&mut app) < heap + 4_000_000, "{heap} {}", memory(&mut app));
    assert!(resident(app.worker.pid) < rss + 8_000_000, "{rss} {}", resident(app.worker.pid));
}

#[test]
fn signals_alarms_limits_and_priority_are_reset() {
    let shown = "[pcntl_async_signals(), pcntl_signal_get_handler(SIGTERM), pcntl_signal_get_handler(SIGUSR1) instanceof Closure, pcntl_signal_get_handler(SIGALRM)]";
    assert_reset("", "pcntl_async_signals(true)", shown);
    assert_reset("", "pcntl_signal(SIGUSR1, function () {})", shown);
    assert_reset(
        "pcntl_async_signals(true); pcntl_signal(SIGUSR1, function () {});",
        "pcntl_async_signals(false); pcntl_signal(SIGUSR1, SIG_IGN); pcntl_signal(SIGTERM, SIG_IGN)",
        shown,
    );
    assert_reset(
        "",
        "pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1])",
        "(function () { pcntl_sigprocmask(SIG_UNBLOCK, [SIGCONT], $old); return $old; })()",
    );
    assert_reset(
        "",
        "posix_setrlimit(POSIX_RLIMIT_NOFILE, 100, posix_getrlimit()['hard openfiles'])",
        "posix_getrlimit()['soft openfiles']",
    );
    let mut app = ScriptWorker::serving(
        "if ($at === 'set') { pcntl_alarm(100); return 'set'; } return (string) pcntl_alarm(0);",
    );
    assert_eq!((app.get("set"), app.get("a")), ("set".into(), "0".into()));
}

#[test]
fn a_handler_of_the_boot_is_called_in_every_request() {
    let mut app = ScriptWorker::new(&format!(
        "pcntl_async_signals(true); pcntl_signal(SIGUSR1, function () {{ $GLOBALS['came'] = ($GLOBALS['came'] ?? 0) + 1; }}); {}",
        serve(
            "if ($at === 'other') { pcntl_signal(SIGUSR1, SIG_IGN); } posix_kill(getmypid(), SIGUSR1); return (string) ($GLOBALS['came'] ?? 0);"
        )
    ));
    assert_eq!(
        (app.get("a"), app.get("other"), app.get("b")),
        ("1".into(), "1".into(), "2".into())
    );
}

/// A worker's own timer and backtrace use signals.
#[test]
fn signals_are_reset_in_classic_mode() {
    let folder = TempDir::new();
    folder.write("set.php", "<?php foreach ([SIGVTALRM, SIGTERM, SIGUSR2, SIGALRM] as $s) pcntl_signal($s, fn () => 1); pcntl_alarm(100); echo 'set';");
    folder.write("show.php", "<?php preg_match('/SigCgt:\\s*(\\w+)/', file_get_contents('/proc/self/status'), $m); echo $m[1], ' ', pcntl_alarm(0);");
    let mut host = Host::new();
    let mut worker = host.fork();
    let before = finished(&worker.request(&get("show.php").root(&folder.0)));
    assert_eq!(finished(&worker.request(&get("set.php").root(&folder.0))), "set");
    assert_eq!(finished(&worker.request(&get("show.php").root(&folder.0))), before);
}

#[test]
fn a_permanent_change_ends_the_worker() {
    let change = "posix_setrlimit(POSIX_RLIMIT_CORE, 0, 0) && posix_setsid() > 0";
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let change = format!("{change}; chroot('/')");
    let folder = TempDir::new();
    folder.write("a.php", &format!("<?php {change}; echo 'done';"));
    let mut host = Host::new();
    assert!(host.fork().request(&get("a.php").root(&folder.0)).done.leaving);
    let mut app =
        ScriptWorker::serving(&format!("if ($at === 'a') {{ {change}; }} return 'done';"));
    assert!(!app.request("b").done.leaving);
    assert!(app.request("a").done.leaving);
    assert_eq!(app.wait_for_exit(), Some(0));
}

/// What a row of the guide's table is about: code that changes it, and a probe; and the extension that has it.
const LIBRARIES: &[(&str, &str, &str, &str)] = &[
    ("textdomain()", "gettext", "textdomain('theirs')", "textdomain(null)"),
    (
        "openssl_error_string()",
        "openssl",
        "@openssl_pkey_get_private('none')",
        "openssl_error_string()",
    ),
    (
        "readline_add_history()",
        "readline",
        "readline_add_history('SECRET')",
        "function_exists('readline_list_history') ? readline_list_history() : 0",
    ),
    (
        "mysqli_report()",
        "mysqli",
        "$driver = new mysqli_driver; $driver->report_mode = MYSQLI_REPORT_ALL",
        "(new mysqli_driver)->report_mode",
    ),
    ("Locale::setDefault()", "intl", "Locale::setDefault('ja_JP')", "Locale::getDefault()"),
    (
        "intl_get_error_code()",
        "intl",
        "@intltz_create_time_zone_id_enumeration(99)",
        "intl_get_error_code()",
    ),
    (
        "mb_ereg_search_init()",
        "mbstring",
        "mb_ereg_search_init('SECRET'); mb_ereg_search_setpos(3)",
        "(function () { try { return mb_ereg_search_getpos(); } catch (Error) { return null; } })()",
    ),
    (
        "bindtextdomain()",
        "gettext",
        "bindtextdomain('theirs', '/tmp')",
        "bindtextdomain('theirs', null)",
    ),
    (
        "ldap_set_option(null, …)",
        "ldap",
        "ldap_set_option(null, LDAP_OPT_TIMELIMIT, 17)",
        "ldap_get_option(ldap_connect('ldap://127.0.0.1'), LDAP_OPT_TIMELIMIT, $v) ? $v : null",
    ),
    (
        "spl_autoload_register()",
        "spl",
        "spl_autoload_register(fn () => null)",
        "count(spl_autoload_functions())",
    ),
    ("define()", "core", "defined('THEIRS') || define('THEIRS', 1)", "defined('THEIRS')"),
    (
        "eval()",
        "core",
        "class_exists('Theirs') || eval('class Theirs {}')",
        "class_exists('Theirs')",
    ),
    ("Closure", "core", "Outboard_n(1)", "Outboard_n(0)"),
    (
        "gc_status()",
        "core",
        "$a = []; $a[] = &$a; unset($a); gc_collect_cycles()",
        "gc_status()['collected'] > 0",
    ),
    ("json_last_error()", "json", "json_decode('{')", "json_last_error()"),
    (
        "preg_last_error()",
        "pcre",
        "@preg_match('/(?:\\D+|<\\d+>)*[!?]/', 'foobar foobar foobar')",
        "preg_last_error()",
    ),
];

#[test]
fn the_guide_says_which_settings_of_libraries_are_reset() {
    let guide = std::fs::read_to_string("../../../docs/guide/clean-requests.md").unwrap();
    let table = guide.split("| set by |").nth(1).expect("the table is in the guide");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), LIBRARIES.len());
    let mut wrong = Vec::new();
    for (row, (name, extension, change, probe)) in rows.iter().zip(LIBRARIES) {
        assert!(row.starts_with(&format!("| `{name}`")), "{row} is not about {name}");
        let code = serve(&format!(
            "if (!extension_loaded('{extension}')) return 'none';
             $before = json_encode({probe}); if ($at === 'change') {{ {change}; }} return $before;"
        ));
        let mut app = ScriptWorker::new(&format!(
            "function Outboard_n($add) {{ static $n = 0; return $n += $add; }} {code}"
        ));
        let before = app.get("probe");
        app.get("change");
        let is_reset = app.get("probe") == before;
        if before != "none" && is_reset != row.ends_with("| reset |") {
            wrong.push(*row);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
