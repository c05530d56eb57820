//! Output of a script reaches the gateway: status, headers, body, end.

mod driver;

use driver::{Host, Response, TempDir, Worker, finished, get, settings};
use outboard_ring::channel::Capacities;
use outboard_ring::frame::FrameKind;
use outboard_ring::response::Outcome;

fn run(worker: &mut Worker, code: &str) -> Response {
    let folder = TempDir::new();
    folder.write("run.php", &format!("<?php {code}"));
    worker.request(&get("run.php").root(&folder.0))
}

#[track_caller]
fn status(worker: &mut Worker, code: &str, expected: (u16, &str)) {
    let response = run(worker, code);
    assert_eq!((response.status, response.reason.as_str()), expected, "{code}");
    assert_eq!(response.line("status"), None, "{code}");
}

#[test]
fn the_status_is_that_of_php_fpm_with_nginx() {
    let mut host = Host::new();
    let worker = &mut host.fork();
    status(worker, "http_response_code(404);", (404, ""));
    status(worker, "header('HTTP/1.1 418 I am a teapot');", (418, "I am a teapot"));
    status(worker, "header('HTTP/1.1 200 Fine');", (200, ""));
    status(worker, "header('Status: 410 Gone away');", (410, "Gone away"));
    status(worker, "header('Status: 410 Gone'); http_response_code(404);", (410, "Gone"));
    status(worker, "header('Location: /x');", (302, ""));
    status(worker, "header('Location: /x', true, 301);", (301, ""));
}

#[test]
fn header_lines_arrive_verbatim_and_in_order() {
    let mut host = Host::new();
    let worker = &mut host.fork();
    let response = run(
        worker,
        "header_remove('X-Powered-By'); setcookie('a', '1'); setcookie('b', '2');
         header('X-Two: 1'); header('X-Two: 2'); header('x-three:  spaced ');
         header('X-Gone: 1'); header_remove('x-gone'); header('Content-Type: text/plain');",
    );
    let expected = [
        "Set-Cookie: a=1",
        "Set-Cookie: b=2",
        "X-Two: 2",
        "x-three:  spaced",
        "Content-type: text/plain;charset=UTF-8",
    ];
    assert_eq!(response.lines, expected);
}

#[test]
fn a_304_has_no_content_type() {
    let mut host = Host::new();
    let response = run(&mut host.fork(), "http_response_code(304);");
    assert_eq!(response.status, 304);
    assert_eq!(response.line("content-type"), None);
}

#[test]
fn a_response_to_head_has_headers_and_no_body() {
    let mut host = Host::new();
    let response = host.fork().request(&get("hello.php").method("HEAD"));
    assert_eq!((response.status, response.text()), (200, String::new()));
    assert!(response.line("content-type").is_some());
}

#[test]
fn output_larger_than_the_ring_arrives_complete() {
    let mut host = Host::new();
    let capacities = Capacities { request_bytes: 8192, response_bytes: 8192 };
    let mut worker = host.fork_unready(capacities);
    assert_eq!(worker.frame().0.kind, FrameKind::Ready);
    let code = "for ($i = 0; $i < 3000; $i++) { echo str_repeat(chr(65 + $i % 26), 1000); }
                echo str_repeat('z', 2000000);";
    let response = run(&mut worker, code);
    assert_eq!(response.body.len(), 5_000_000);
    for (i, piece) in response.body.chunks(1000).take(3000).enumerate() {
        assert!(piece.iter().all(|byte| *byte == b'A' + (i % 26) as u8), "piece {i}");
    }
    assert!(response.body[3_000_000..].iter().all(|byte| *byte == b'z'));
}

#[test]
fn flush_sends_output_while_the_script_runs() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = TempDir::new();
    let go = folder.0.join("go");
    folder.write(
        "run.php",
        "<?php echo 'first'; flush(); while (!file_exists('go')) { usleep(1000); clearstatcache(); }
         echo 'second';",
    );
    let tag = worker.begin(&get("run.php").root(&folder.0));
    let kinds: Vec<_> = (0..3).map(|_| worker.frame()).collect();
    assert_eq!(kinds[0].0.kind, FrameKind::Head);
    assert_eq!((kinds[1].0.kind, &kinds[1].1[..]), (FrameKind::Body, &b"first"[..]));
    assert_eq!(kinds[2].0.kind, FrameKind::Flush);
    std::fs::write(go, "").unwrap();
    assert_eq!(worker.frame().1, b"second");
    let (header, _) = worker.frame();
    assert_eq!((header.kind, header.tag), (FrameKind::Done, tag));
}

#[test]
fn finishing_completes_the_response_while_the_script_runs() {
    let mut host = Host::new();
    let folder = TempDir::new();
    folder.write(
        "run.php",
        "<?php ob_start(); echo 'response'; var_dump(1);
         $first = fastcgi_finish_request(); $second = outboard_finish_request();
         echo 'dropped'; flush();
         file_put_contents('after', json_encode([$first, $second, connection_aborted()]));",
    );
    let response = host.fork().request(&get("run.php").root(&folder.0));
    assert_eq!(finished(&response), "responseint(1)\n");
    assert!(response.ended);
    let after = std::fs::read_to_string(folder.0.join("after")).unwrap();
    assert_eq!(after, "[true,false,0]");
}

#[test]
fn a_disconnect_ends_the_script_at_its_next_output() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = TempDir::new();
    folder.write(
        "run.php",
        "<?php register_shutdown_function(fn() => file_put_contents('end', connection_status()));
         echo 'x'; flush();
         while (true) { echo str_repeat('y', 10000); }",
    );
    let tag = worker.begin(&get("run.php").root(&folder.0));
    while worker.frame().0.kind != FrameKind::Flush {}
    worker.abort(tag);
    let response = worker.drain(tag);
    assert_eq!(response.outcome, Outcome::Finished);
    assert_eq!(std::fs::read_to_string(folder.0.join("end")).unwrap(), "1");
    assert_eq!(finished(&worker.request(&get("hello.php"))), "hello\n", "the worker serves on");
}

#[test]
fn a_script_may_ignore_a_disconnect() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = TempDir::new();
    folder.write(
        "run.php",
        "<?php ignore_user_abort(true); echo 'x'; flush();
         while (!connection_aborted()) { echo 'y'; flush(); }
         file_put_contents('end', 'went on');",
    );
    let tag = worker.begin(&get("run.php").root(&folder.0));
    while worker.frame().0.kind != FrameKind::Flush {}
    worker.abort(tag);
    worker.drain(tag);
    assert_eq!(std::fs::read_to_string(folder.0.join("end")).unwrap(), "went on");
}

#[test]
fn shutdown_functions_run_before_the_response_ends() {
    let mut host = Host::new();
    let code = "ob_start(fn($text) => strtoupper($text)); register_shutdown_function(function () { echo 'late'; });
                echo 'early-'; exit;";
    assert_eq!(finished(&run(&mut host.fork(), code)), "EARLY-LATE");
}

#[test]
fn error_log_lines_are_log_frames_of_their_request() {
    let mut host = Host::new();
    let response = run(&mut host.fork(), "error_log(\"one\\ntwo\"); trigger_error('careful');");
    let lines: Vec<&str> = response.logs.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[..2], ["one", "two"]);
    assert!(lines[2].contains("careful"), "{lines:?}");
}

#[test]
fn standard_streams_go_to_the_output_pipe() {
    let mut host = Host::new();
    let mut worker = host.fork();
    run(
        &mut worker,
        "file_put_contents('php://stderr', 'to stderr;'); system('echo from a child');",
    );
    worker.stop();
    assert_eq!(worker.output(), "to stderr;");
}

#[test]
fn php_sapi_is_the_configured_name() {
    let mut host = Host::new();
    let response = run(&mut host.fork(), "echo PHP_SAPI, php_sapi_name();");
    assert_eq!(response.text(), format!("{0}{0}", settings().sapi_name));
}

/// Code that sends a head larger than the ring.
const TOO_LONG: [&str; 4] = [
    "header('X-Big: ' . str_repeat('v', 300000));",
    "for ($i = 0; $i < 3000; $i++) { header('X-' . $i . ': ' . str_repeat('v', 100)); }",
    "for ($i = 0; $i < 10000; $i++) { header('X-Small: ' . $i . ' and some more', false); }",
    "header('X-Big: ' . str_repeat('v', 300000)); echo 'page'; flush(); touch(__DIR__ . '/went_on');",
];

#[track_caller]
fn assert_refused(response: &Response) {
    assert_eq!(
        (response.status, response.ended, response.text().as_str()),
        (0, true, ""),
        "{response:?}"
    );
    assert_eq!(response.logs.len(), 1, "{response:?}");
    assert!(response.log_text().contains("The response head of the script has "), "{response:?}");
}

#[test]
fn a_head_above_the_ring_is_refused_at_once() {
    let mut host = Host::new();
    let worker = &mut host.fork();
    for code in TOO_LONG {
        assert_refused(&run(worker, code));
    }
    assert_eq!(finished(&run(worker, "echo 'next';")), "next");
}

#[test]
fn an_interim_head_above_the_ring_is_not_sent() {
    let mut app = driver::ScriptWorker::new(
        "while (Outboard\\handle_request(function () {
            header('X-Big: ' . str_repeat('v', 300000)); $sent = headers_send(103);
            header_remove('X-Big'); echo json_encode($sent);
        }));",
    );
    let response = app.request("a");
    assert_eq!(finished(&response), "3", "SAPI_HEADER_SEND_FAILED");
    assert!(response.log_text().contains("An interim response head"), "{response:?}");
}

#[test]
fn a_head_above_the_ring_fails_only_its_request() {
    let code = format!(
        "while (Outboard\\handle_request(function () {{
            if (isset($_GET['big'])) {{ {} return; }}
            Outboard\\sleep(0.02); echo 'other';
        }}));",
        TOO_LONG[0]
    );
    let mut app = driver::ScriptWorker::concurrent(8, &code);
    let requests = ["", "big=1", "", "big=1", "", ""].map(|query| get("a").query(query));
    for (place, response) in app.worker.request_all(&requests) {
        match place {
            1 | 3 => assert_refused(&response),
            _ => assert_eq!(finished(&response), "other"),
        }
    }
}
