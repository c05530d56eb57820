//! The end of a request in a fork is that of a script per request: the same file answers the same
//! bytes, logs the same lines and leaves the same files in classic mode and below a snapshot.

mod driver;

use driver::{Host, RequestSpec, Response, TempDir, finished, get, post, settings_of_worker};
use outboard_ring::control::{Event, HostSettings, Isolation};
use outboard_ring::response::Outcome;

/// For every script: `note()` writes a file that can be compared.
const BOOT: &str = r"<?php
    ini_set('session.save_path', __DIR__); ini_set('session.use_cookies', '0'); ini_set('session.cache_limiter', '');
    function note(string $line) { file_put_contents(__DIR__ . '/notes', $line . PHP_EOL, FILE_APPEND); }
    class Told { function __construct(public string $name, public mixed $other = null) {}
        function __destruct() { note('end of ' . $this->name); echo '<', $this->name, '>'; } }
    class Kept { static $one; }
";

fn settings(folder: &TempDir, isolation: Option<Isolation>) -> HostSettings {
    let mut settings = settings_of_worker(folder.0.join("worker.php"));
    match isolation {
        Some(isolation) => settings.worker.as_mut().unwrap().isolation = isolation,
        None => settings.worker = None,
    }
    settings
}

/// What others can notice of a request: its answer, its log and what it left.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    body: String,
    outcome: Outcome,
    logs: String,
    notes: String,
    files: Vec<String>,
}

fn seen(folder: &TempDir, response: &Response) -> Seen {
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
    Seen {
        status: response.status,
        body: response.text(),
        outcome: response.done.outcome,
        logs,
        notes,
        files,
    }
}

fn classic(folder: &TempDir, request: &RequestSpec) -> Seen {
    let mut host = Host::with(settings(folder, None));
    seen(folder, &host.fork().request(request))
}

fn fork(folder: &TempDir, request: &RequestSpec) -> Seen {
    let mut host = Host::with(settings(folder, Some(Isolation::Fork)));
    let mut worker = host.fork();
    let response = worker.request(request);
    assert!(matches!(host.event(), Event::Exited { code: Some(0), .. }), "{response:?}");
    seen(folder, &response)
}

/// Runs the code in both modes, the boot before the snapshot; what is seen, which is the same.
#[track_caller]
fn same_with(boot: &str, code: &str, change: impl Fn(RequestSpec) -> RequestSpec) -> Seen {
    let folder = TempDir::new();
    folder.write("worker.php", &format!("{BOOT} {boot} Outboard\\snapshot(); {code}"));
    let request = change(get("worker.php").root(&folder.0));
    let expected = classic(&folder, &request);
    assert_eq!(fork(&folder, &request), expected, "{boot} {code}");
    expected
}

#[track_caller]
fn same(boot: &str, code: &str) -> Seen {
    same_with(boot, code, |request| request)
}

#[test]
fn destructors_run_and_their_output_is_in_the_answer() {
    let seen = same(
        "",
        "$a = new Told('a'); $b = new Told('b'); Kept::$one = new Told('static'); echo 'page';",
    );
    assert_eq!(seen.body, "page<b><a><static>");
    assert_eq!(seen.notes, "end of b\nend of a\nend of static\n");
    same(
        "",
        "$a = new Told('a'); $b = new Told('b', $a); $a->other = $b; unset($a, $b); echo 'cycle';",
    );
    same(
        "",
        "function f() { static $s; $s = new Told('s'); } f(); const C = new Told('constant'); echo 'page';",
    );
    same(
        "",
        "$c = function () { static $x; $x = new Told('in a closure'); }; $c(); $d = [new Told('in an array')];",
    );
}

#[test]
fn what_the_boot_has_made_is_destructed_as_well() {
    same(
        "$a = new Told('boot'); Kept::$one = new Told('static of the boot');",
        "$b = new Told('request'); echo 'page';",
    );
    same("$a = new Told('boot');", "unset($a); echo 'gone already';");
    same("$all = new SplObjectStorage; $all->attach(new Told('in a storage'));", "echo 'page';");
}

#[test]
fn suspended_generators_and_fibers_come_to_their_finally() {
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
        same("", "ob_start(fn ($all) => strtoupper($all)); $a = new Told('a'); echo 'page';");
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
        "$a = new Told('a');
         register_shutdown_function(function () { echo 'one '; register_shutdown_function(function () { echo 'nested '; }); });
         register_shutdown_function(function () { echo 'two '; });",
    );
    same(
        "",
        "register_shutdown_function(function () { echo 'one '; exit; }); register_shutdown_function(function () { echo 'never'; }); $a = new Told('a');",
    );
    same(
        "",
        "register_shutdown_function(function () { throw new Exception('in shutdown'); }); $a = new Told('a'); echo 'page';",
    );
    same(
        "",
        "class R { function __destruct() { register_shutdown_function(function () { echo 'late'; }); } } $r = new R;",
    );
    same(
        "",
        "$told = new Told('held'); register_shutdown_function(function () use ($told) { echo 'has it '; }); unset($told);",
    );
}

#[test]
fn after_a_failure_what_php_does_is_done() {
    for failure in [
        "exit(3);",
        "exit('bye');",
        "exit(255);",
        "throw new Exception('a bug');",
        "undefined();",
        "str_repeat('x', 1 << 30);",
        "function deep() { deep(); } ini_set('memory_limit', '8M'); deep();",
        "trigger_error('on purpose', E_USER_ERROR);",
        "eval('if (');",
        "include 'missing.php'; require 'missing.php';",
    ] {
        same("", &format!(
            "$a = new Told('a'); register_shutdown_function(function () {{ echo 'shutdown '; note('shutdown'); }});
             $g = (function () {{ try {{ yield 1; }} finally {{ note('finally'); }} }})(); $g->current(); {failure}"
        ));
    }
    same(
        "",
        "class E { function __destruct() { throw new Exception('in a destructor'); } } $e = new E; $a = new Told('a');",
    );
    same(
        "",
        "class E { function __destruct() { exit('left'); } } $a = new Told('a'); $e = new E; Kept::$one = new Told('static');",
    );
    same(
        "",
        "class M { function __destruct() { str_repeat('x', 1 << 30); } } $e = new M; Kept::$one = new Told('static');",
    );
    same(
        "",
        "set_exception_handler(function ($e) { echo 'handled ', $e->getMessage(); }); $a = new Told('a'); throw new Exception('it');",
    );
    same(
        "",
        "set_error_handler(function ($n, $m) { echo \"[$m]\"; return true; }); class W { function __destruct() { echo $undefined; } } $w = new W;",
    );
}

#[test]
fn the_session_has_what_destructors_write() {
    let seen = same(
        "",
        "session_id('abc'); session_start(); $_SESSION['a'] = 1;
        class S { function __destruct() { $_SESSION['b'] = 2; } } $s = new S; echo 'page';",
    );
    assert_eq!(seen.files, ["sess_abc: a|i:1;b|i:2;"]);
    same("", "class Handler extends SessionHandler { function write($id, $data): bool { note(\"write $data\"); return true; }
            function read($id): string { return ''; } function open($p, $n): bool { return true; }
            function close(): bool { note('close'); return true; } }
        session_set_save_handler(new Handler, true); session_start(); $_SESSION['a'] = 1; $told = new Told('a');");
    same("", "session_set_save_handler(new class extends SessionHandler { function write($id, $data): bool { note(\"write $data\"); return true; } }, false);
        session_id('abc'); session_start(); $_SESSION['a'] = 1;");
}

#[test]
fn what_the_request_has_opened_is_closed() {
    same("", "$t = tmpfile(); note('made ' . (int) is_file($name = stream_get_meta_data($t)['uri']));
        register_shutdown_function(function () use ($name) { note('there ' . (int) is_file($name)); });");
    let seen = same(
        "",
        "$z = new XMLWriter; $z->openUri(__DIR__ . '/out.xml'); $z->startElement('a'); $z->text('b'); $z->endElement();",
    );
    assert_eq!(seen.files, ["out.xml: <a>b</a>"]);
    same("", "class Wrapper { public $context; function stream_open() { return true; } function stream_write($d) { note(\"wrote $d\"); return strlen($d); }
            function stream_close() { note('closed'); } function stream_flush() { note('flushed'); return true; } }
        stream_wrapper_register('told', Wrapper::class); $f = fopen('told://x', 'w'); fwrite($f, 'data');");
    same("", "$p = popen('cat >> ' . __DIR__ . '/piped', 'w'); fwrite($p, 'through a pipe');");
    same("", "$db = new PDO('sqlite:' . __DIR__ . '/db'); $db->exec('CREATE TABLE t (n)'); $db->beginTransaction(); $db->exec('INSERT INTO t VALUES (1)');
        class C { function __construct(public $db) {} function __destruct() { $this->db->commit(); note((new PDO('sqlite:' . __DIR__ . '/db'))->query('SELECT count(*) FROM t')->fetchColumn()); } }
        $c = new C($db);");
}

#[test]
fn a_temporary_file_is_gone() {
    let folder = TempDir::new();
    folder.write(
        "worker.php",
        "<?php Outboard\\snapshot(); $t = tmpfile(); echo stream_get_meta_data($t)['uri'];",
    );
    let seen = fork(&folder, &get("worker.php").root(&folder.0));
    assert!(seen.body.starts_with('/') && !std::path::Path::new(&seen.body).exists(), "{seen:?}");
}

#[test]
fn an_uploaded_file_that_was_not_moved_is_gone() {
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
fn what_the_boot_has_opened_stays_open_for_every_fork() {
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
fn work_after_the_answer_finds_its_objects_alive() {
    let folder = TempDir::new();
    folder.write(
        "worker.php",
        &format!(
            "{BOOT} Outboard\\snapshot(); $a = new Told('a');
        Outboard\\defer(function () use ($a) {{ note('deferred'); }}); echo 'page';"
        ),
    );
    let seen = fork(&folder, &get("worker.php").root(&folder.0));
    assert_eq!((seen.body.as_str(), seen.notes.as_str()), ("page", "deferred\nend of a\n"));
}

#[test]
fn a_coroutine_that_nobody_waits_for_comes_to_its_end() {
    let folder = TempDir::new();
    folder.write(
        "worker.php",
        &format!(
            "{BOOT} Outboard\\snapshot(); $a = new Told('a');
        Outboard\\spawn(function () {{ Outboard\\sleep(0.01); note('spawned'); }}); echo 'page';"
        ),
    );
    let seen = fork(&folder, &get("worker.php").root(&folder.0));
    assert_eq!((seen.body.as_str(), seen.notes.as_str()), ("page", "spawned\nend of a\n"));
}

#[test]
fn a_script_that_asks_for_requests_ends_after_its_answer() {
    for asking in [
        "Outboard\\serve(function () use (&$in) { $in = new Told('in'); return 'page'; });",
        "while (Outboard\\handle_request(function () { $GLOBALS['in'] = new Told('in'); echo 'page'; })) { note('after'); }",
    ] {
        let folder = TempDir::new();
        folder.write("worker.php", &format!("{BOOT} $a = new Told('boot'); {asking}"));
        let seen = fork(&folder, &get("worker.php").root(&folder.0));
        assert_eq!(seen.body, "page");
        assert!(
            seen.notes.contains("end of in\n") && seen.notes.contains("end of boot\n"),
            "{seen:?}"
        );
    }
}
