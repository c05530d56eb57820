//! Several requests in one worker: each has its own superglobals, headers, buffers and handlers.

mod driver;

use driver::{Response, ScriptWorker, eventually, get, serve};
use outboard_ring::response::Outcome;

/// Requests in flight meet here: `meet` waits until `n` have come.
const MEET: &str = r#"
    $come = [];
    function meet(string $where, int $n): void {
        $GLOBALS['come'][$where] = ($GLOBALS['come'][$where] ?? 0) + 1;
        while ($GLOBALS['come'][$where] < $n) { Outboard\sleep(0.0005); }
    }"#;

/// Sends eight requests at once, `/0?n=0` to `/7?n=7`, to a handler with this body, which may
/// `meet('name', 8)`; returns the responses in order of the requests.
fn eight(body: &str) -> Vec<Response> {
    let mut app = ScriptWorker::concurrent(8, &format!("{MEET} {}", serve(body)));
    let mut responses = Vec::new();
    // Twice: the first eight must not affect the second.
    for _ in 0..2 {
        let requests: Vec<_> = (0..8)
            .map(|n| get(&format!("{n}")).query(&format!("n={n}")).header("X-N", &format!("{n}")))
            .collect();
        responses = app.worker.request_all(&requests);
        responses.sort_by_key(|(place, _)| *place);
        app.request("reset?");
    }
    responses.into_iter().map(|(_, response)| response).collect()
}

#[track_caller]
fn each_gets_its_own(body: &str, expected: impl Fn(usize) -> String) {
    let body = format!("if ($at === 'reset?') {{ $GLOBALS['come'] = []; return ''; }} {body}");
    for (n, response) in eight(&body).iter().enumerate() {
        assert_eq!(response.text(), expected(n), "{response:?}");
        assert_eq!(response.done.outcome, Outcome::Finished);
    }
}

#[test]
fn each_request_has_its_superglobals() {
    each_gets_its_own(
        "$_SESSION = ['s' => $at]; $_GET['added'] = $at; meet('a', 8);
         $first = json_encode([$_GET, $_REQUEST, $_SERVER['REQUEST_URI'], $_SERVER['HTTP_X_N'], $_SESSION, getallheaders()['X-N']]);
         meet('b', 8); return $first;",
        |n| format!(r#"[{{"n":"{n}","added":"{n}"}},{{"n":"{n}"}},"\/{n}?n={n}","{n}",{{"s":"{n}"}},"{n}"]"#),
    );
}

#[test]
fn each_request_has_its_output_buffers() {
    each_gets_its_own(
        "echo 'a', $at; meet('a', 8); ob_start(fn ($text) => strrev($text)); echo 'bc'; meet('b', 8); ob_start(); echo 'd', $at; meet('c', 8);
         $inner = ob_get_clean(); meet('d', 8); ob_end_flush(); echo $inner, ob_get_level();",
        |n| format!("a{n}cbd{n}0"),
    );
}

#[test]
fn each_request_has_its_status_and_headers() {
    let body = "if ($at === 'reset?') { $GLOBALS['come'] = []; return ''; }
        http_response_code(200 + (int) $at); header(\"X-Mine: $at\"); setcookie('c', $at); meet('a', 8);
        header('X-More: ' . http_response_code()); meet('b', 8); header('Content-Type: text/x-' . $at); return (string) count(headers_list());";
    for (n, response) in eight(body).iter().enumerate() {
        let own = n.to_string();
        assert_eq!(usize::from(response.status), 200 + n);
        assert_eq!(response.line("X-Mine"), Some(own.as_str()));
        assert_eq!(response.line("X-More"), Some((200 + n).to_string().as_str()));
        assert_eq!(response.line("Set-Cookie"), Some(format!("c={n}").as_str()));
        assert!(response.line("Content-Type").unwrap().starts_with(&format!("text/x-{n}")));
        let mine = response.lines.iter().filter(|line| line.starts_with("X-Mine")).count();
        assert_eq!(mine, 1, "{response:?}");
    }
}

#[test]
fn each_request_has_its_error_handlers() {
    let body = "if ($at === 'reset?') { $GLOBALS['come'] = []; return ''; }
        set_error_handler(function ($level, $message) use ($at) { echo \"error of $at: $message. \"; return true; });
        set_exception_handler(function ($e) use ($at) { echo \"exception of $at: \", $e->getMessage(); });
        meet('a', 8); trigger_error(\"w$at\"); meet('b', 8); throw new Exception(\"e$at\");";
    for (n, response) in eight(body).iter().enumerate() {
        assert_eq!(response.text(), format!("error of {n}: w{n}. exception of {n}: e{n}"));
    }
}

#[test]
fn each_request_has_its_shutdown_functions() {
    each_gets_its_own(
        "register_shutdown_function(function () use ($at) { echo \" bye $at\"; });
         @trigger_error(\"last $at\"); meet('a', 8); echo error_get_last()['message']; meet('b', 8);",
        |n| format!("last {n} bye {n}"),
    );
}

#[test]
fn each_request_has_its_session() {
    let folder = driver::TempDir::new();
    let path = folder.0.display();
    each_gets_its_own(
        &format!(
            "ini_set('session.save_path', '{path}'); ini_set('session.use_strict_mode', '0'); session_id(\"s$at\"); session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; $_SESSION['who'] = $at; meet('a', 8);
             $id = session_id(); session_write_close(); meet('b', 8); return json_encode([$id, session_status(), $_SESSION['who']]);"
        ),
        |n| format!(r#"["s{n}",1,"{n}"]"#),
    );
}

#[test]
fn each_request_has_its_body_and_uploads() {
    let code = format!(
        "{MEET} {}",
        serve(
            "meet('a', 4); $body = file_get_contents('php://input'); meet('b', 4); return $body . json_encode($_POST);"
        )
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..4)
        .map(|n| {
            let body = format!("p={n}");
            (driver::post("x", "application/x-www-form-urlencoded", body.clone()), body)
        })
        .collect();
    let tags: Vec<_> = requests
        .iter()
        .map(|(request, body)| {
            let tag = app.worker.begin(request);
            app.worker.push(outboard_ring::frame::FrameKind::RequestBody, tag, body.as_bytes());
            tag
        })
        .collect();
    for (n, response) in app.worker.finish_all(&tags) {
        assert_eq!(response.text(), format!("p={n}{{\"p\":\"{n}\"}}"));
    }
}

#[test]
fn each_request_has_its_deferred_callbacks() {
    each_gets_its_own(
        "meet('a', 8); Outboard\\defer(function () use ($at) { if (Outboard\\request()->path() !== \"/$at\") error_log('mixed up'); });
         $path = Outboard\\request()->path(); meet('b', 8); return $path . $request->path();",
        |n| format!("/{n}/{n}"),
    );
}

#[test]
fn tasks_see_the_request_that_spawned_them() {
    each_gets_its_own(
        "return implode(',', Outboard\\concurrently([
             function () { meet('a', 8); echo 'o'; return $_GET['n']; },
             function () { meet('b', 8); return Outboard\\request()->path(); }]));",
        |n| format!("o{}{n},/{n}", ""),
    );
}

#[test]
fn fibers_may_wait_in_several_requests() {
    each_gets_its_own(
        "$fiber = new Fiber(function () use ($at) { meet('a', 8); $got = Fiber::suspend(\"s$at\"); meet('b', 8); return $got . $_GET['n']; });
         $first = $fiber->start(); meet('c', 8); $fiber->resume(\"r$at\"); return $first . $fiber->getReturn();",
        |n| format!("s{n}r{n}{n}"),
    );
}

#[test]
fn generators_and_static_calls_keep_their_place() {
    each_gets_its_own(
        "$g = (function () use ($at) { for ($i = 0; $i < 3; $i++) { meet(\"g$i\", 8); yield \"$at$i\"; } })();
         return implode(',', iterator_to_array($g));",
        |n| format!("{n}0,{n}1,{n}2"),
    );
}

#[test]
fn responses_come_in_the_order_of_completion() {
    let code = serve(
        "$until = (int) $at; while (($GLOBALS['turn'] ?? 3) > $until) Outboard\\sleep(0.0005); $GLOBALS['turn'] = $until - 1; return $at;",
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..4).map(|n| get(&n.to_string())).collect();
    let responses = app.worker.request_all(&requests);
    let order: Vec<_> = responses.iter().map(|(place, _)| *place).collect();
    assert_eq!(order, [3, 2, 1, 0]);
}

#[test]
fn exit_of_one_request_does_not_end_another() {
    let code = format!(
        "{MEET} {}",
        serve(
            "ob_start(); echo $at; meet('a', 4); if ((int) $at % 2) exit(' exit'); meet('b', 2); return ' end';"
        )
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..4).map(|n| get(&n.to_string())).collect();
    for (n, response) in app.worker.request_all(&requests) {
        assert_eq!(response.text(), format!("{n} {}", if n % 2 == 1 { "exit" } else { "end" }));
    }
}

#[test]
fn an_exception_fails_only_its_request() {
    let code = format!(
        "{MEET} {}",
        serve(
            "meet('a', 4); if ($at === '2') throw new Exception('two'); meet('b', 3); return $at;"
        )
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..4).map(|n| get(&n.to_string())).collect();
    for (n, response) in app.worker.request_all(&requests) {
        let expected = if n == 2 { 500 } else { 200 };
        assert_eq!(response.status, expected, "{response:?}");
        assert_eq!(response.log_text().contains("two"), n == 2);
    }
}

#[test]
fn exhausted_memory_fails_only_its_request() {
    let code = format!(
        "{MEET} {}",
        serve(
            "meet('a', 4); if ($at === '1') { str_repeat('x', 1 << 30); } Outboard\\sleep(0.005); return $at;"
        )
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..4).map(|n| get(&n.to_string())).collect();
    let mut leaving = false;
    for (n, response) in app.worker.request_all(&requests) {
        let failed = n == 1;
        assert_eq!(response.status, if failed { 500 } else { 200 }, "{response:?}");
        assert_eq!(response.text(), if failed { String::new() } else { n.to_string() });
        leaving |= response.done.leaving;
    }
    assert!(leaving);
    assert_eq!(app.wait_for_exit(), Some(0));
}

#[test]
fn a_fatal_error_fails_only_its_request() {
    let code = format!(
        "{MEET} {}",
        serve(
            "meet('a', 4); if ($at === '1') { eval('abstract class A { abstract function f(); } class B extends A {}'); } Outboard\\sleep(0.005); return $at;"
        )
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..4).map(|n| get(&n.to_string())).collect();
    for (n, response) in app.worker.request_all(&requests) {
        assert_eq!(response.status, if n == 1 { 500 } else { 200 }, "{response:?}");
    }
    assert_eq!(app.wait_for_exit(), Some(0));
}

#[test]
fn a_cancelled_request_unwinds_and_the_others_continue() {
    let code = serve(
        "if ($at === 'long') { try { Outboard\\sleep(60); return 'slept'; } finally { file_put_contents(__DIR__ . '/unwound', ''); } } return 'short';",
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let long = app.worker.begin(&get("long"));
    assert_eq!(app.get("short"), "short");
    app.worker.push(outboard_ring::frame::FrameKind::Cancel, long, b"");
    let response = app.worker.finish(long, b"");
    assert_ne!(response.text(), "slept");
    assert!(app.folder.0.join("unwound").exists());
    assert_eq!(app.get("short"), "short");
}

#[test]
fn handle_request_handles_many_at_a_time() {
    let code = format!(
        "{MEET} while (frankenphp_handle_request(function () {{ meet('a', 4); echo $_GET['n']; }})) {{}} file_put_contents(__DIR__ . '/left', '');"
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..4).map(|n| get("x").query(&format!("n={n}"))).collect();
    for (n, response) in app.worker.request_all(&requests) {
        assert_eq!(response.text(), n.to_string());
    }
    assert_eq!(app.stop(), Some(0));
    assert!(app.folder.0.join("left").exists());
}

#[test]
fn a_stopped_worker_completes_started_requests() {
    let code = serve(
        "touch(__DIR__ . \"/begun$at\"); while (!file_exists(__DIR__ . '/go')) Outboard\\sleep(0.0005); return 'done';",
    );
    let mut app = ScriptWorker::concurrent(4, &code);
    let requests: Vec<_> = (0..3).map(|n| get(&n.to_string())).collect();
    let tags: Vec<_> = requests.iter().map(|request| app.worker.begin(request)).collect();
    for n in 0..3 {
        eventually(|| app.folder.0.join(format!("begun{n}")).exists());
    }
    app.worker.stop();
    app.folder.write("go", "");
    for (_, response) in app.worker.finish_all(&tags) {
        assert_eq!(response.text(), "done");
    }
    assert_eq!(app.wait_for_exit(), Some(0));
}

#[test]
fn a_hundred_requests_wait_in_one_worker() {
    let code = format!("{MEET} {}", serve("meet('a', 100); return $at;"));
    let mut app = ScriptWorker::concurrent(100, &code);
    let requests: Vec<_> = (0..100).map(|n| get(&n.to_string())).collect();
    for (n, response) in app.worker.request_all(&requests) {
        assert_eq!(response.text(), n.to_string());
    }
}

/// Recurses through a C function, so that each level uses the C stack as well.
const DEEP: &str =
    "function deep(int $n) { return $n === 0 ? 0 : 1 + array_map('deep', [$n - 1])[0]; }";

#[test]
fn recursion_goes_as_deep_as_in_classic_mode() {
    for concurrency in [1, 16] {
        let mut app = ScriptWorker::concurrent(
            concurrency,
            &format!(
                "{DEEP} ini_set('memory_limit', '512M'); {}",
                serve("return (string) deep(8000);")
            ),
        );
        assert_eq!(app.get("a"), "8000");
    }
}

#[test]
fn a_coroutine_has_only_the_memory_it_uses() {
    let mut app = ScriptWorker::concurrent(
        16,
        &serve(
            "$resident = fn () => (int) explode(' ', file_get_contents('/proc/self/statm'))[1] * 4;
             $wait = fn () => Outboard\\sleep(0.01);
             Outboard\\concurrently([$wait]); $before = $resident();
             Outboard\\concurrently(array_fill(0, 40, $wait)); return (string) ($resident() - $before);",
        ),
    );
    let grown_kib: u32 = app.get("a").parse().unwrap();
    assert!(grown_kib < 40 * 128, "{grown_kib} KiB for 40 coroutines");
}

#[test]
fn an_ftp_connection_is_used_by_one_coroutine_at_a_time() {
    let body = r#"$until = function (string $what) { while (empty($GLOBALS[$what])) { Outboard\sleep(0.0005); } };
        if ($at === 'server') {
            $c = stream_socket_accept($GLOBALS['server']);
            fwrite($c, "220 hello\r\n");
            foreach (["230 logged in\r\n", "257 \"/here\"\r\n"] as $i => $reply) {
                fgets($c);
                $i === 0 || $GLOBALS['asked'] = true;
                $i === 0 || $until('refused');
                fwrite($c, $reply);
            }
            stream_set_blocking($c, false);
            return json_encode(fgets($c));
        }
        if ($at === 'first') {
            $ftp = $GLOBALS['ftp'] = ftp_connect('127.0.0.1', (int) substr(strrchr(stream_socket_get_name($GLOBALS['server'], false), ':'), 1));
            return ftp_login($ftp, 'a', 'b') ? ftp_pwd($ftp) : 'no login';
        }
        $until('asked');
        try {
            return (string) ftp_pwd($GLOBALS['ftp']);
        } catch (Outboard\ConnectionInUse $e) {
            return 'refused';
        } finally {
            $GLOBALS['refused'] = true;
        }"#;
    let code = format!("$server = stream_socket_server('tcp://127.0.0.1:0'); {}", serve(body));
    let mut app = ScriptWorker::concurrent(3, &code);
    let mut responses = app.worker.request_all(&["server", "first", "second"].map(get));
    responses.sort_by_key(|(place, _)| *place);
    let texts: Vec<_> = responses.iter().map(|(_, response)| response.text()).collect();
    assert_eq!(texts, ["false", "/here", "refused"], "nothing more was sent");
}
