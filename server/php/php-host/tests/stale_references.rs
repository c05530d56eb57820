//! References to a request that an application stores in a global and uses in a later request: they
//! must not affect it.

mod driver;

use driver::{ScriptWorker, finished, get, post};

const JSON: &str = "application/json";

/// A worker with this concurrency. A request of `/keep` runs `keep`, others run `later`; both share
/// `$k`.
fn app_with(concurrency: u32, keep: &str, later: &str) -> ScriptWorker {
    ScriptWorker::concurrent(
        concurrency,
        &format!(
            "$k = null; while (Outboard\\handle_request(function () {{
                global $k; if ($_SERVER['REQUEST_URI'] === '/keep') {{ {keep} }} else {{ {later} }} }}));"
        ),
    )
}

fn body_of(name: u8, len: usize) -> Vec<u8> {
    vec![name; len]
}

#[test]
fn a_handle_of_a_body_ends_with_its_request() {
    for (open, read) in [
        ("$k = fopen('php://input', 'r'); fread($k, 10);", "fread($k, 100000)"),
        ("$k = fopen('php://input', 'r'); fread($k, 10);", "stream_get_contents($k)"),
        ("$k = new SplFileObject('php://input'); $k->fread(10);", "$k->fread(100000)"),
        (
            "$k = fopen('php://filter/read=string.toupper/resource=php://input', 'r'); fread($k, 10);",
            "fread($k, 100000)",
        ),
    ] {
        for concurrency in [1, 20] {
            let mut app = app_with(concurrency, open, &format!("echo 'read:', {read};"));
            for _ in 0..2 {
                app.worker.request(&post("keep", JSON, body_of(b'A', 100_000)));
                assert_eq!(app.get("a"), "read:", "{open}");
                let other = finished(&app.worker.request(&post("a", JSON, body_of(b'B', 100_000))));
                assert_eq!(other, "read:", "{open}");
            }
        }
    }
}

#[test]
fn a_stale_handle_does_not_affect_the_next_body() {
    let later = "echo strlen(file_get_contents('php://input')), feof($k) ? ' ended' : '';";
    let mut app = app_with(1, "$k = fopen('php://input', 'r'); fread($k, 10);", later);
    app.worker.request(&post("keep", JSON, body_of(b'A', 100_000)));
    assert_eq!(
        finished(&app.worker.request(&post("a", JSON, body_of(b'B', 70_000)))),
        "70000 ended"
    );
}

#[test]
fn a_setting_changed_by_another_request_is_not_freed() {
    let code = "while (Outboard\\handle_request(function () {
        $n = $_GET['n']; ini_set('default_mimetype', 'text/' . str_repeat(\"x$n\", 20));
        Outboard\\sleep(0.002 * $n); $room = [];
        for ($i = 0; $i < 64; $i++) { $room[] = str_repeat('*', 20 + $i) . $n; }
        echo $n;
    }));";
    let mut app = ScriptWorker::concurrent(4, code);
    let requests: Vec<_> = (1..5).map(|n| get("a").query(&format!("n={n}"))).collect();
    for (place, response) in app.worker.request_all(&requests) {
        let own = format!("text/{}; charset=UTF-8", format!("x{}", place + 1).repeat(20));
        assert_eq!(response.line("Content-Type"), Some(own.as_str()), "{response:?}");
    }
}

#[test]
fn a_sort_that_waits_uses_its_own_comparison() {
    let code = "while (Outboard\\handle_request(function () {
        $n = (int) $_GET['n']; $a = range(1, 7); shuffle($a);
        usort($a, function ($x, $y) use ($n) {
            Outboard\\sleep(0.0002 * $n); return $n % 2 ? $x <=> $y : $y <=> $x;
        });
        echo implode($a);
    }));";
    let mut app = ScriptWorker::concurrent(4, code);
    let requests: Vec<_> = (1..5).map(|n| get("a").query(&format!("n={n}"))).collect();
    for (place, response) in app.worker.request_all(&requests) {
        let sorted = if place % 2 == 0 { "1234567" } else { "7654321" };
        assert_eq!(finished(&response), sorted);
    }
}

#[test]
fn strtok_state_belongs_to_one_request() {
    let code = "while (Outboard\\handle_request(function () {
        $n = $_GET['n']; $before = strtok(' '); strtok(\"a$n b$n\", ' '); Outboard\\sleep(0.001);
        echo json_encode([$before, strtok(' ')]);
    }));";
    let mut app = ScriptWorker::concurrent(4, code);
    for _ in 0..2 {
        let requests: Vec<_> = (0..4).map(|n| get("a").query(&format!("n={n}"))).collect();
        for (place, response) in app.worker.request_all(&requests) {
            assert_eq!(finished(&response), format!("[false,\"b{place}\"]"));
        }
    }
}

#[test]
fn tick_functions_end_with_their_request() {
    let mut app = app_with(
        1,
        "register_tick_function(function () { echo 'theirs'; });",
        "eval('declare(ticks=1); $x = 1;'); echo 'end';",
    );
    app.get("keep");
    assert_eq!(app.get("a"), "end");
}

#[test]
fn the_stat_cache_is_cleared_for_each_request() {
    let mut app = app_with(1, "", "echo filesize(__DIR__ . '/looked_at');");
    app.folder.write("looked_at", "1");
    assert_eq!(app.get("a"), "1");
    app.folder.write("looked_at", "12");
    assert_eq!(app.get("a"), "2");
}

#[test]
fn compression_is_negotiated_with_each_client() {
    let code = "while (Outboard\\handle_request(function () {
        ob_start('ob_gzhandler'); echo 'text'; Outboard\\sleep(0.001); }));";
    let mut app = ScriptWorker::concurrent(2, code);
    for accepted in ["gzip", "", "deflate", "gzip"] {
        let request = get("a").header("Accept-Encoding", accepted);
        for (_, response) in
            app.worker.request_all(&[request, get("a")]).into_iter().filter(|(n, _)| *n == 0)
        {
            assert_eq!(response.line("Content-Encoding").unwrap_or(""), accepted, "{response:?}");
        }
    }
}

#[test]
fn compression_by_the_ini_file_applies_to_every_request() {
    let code = "while (Outboard\\handle_request(function () { echo 'text'; }));";
    let mut app = ScriptWorker::with(code, |settings| {
        settings.ini.extend(driver::ini(&[("zlib.output_compression", "1")]));
    });
    for accepted in ["gzip", "", "gzip"] {
        let response = app.worker.request(&get("a").header("Accept-Encoding", accepted));
        assert_eq!(response.line("Content-Encoding").unwrap_or(""), accepted, "{response:?}");
    }
}
