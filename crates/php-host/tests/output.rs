//! What a script sends reaches the gateway: status, headers, output, its end.

mod driver;

use driver::{Answer, Folder, Host, Worker, finished, get, settings};
use outboard_ring::channel::Capacities;
use outboard_ring::frame::FrameKind;
use outboard_ring::response::Outcome;

fn run(worker: &mut Worker, code: &str) -> Answer {
    let folder = Folder::new();
    folder.write("run.php", &format!("<?php {code}"));
    worker.ask(&get("run.php").root(&folder.0))
}

#[track_caller]
fn status(worker: &mut Worker, code: &str, expected: (u16, &str)) {
    let answer = run(worker, code);
    assert_eq!((answer.status, answer.reason.as_str()), expected, "{code}");
    assert_eq!(answer.line("status"), None, "{code}");
}

#[test]
fn a_status_is_decided_as_php_fpm_and_nginx_do_together() {
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
fn header_lines_come_verbatim_and_in_order() {
    let mut host = Host::new();
    let worker = &mut host.fork();
    let answer = run(
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
    assert_eq!(answer.lines, expected);
}

#[test]
fn a_304_has_no_content_type() {
    let mut host = Host::new();
    let answer = run(&mut host.fork(), "http_response_code(304);");
    assert_eq!(answer.status, 304);
    assert_eq!(answer.line("content-type"), None);
}

#[test]
fn an_answer_to_head_has_headers_and_no_body() {
    let mut host = Host::new();
    let answer = host.fork().ask(&get("hello.php").method("HEAD"));
    assert_eq!((answer.status, answer.text()), (200, String::new()));
    assert!(answer.line("content-type").is_some());
}

#[test]
fn output_larger_than_the_ring_waits_for_the_gateway_and_arrives_whole() {
    let mut host = Host::new();
    let capacities = Capacities { request_bytes: 8192, response_bytes: 8192 };
    let mut worker = host.fork_unready(capacities);
    assert_eq!(worker.frame().0.kind, FrameKind::Ready);
    let code = "for ($i = 0; $i < 3000; $i++) { echo str_repeat(chr(65 + $i % 26), 1000); }
                echo str_repeat('z', 2000000);";
    let answer = run(&mut worker, code);
    assert_eq!(answer.body.len(), 5_000_000);
    for (i, piece) in answer.body.chunks(1000).take(3000).enumerate() {
        assert!(piece.iter().all(|byte| *byte == b'A' + (i % 26) as u8), "piece {i}");
    }
    assert!(answer.body[3_000_000..].iter().all(|byte| *byte == b'z'));
}

#[test]
fn flush_sends_what_there_is_while_the_script_runs() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = Folder::new();
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
fn finishing_the_request_completes_the_answer_and_the_script_goes_on() {
    let mut host = Host::new();
    let folder = Folder::new();
    folder.write(
        "run.php",
        "<?php ob_start(); echo 'answer'; var_dump(1);
         $first = fastcgi_finish_request(); $second = outboard_finish_request();
         echo 'dropped'; flush();
         file_put_contents('after', json_encode([$first, $second, connection_aborted()]));",
    );
    let answer = host.fork().ask(&get("run.php").root(&folder.0));
    assert_eq!(finished(&answer), "answerint(1)\n");
    assert!(answer.ended);
    let after = std::fs::read_to_string(folder.0.join("after")).unwrap();
    assert_eq!(after, "[true,false,0]");
}

#[test]
fn a_client_that_has_gone_ends_the_script_at_its_next_output() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = Folder::new();
    folder.write(
        "run.php",
        "<?php register_shutdown_function(fn() => file_put_contents('end', connection_status()));
         echo 'x'; flush();
         while (true) { echo str_repeat('y', 10000); }",
    );
    let tag = worker.begin(&get("run.php").root(&folder.0));
    while worker.frame().0.kind != FrameKind::Flush {}
    worker.abort(tag);
    let answer = worker.drain(tag);
    assert_eq!(answer.outcome, Outcome::Finished);
    assert_eq!(std::fs::read_to_string(folder.0.join("end")).unwrap(), "1");
    assert_eq!(finished(&worker.ask(&get("hello.php"))), "hello\n", "the worker serves on");
}

#[test]
fn a_script_may_ignore_that_its_client_has_gone() {
    let mut host = Host::new();
    let mut worker = host.fork();
    let folder = Folder::new();
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
fn shutdown_functions_and_output_handlers_run_before_the_answer_ends() {
    let mut host = Host::new();
    let code = "ob_start(fn($text) => strtoupper($text)); register_shutdown_function(function () { echo 'late'; });
                echo 'early-'; exit;";
    assert_eq!(finished(&run(&mut host.fork(), code)), "EARLY-LATE");
}

#[test]
fn error_log_lines_come_as_log_frames_of_their_request() {
    let mut host = Host::new();
    let answer = run(&mut host.fork(), "error_log(\"one\\ntwo\"); trigger_error('careful');");
    let lines: Vec<&str> = answer.logs.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[..2], ["one", "two"]);
    assert!(lines[2].contains("careful"), "{lines:?}");
}

#[test]
fn what_a_script_writes_to_its_streams_goes_to_the_output_pipe() {
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
fn php_sapi_is_the_name_that_was_set() {
    let mut host = Host::new();
    let answer = run(&mut host.fork(), "echo PHP_SAPI, php_sapi_name();");
    assert_eq!(answer.text(), format!("{0}{0}", settings().sapi_name));
}

/// Heads that no ring has room for.
const TOO_LONG: [&str; 4] = [
    "header('X-Big: ' . str_repeat('v', 300000));",
    "for ($i = 0; $i < 3000; $i++) { header('X-' . $i . ': ' . str_repeat('v', 100)); }",
    "for ($i = 0; $i < 10000; $i++) { header('X-Small: ' . $i . ' and some more', false); }",
    "header('X-Big: ' . str_repeat('v', 300000)); echo 'page'; flush(); touch(__DIR__ . '/went_on');",
];

#[track_caller]
fn assert_refused(answer: &Answer) {
    assert_eq!((answer.status, answer.ended, answer.text().as_str()), (0, true, ""), "{answer:?}");
    assert_eq!(answer.logs.len(), 1, "{answer:?}");
    assert!(answer.log_text().contains("The response head of the script has "), "{answer:?}");
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
    let mut app = driver::Resident::new(
        "while (Outboard\\handle_request(function () {
            header('X-Big: ' . str_repeat('v', 300000)); $sent = headers_send(103);
            header_remove('X-Big'); echo json_encode($sent);
        }));",
    );
    let answer = app.ask("a");
    assert_eq!(finished(&answer), "3", "SAPI_HEADER_SEND_FAILED");
    assert!(answer.log_text().contains("An interim response head"), "{answer:?}");
}

#[test]
fn a_head_above_the_ring_is_its_own_requests_alone() {
    let code = format!(
        "while (Outboard\\handle_request(function () {{
            if (isset($_GET['big'])) {{ {} return; }}
            Outboard\\sleep(0.02); echo 'other';
        }}));",
        TOO_LONG[0]
    );
    let mut app = driver::Resident::concurrent(8, &code);
    let asks = ["", "big=1", "", "big=1", "", ""].map(|query| get("a").query(query));
    for (place, answer) in app.worker.ask_all(&asks) {
        match place {
            1 | 3 => assert_refused(&answer),
            _ => assert_eq!(finished(&answer), "other"),
        }
    }
}
