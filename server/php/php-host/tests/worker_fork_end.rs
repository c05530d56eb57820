//! The end of a request in a fork equals that of classic mode: the same file has the same response,
//! log and files in both.

mod driver;

use driver::{Host, RequestSpec, Response, TempDir, finished, get, post, settings_of_worker};
use outboard_ring::control::{Event, HostSettings, Isolation};
use outboard_ring::response::Outcome;

/// For every script: `note()` appends to a file that is compared.
const BOOT: &str = r"<?php
    ini_set('session.save_path', __DIR__); ini_set('session.use_cookies', '0'); ini_set('session.cache_limiter', '');
    function note(string $line) { file_put_contents(__DIR__ . '/notes', $line . PHP_EOL, FILE_APPEND); }
    class Recorded { function __construct(public string $name, public mixed $other = null) {}
        function __destruct() { note('end of ' . $this->name); echo '<', $this->name, '>'; } }
    class Stored { static $one; }
";

fn settings(folder: &TempDir, isolation: Option<Isolation>) -> HostSettings {
    let mut settings = settings_of_worker(folder.0.join("worker.php"));
    match isolation {
        Some(isolation) => settings.worker.as_mut().unwrap().isolation = isolation,
        None => settings.worker = None,
    }
    settings
}

/// The observable effects of a request: response, log and files.
#[derive(Debug, PartialEq)]
struct Effects {
    status: u16,
    body: String,
    outcome: Outcome,
    logs: String,
    notes: String,
    files: Vec<String>,
}

fn effects(folder: &TempDir, response: &Response) -> Effects {
    let take = |name: &str| {
        let path = folder.0.join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        text
    };
    let notes = take("notes");
    let mut files: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "worker.php")
        .map(|name| format!("{name}: {}", take(&name)))
        .collect();
    files.sort();
    let logs = response.log_text().replace(folder.0.to_str().unwrap(), "");
    Effects {
        status: response.status,
        body: response.text(),
        outcome: response.done.outcome,
        logs,
        notes,
        files,
    }
}

fn classic(folder: &TempDir, request: &RequestSpec) -> Effects {
    let mut host = Host::with(settings(folder, None));
    effects(folder, &host.fork().request(request))
}

fn fork(folder: &TempDir, request: &RequestSpec) -> Effects {
    let mut host = Host::with(settings(folder, Some(Isolation::Fork)));
    let mut worker = host.fork();
    let response = worker.request(request);
    assert!(matches!(host.event(), Event::Exited { code: Some(0), .. }), "{response:?}");
    effects(folder, &response)
}

/// Runs the code in both modes, the boot before the snapshot; asserts equal effects and returns
/// them.
#[track_caller]
fn same_with(boot: &str, code: &str, change: impl Fn(RequestSpec) -> RequestSpec) -> Effects {
    let folder = TempDir::new();
    folder.write("worker.php", &format!("{BOOT} {boot} Outboard\\snapshot(); {code}"));
    let request = change(get("worker.php").root(&folder.0));
    let expected = classic(&folder, &request);
    assert_eq!(fork(&folder, &request), expected, "{boot} {code}");
    expected
}

#[track_caller]
fn same(boot: &str, code: &str) -> Effects {
    same_with(boot, code, |request| request)
}

#[test]
fn output_of_destructors_is_in_the_response() {
    let seen = same(
        "",
        "$a = new Recorded('a'); $b = new Recorded('b'); Stored::$one = new Recorded('static'); echo 'page';",
    );
    assert_eq!(seen.body, "page<b><a><static>");
    assert_eq!(seen.notes, "end of b\nend of a\nend of static\n");
    same(
        "",
        "$a = new Recorded('a'); $b = new Recorded('b', $a); $a->other = $b; unset($a, $b); echo 'cycle';",
    );
    same(
        "",
        "function f() { static $s; $s = new Recorded('s'); } f(); const C = new Recorded('constant'); echo 'page';",
    );
    same(
        "",
        "$c = function () { static $x; $x = new Recorded('in a closure'); }; $c(); $d = [new Recorded('in an array')];",
    );
}

#[test]
fn objects_of_the_boot_are_destructed() {
    same(
        "$a = new Recorded('boot'); Stored::$one = new Recorded('static of the boot');",
        "$b = new Recorded('request'); echo 'page';",
    );
    same("$a = new Recorded('boot');", "unset($a); echo 'gone already';");
    same(
        "$all = new SplObjectStorage; $all->attach(new Recorded('in a storage'));",
        "echo 'page';",
    );
}

#[test]
fn suspended_generators_and_fibers_run_finally() {
    let generator =
        "function g(string $n) { try { yield 1; } finally { note('finally of ' . $n); echo $n; } }";
    same(generator, "$g = g('generator'); $g->current();");
    same(&format!("{generator} $g = g('of the boot'); $g->current();"), "echo 'page';");
    same(
        "",
        "$f = new Fiber(function () { try { Fiber::suspend(); } finally { note('finally'); echo 'fiber'; } }); $f->start();",
    );
    same(
        "$f = new Fiber(function () { try { Fiber::suspend(); } finally { echo 'fiber of the boot'; } }); $f->start();",
        "echo 'page';",
    );
}

#[test]
fn output_buffers_end_after_destructors() {
    let seen =
        same("", "ob_start(fn ($all) => strtoupper($all)); $a = new Recorded('a'); echo 'page';");
    assert_eq!(seen.body, "PAGE<A>");
    same(
        "",
        "ob_start(); ob_start(function ($all) { note('callback'); return \"[$all]\"; }); echo 'inner';",
    );
    same("", "ob_start(function ($all) { throw new Exception('in a callback'); }); echo 'page';");
    same(
        "",
        "class B { function __destruct() { ob_start(fn ($x) => strrev($x)); echo 'abc'; } } $b = new B;",
    );
    same(
        "",
        "class H { function __destruct() { header('X-Late: 1'); http_response_code(418); } } $h = new H;",
    );
}

#[test]
fn shutdown_functions_come_first_and_in_order() {
    same(
        "register_shutdown_function(function () { echo 'of the boot '; });",
        "$a = new Recorded('a');
         register_shutdown_function(function () { echo 'one '; register_shutdown_function(function () { echo 'nested '; }); });
         register_shutdown_function(function () { echo 'two '; });",
    );
    same(
        "",
        "register_shutdown_function(function () { echo 'one '; exit; }); register_shutdown_function(function () { echo 'never'; }); $a = new Recorded('a');",
    );
    same(
        "",
        "register_shutdown_function(function () { throw new Exception('in shutdown'); }); $a = new Recorded('a'); echo 'page';",
    );
    same(
        "",
        "class R { function __destruct() { register_shutdown_function(function () { echo 'late'; }); } } $r = new R;",
    );
    same(
        "",
        "$recorded = new Recorded('held'); register_shutdown_function(function () use ($recorded) { echo 'has it '; }); unset($recorded);",
    );
}

#[test]
fn after_a_failure_the_request_ends_as_in_classic_mode() {
    for failure in [
        "exit(3);",
        "exit('bye');",
        "exit(255);",
        "throw new Exception('a bug');",
        "undefined();",
        "str_repeat('x', 1 << 30);",
        // Since PHP 8.5 a fatal error has a backtrace, whose length is the memory's.
        "ini_set('fatal_error_backtraces', '0'); function deep() { deep(); } ini_set('memory_limit', '8M'); deep();",
        "trigger_error('on purpose', E_USER_ERROR);",
        "eval('if (');",
        "include 'missing.php'; require 'missing.php';",
    ] {
        same("", &format!(
            "$a = new Recorded('a'); register_shutdown_function(function () {{ echo 'shutdown '; note('shutdown'); }});
             $g = (function () {{ try {{ yield 1; }} finally {{ note('finally'); }} }})(); $g->current(); {failure}"
        ));
    }
    same(
        "",
        "class E { function __destruct() { throw new Exception('in a destructor'); } } $e = new E; $a = new Recorded('a');",
    );
    same(
        "",
        "class E { function __destruct() { exit('left'); } } $a = new Recorded('a'); $e = new E; Stored::$one = new Recorded('static');",
    );
    same(
        "",
        "class M { function __destruct() { str_repeat('x', 1 << 30); } } $e = new M; Stored::$one = new Recorded('static');",
    );
    same(
        "",
        "set_exception_handler(function ($e) { echo 'handled ', $e->getMessage(); }); $a = new Recorded('a'); throw new Exception('it');",
    );
    same(
        "",
        "set_error_handler(function ($n, $m) { echo \"[$m]\"; return true; }); class W { function __destruct() { echo $undefined; } } $w = new W;",
    );
}

#[test]
fn the_session_has_values_of_destructors() {
    let seen = same(
        "",
        "session_id('abc'); session_start(); $_SESSION['a'] = 1;
        class S { function __destruct() { $_SESSION['b'] = 2; } } $s = new S; echo 'page';",
    );
    assert_eq!(seen.files, ["sess_abc: a|i:1;b|i:2;"]);
    same("", "class Handler extends SessionHandler { function write($id, $data): bool { note(\"write $data\"); return true; }
            function read($id): string { return ''; } function open($p, $n): bool { return true; }
            function close(): bool { note('close'); return true; } }
        session_set_save_handler(new Handler, true); session_start(); $_SESSION['a'] = 1; $recorded = new Recorded('a');");
    same("", "session_set_save_handler(new class extends SessionHandler { function write($id, $data): bool { note(\"write $data\"); return true; } }, false);
        session_id('abc'); session_start(); $_SESSION['a'] = 1;");
}

#[test]
fn resources_of_the_request_are_closed() {
    same("", "$t = tmpfile(); note('made ' . (int) is_file($name = stream_get_meta_data($t)['uri']));
        register_shutdown_function(function () use ($name) { note('there ' . (int) is_file($name)); });");
    let seen = same(
        "",
        "$z = new XMLWriter; $z->openUri(__DIR__ . '/out.xml'); $z->startElement('a'); $z->text('b'); $z->endElement();",
    );
    assert_eq!(seen.files, ["out.xml: <a>b</a>"]);
    same("", "class Wrapper { public $context; function stream_open() { return true; } function stream_write($d) { note(\"wrote $d\"); return strlen($d); }
            function stream_close() { note('closed'); } function stream_flush() { note('flushed'); return true; } }
        stream_wrapper_register('recording', Wrapper::class); $f = fopen('recording://x', 'w'); fwrite($f, 'data');");
    same("", "$p = popen('cat >> ' . __DIR__ . '/piped', 'w'); fwrite($p, 'through a pipe');");
    same("", "$db = new PDO('sqlite:' . __DIR__ . '/db'); $db->exec('CREATE TABLE t (n)'); $db->beginTransaction(); $db->exec('INSERT INTO t VALUES (1)');
        class C { function __construct(public $db) {} function __destruct() { $this->db->commit(); note((new PDO('sqlite:' . __DIR__ . '/db'))->query('SELECT count(*) FROM t')->fetchColumn()); } }
        $c = new C($db);");
}

#[test]
fn a_temporary_file_is_removed() {
    let folder = TempDir::new();
    folder.write(
        "worker.php",
        "<?php Outboard\\snapshot(); $t = tmpfile(); echo stream_get_meta_data($t)['uri'];",
    );
    let seen = fork(&folder, &get("worker.php").root(&folder.0));
    assert!(seen.body.starts_with('/') && !std::path::Path::new(&seen.body).exists(), "{seen:?}");
}

#[test]
fn an_uploaded_file_that_was_not_moved_is_removed() {
    let folder = TempDir::new();
    folder.write("worker.php", "<?php Outboard\\snapshot(); echo $_FILES['f']['tmp_name'], '|', (int) is_file($_FILES['f']['tmp_name']);");
    let form = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\ntext\r\n--b--\r\n";
    let request = post("worker.php", "multipart/form-data; boundary=b", form).root(&folder.0);
    let seen = fork(&folder, &request);
    let (name, was_there) = seen.body.split_once('|').unwrap();
    assert_eq!(was_there, "1", "{seen:?}");
    assert!(!std::path::Path::new(name).exists(), "{name}");
}

#[test]
fn resources_of_the_boot_stay_open_for_every_fork() {
    let folder = TempDir::new();
    folder.write("worker.php", "<?php $t = tmpfile(); $spl = new SplTempFileObject(1); $log = new SplFileObject('php://memory', 'w+');
        $kept = new class($log) { function __construct(public $log) {} }; unset($log);
        Outboard\\snapshot(); fwrite($t, 'x'); $kept->log->fwrite('y'); echo (int) is_file(stream_get_meta_data($t)['uri']);");
    let mut host = Host::with(settings(&folder, Some(Isolation::Fork)));
    for _ in 0..3 {
        let mut worker = host.fork();
        assert_eq!(finished(&worker.request(&get("worker.php").root(&folder.0))), "1");
        host.event();
    }
}

#[test]
fn work_after_the_response_finds_its_objects_alive() {
    let folder = TempDir::new();
    folder.write(
        "worker.php",
        &format!(
            "{BOOT} Outboard\\snapshot(); $a = new Recorded('a');
        Outboard\\defer(function () use ($a) {{ note('deferred'); }}); echo 'page';"
        ),
    );
    let seen = fork(&folder, &get("worker.php").root(&folder.0));
    assert_eq!((seen.body.as_str(), seen.notes.as_str()), ("page", "deferred\nend of a\n"));
}

#[test]
fn an_unawaited_coroutine_completes() {
    let folder = TempDir::new();
    folder.write(
        "worker.php",
        &format!(
            "{BOOT} Outboard\\snapshot(); $a = new Recorded('a');
        Outboard\\spawn(function () {{ Outboard\\sleep(0.01); note('spawned'); }}); echo 'page';"
        ),
    );
    let seen = fork(&folder, &get("worker.php").root(&folder.0));
    assert_eq!((seen.body.as_str(), seen.notes.as_str()), ("page", "spawned\nend of a\n"));
}

#[test]
fn a_handle_request_script_ends_after_its_response() {
    for asking in [
        "Outboard\\serve(function () use (&$in) { $in = new Recorded('in'); return 'page'; });",
        "while (Outboard\\handle_request(function () { $GLOBALS['in'] = new Recorded('in'); echo 'page'; })) { note('after'); }",
    ] {
        let folder = TempDir::new();
        folder.write("worker.php", &format!("{BOOT} $a = new Recorded('boot'); {asking}"));
        let seen = fork(&folder, &get("worker.php").root(&folder.0));
        assert_eq!(seen.body, "page");
        assert!(
            seen.notes.contains("end of in\n") && seen.notes.contains("end of boot\n"),
            "{seen:?}"
        );
    }
}
