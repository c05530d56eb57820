//! `Outboard\serve()`: results of a handler, its request object, and code around it.

mod driver;

use driver::{Response, ScriptWorker, finished, get, post};
use outboard_ring::response::Outcome;

#[track_caller]
fn serve(body: &str) -> Response {
    let mut app = ScriptWorker::serving(body);
    let first = app.request("a");
    let second = app.request("a");
    assert_eq!(
        (first.status, &first.lines, &first.body),
        (second.status, &second.lines, &second.body)
    );
    first
}

#[test]
fn a_string_is_the_body_of_a_200() {
    let response = serve("return 'text';");
    assert_eq!((response.status, finished(&response)), (200, "text".into()));
    assert_eq!(response.line("Content-Type"), Some("text/html; charset=UTF-8"));
}

#[test]
fn an_array_and_a_json_serializable_are_json() {
    let response = serve("return ['a' => [1, 'é/']];");
    assert_eq!(finished(&response), r#"{"a":[1,"é/"]}"#);
    assert_eq!(response.line("Content-Type"), Some("application/json"));
    let object = serve(
        "return new class implements JsonSerializable { function jsonSerialize(): mixed { return ['n' => 1]; } };",
    );
    assert_eq!(finished(&object), r#"{"n":1}"#);
}

#[test]
fn handlers_that_echo_may_return_nothing() {
    let response = serve("http_response_code(201); header('X-A: b'); echo 'echoed';");
    assert_eq!((response.status, finished(&response)), (201, "echoed".into()));
    assert_eq!(response.line("X-A"), Some("b"));
}

#[test]
fn an_invalid_result_is_a_500_with_a_reason() {
    let failed = serve("return 5;");
    assert_eq!((failed.status, failed.done.outcome), (500, Outcome::Failed));
    let words = "a handler must return a Response, a string, an array or nothing, not int";
    assert!(failed.log_text().contains(words), "{failed:?}");
}

#[test]
fn a_response_carries_status_headers_and_body() {
    let response = serve(
        "return (new Outboard\\Response('body', 418, ['X-One' => '1', 'X-Two' => ['a', 'b']]))
             ->withHeader('x-one', '2')->withAddedHeader('X-Two', 'c')->withStatus(202)
             ->withCookie('k', 'v w', ['secure' => true]);",
    );
    assert_eq!((response.status, finished(&response)), (202, "body".into()));
    assert_eq!(response.line("X-One"), Some("2"));
    let twos: Vec<_> = response.lines.iter().filter(|line| line.starts_with("X-Two")).collect();
    assert_eq!(twos, ["X-Two: a", "X-Two: b", "X-Two: c"]);
    let cookie = response.line("Set-Cookie").unwrap();
    assert!(cookie.starts_with("k=v%20w; secure; path=/; httponly"), "{cookie}");
}

#[test]
fn responses_have_factories() {
    let json = serve("return Outboard\\Response::json(['u' => 'ü'], 201);");
    assert_eq!((json.status, finished(&json)), (201, r#"{"u":"ü"}"#.into()));
    let html = serve("return Outboard\\Response::html('<p>');");
    assert_eq!(html.line("Content-Type"), Some("text/html; charset=utf-8"));
    let text = serve("return Outboard\\Response::text('t');");
    assert_eq!(text.line("Content-Type"), Some("text/plain; charset=utf-8"));
    let redirect = serve("return Outboard\\Response::redirect('/there', 303);");
    assert_eq!((redirect.status, redirect.line("Location")), (303, Some("/there")));
    let file = serve("return Outboard\\Response::file('/srv/a.pdf');");
    assert_eq!(file.line("X-Sendfile"), Some("/srv/a.pdf"));
}

#[test]
fn a_body_may_come_in_pieces() {
    let pieces = serve("return new Outboard\\Response((function () { yield 'a'; yield 'b'; })());");
    assert_eq!((finished(&pieces), pieces.flushes >= 2), ("ab".into(), true));
    let closure = serve("return new Outboard\\Response(function () { yield 'c'; yield 'd'; });");
    assert_eq!(finished(&closure), "cd");
    let echoing = serve("return new Outboard\\Response(function () { echo 'e'; });");
    assert_eq!(finished(&echoing), "e");
    let list = serve("return new Outboard\\Response(['f', 'g']);");
    assert_eq!(finished(&list), "fg");
    let stream = serve(
        "$f = fopen('php://memory', 'w+'); fwrite($f, 'stream'); rewind($f); return new Outboard\\Response($f);",
    );
    assert_eq!(finished(&stream), "stream");
}

#[test]
fn server_sent_events_follow_the_standard() {
    let events = serve(
        "return Outboard\\Response::events(['one', ['event' => 'e', 'id' => 2, 'data' => \"a\\nb\"], ['data' => ['j' => 1]]]);",
    );
    assert!(events.line("Content-Type").unwrap().starts_with("text/event-stream"));
    assert_eq!(
        finished(&events),
        "data: one\n\nevent: e\nid: 2\ndata: a\ndata: b\n\ndata: {\"j\":1}\n\n"
    );
}

#[test]
fn an_exception_in_a_streamed_body_fails_only_its_request() {
    let mut app = ScriptWorker::serving(
        "if ($at === 'a') return new Outboard\\Response(function () { yield 'a'; throw new Exception('torn'); }); return 'fine';",
    );
    let torn = app.request("a");
    assert_eq!((torn.text().as_str(), torn.done.outcome), ("a", Outcome::Failed));
    assert!(torn.log_text().contains("torn"));
    assert_eq!(app.get("b"), "fine");
}

#[test]
fn the_request_object_has_all_of_the_request() {
    let mut app = ScriptWorker::serving(
        "return [$request->method(), $request->path(), $request->target(), $request->url(), $request->protocol(),
            $request->scheme(), $request->host(), $request->client(), $request->id(), $request->header('x-a'),
            $request->header('x-none'), $request->headers()['x-a'], $request->query('q'), $request->query('none', 'd'),
            $request->cookie('c'), $request->form('f'), $request->body(), $request->server()['REQUEST_METHOD']];",
    );
    let form = "application/x-www-form-urlencoded";
    let request = post("a/b", form, "f=1").query("q=2").header("X-A", "3").header("X-A", "4");
    let text = finished(&app.worker.request(&request.header("Cookie", "c=5")));
    let expected = r#"["POST","/a/b","/a/b?q=2","http://example.test/a/b?q=2","1.1","http","example.test","192.0.2.7","r-1","3, 4",null,["3","4"],"2","d","5","1","f=1","POST"]"#;
    assert_eq!(text, expected);
}

#[test]
fn invalid_json_is_rejected() {
    let mut app = ScriptWorker::serving(
        "try { return ['got' => $request->json()]; } catch (JsonException $e) { return ['no' => 1]; }",
    );
    let json = |body: &str| post("a", "application/json", body);
    assert_eq!(finished(&app.worker.request(&json("{\"a\":[1]}"))), r#"{"got":{"a":[1]}}"#);
    assert_eq!(finished(&app.worker.request(&json("{"))), r#"{"no":1}"#);
}

#[test]
fn a_request_object_does_not_show_another_request() {
    let mut app = ScriptWorker::new(&format!(
        "$kept = null; {}",
        "Outboard\\serve(function ($request) use (&$kept) {
             $kept ??= $request;
             try { return $kept->path(); } catch (LogicException $e) { return $e->getMessage(); }
         });"
    ));
    assert_eq!(app.get("first"), "/first");
    assert_eq!(app.get("second"), "this request is over");
}

#[test]
fn the_current_request_is_available_anywhere() {
    let mut app = ScriptWorker::new(
        "$outside = Outboard\\request();
         function f() { return Outboard\\request()->path(); }
         Outboard\\serve(fn () => json_encode([$outside, f()], JSON_UNESCAPED_SLASHES));",
    );
    assert_eq!(app.get("x"), r#"[null,"/x"]"#);
}

#[test]
fn code_after_serve_runs_when_the_worker_stops() {
    let mut app = ScriptWorker::new(
        "Outboard\\serve(fn () => 'up'); file_put_contents(__DIR__ . '/left', 'ran');",
    );
    assert_eq!(app.get("a"), "up");
    assert!(!app.folder.0.join("left").exists());
    assert_eq!(app.stop(), Some(0));
    assert!(app.folder.0.join("left").exists());
}

#[test]
fn exit_ends_the_request_and_not_the_worker() {
    let mut app = ScriptWorker::serving("if ($at === 'exit') { exit('bye'); } return 'fine';");
    for _ in 0..2 {
        assert_eq!(app.get("exit"), "bye");
        assert_eq!(app.get("a"), "fine");
    }
}

#[test]
fn deferred_work_runs_after_the_response() {
    let mut app = ScriptWorker::serving(
        "Outboard\\defer(function () { echo 'lost'; file_put_contents(__DIR__ . '/deferred', Outboard\\request()->path()); });
         Outboard\\defer(function () { throw new Exception('in vain'); });
         Outboard\\defer(function () { file_put_contents(__DIR__ . '/second', ''); });
         return 'response';",
    );
    let response = app.request("d");
    assert_eq!((response.text().as_str(), response.ended), ("response", true));
    assert!(response.log_text().contains("in vain"), "{response:?}");
    assert_eq!(std::fs::read_to_string(app.folder.0.join("deferred")).unwrap(), "/d");
    assert!(app.folder.0.join("second").exists());
}

#[test]
fn nothing_can_be_deferred_outside_of_a_request() {
    let mut app = ScriptWorker::new(
        "try { Outboard\\defer(fn () => 1); } catch (LogicException $e) { $said = $e->getMessage(); }
         Outboard\\serve(fn () => $said ?? 'nothing');",
    );
    assert_eq!(app.get("a"), "there is no request to defer after");
}

#[test]
fn log_lines_have_severity_and_context() {
    let mut app =
        ScriptWorker::serving("Outboard\\log('hello', LOG_WARNING, ['n' => 1]); return '';");
    assert_eq!(app.request("a").logs, [(4, "hello {\"n\":1}".to_owned())]);
}

#[test]
fn is_worker_is_true_in_a_worker() {
    let mut app = ScriptWorker::serving("return json_encode(Outboard\\is_worker());");
    assert_eq!(app.get("a"), "true");
    let folder = driver::TempDir::new();
    folder.write("a.php", "<?php echo json_encode(Outboard\\is_worker());");
    assert_eq!(
        finished(&driver::Host::new().fork().request(&get("a.php").root(&folder.0))),
        "false"
    );
}

#[test]
fn tasks_run_concurrently_and_return_results() {
    let mut app = ScriptWorker::serving(
        "$order = [];
         $a = Outboard\\spawn(function ($n) use (&$order) { $order[] = 'a'; Outboard\\sleep(0.02); $order[] = 'a'; return $n; }, 1);
         $b = Outboard\\spawn(function () use (&$order) { $order[] = 'b'; Outboard\\sleep(0.01); $order[] = 'b'; return 2; });
         $results = Outboard\\await($a, $b);
         return [$results, $order, $a->isDone(), Outboard\\await($a)];",
    );
    assert_eq!(app.get("a"), r#"[[1,2],["a","b","b","a"],true,1]"#);
    assert_eq!(app.get("a"), r#"[[1,2],["a","b","b","a"],true,1]"#);
}

#[test]
fn concurrently_keeps_keys_and_limits() {
    let mut app = ScriptWorker::serving(
        "$now = $most = 0;
         $task = function () use (&$now, &$most) { $now++; $most = max($most, $now); Outboard\\sleep(0.001); $now--; return $most > 0; };
         $all = Outboard\\concurrently(['x' => $task, 'y' => $task, 'z' => $task]);
         $unlimited = $most; $now = $most = 0;
         $two = Outboard\\concurrently(['x' => $task, 'y' => $task, 'z' => $task], 2);
         return [array_keys($all), $unlimited, array_keys($two), $most];",
    );
    assert_eq!(app.get("a"), r#"[["x","y","z"],3,["x","y","z"],2]"#);
}

#[test]
fn an_exception_of_a_task_is_thrown_by_await() {
    let mut app = ScriptWorker::serving(
        "try { Outboard\\concurrently([fn () => throw new DomainException('first'), function () { $GLOBALS['ran'] = true; }]); }
         catch (DomainException $e) { return $e->getMessage() . json_encode($GLOBALS['ran']); }",
    );
    assert_eq!(app.get("a"), "firsttrue");
}

#[test]
fn a_cancelled_task_ends_where_it_waits() {
    let mut app = ScriptWorker::serving(
        "$log = [];
         $task = Outboard\\spawn(function () use (&$log) { try { $log[] = 'begun'; Outboard\\sleep(60); $log[] = 'slept'; } finally { $log[] = 'finally'; } });
         Outboard\\sleep(0);
         Outboard\\sleep(0.001);
         $task->cancel();
         try { $task->await(); } catch (Outboard\\Cancelled $e) { $log[] = 'cancelled'; }
         return $log;",
    );
    assert_eq!(app.get("a"), r#"["begun","finally","cancelled"]"#);
    assert_eq!(app.get("a"), r#"["begun","finally","cancelled"]"#);
}

#[test]
fn exit_in_a_task_ends_the_task() {
    let mut app = ScriptWorker::serving(
        "$task = Outboard\\spawn(function () { exit; });
         try { $task->await(); } catch (Outboard\\Cancelled $e) { return 'ended'; }",
    );
    assert_eq!(app.get("a"), "ended");
    assert_eq!(app.get("a"), "ended");
}

#[test]
fn a_task_that_nobody_awaits_ends_before_the_request_is_done() {
    let mut app = ScriptWorker::serving(
        "Outboard\\spawn(function () { Outboard\\sleep(0.005); file_put_contents(__DIR__ . '/late', Outboard\\request()->path()); });
         return 'response';",
    );
    let response = app.request("t");
    assert_eq!((response.text().as_str(), response.ended), ("response", true));
    assert_eq!(std::fs::read_to_string(app.folder.0.join("late")).unwrap(), "/t");
}

#[test]
fn timers_run_between_requests_and_end_when_cancelled() {
    let mut app = ScriptWorker::new(
        "$n = 0; $once = 0;
         $timer = Outboard\\every(0.001, function () use (&$n, &$timer) { if (++$n === 3) $timer->cancel(); });
         Outboard\\after(0.001, function () use (&$once) { $once++; });
         $never = Outboard\\after(0.001, function () use (&$once) { $once += 100; });
         $never->cancel();
         Outboard\\serve(function () use (&$n, &$once) { while ($n < 3) Outboard\\sleep(0.001); Outboard\\sleep(0.01); return [$n, $once]; });",
    );
    assert_eq!(app.get("a"), "[3,1]");
    assert_eq!(app.get("a"), "[3,1]");
}

#[test]
fn an_exception_in_a_timer_is_logged_and_the_timer_continues() {
    let mut app = ScriptWorker::new(
        "$n = 0;
         Outboard\\every(0.001, function () use (&$n) { $n++; throw new Exception('tick'); });
         Outboard\\serve(function () use (&$n) { while ($n < 3) Outboard\\sleep(0.001); return 'ticked'; });",
    );
    assert_eq!(app.get("a"), "ticked");
    app.stop();
    assert!(app.worker.output().contains("tick"));
}

#[test]
fn exit_in_a_timer_ends_the_timers_call() {
    let mut app = ScriptWorker::new(
        "$n = 0;
         Outboard\\after(0, function () use (&$n) { $n++; exit; });
         Outboard\\serve(function () use (&$n) { while ($n < 1) Outboard\\sleep(0.001); return 'served'; });",
    );
    assert_eq!((app.get("a"), app.get("b")), ("served".into(), "served".into()));
}

#[test]
fn fibers_of_the_application_work_in_handlers() {
    let mut app = ScriptWorker::serving(
        "$fiber = new Fiber(function ($a) { $b = Fiber::suspend($a + 1); Outboard\\sleep(0.001); $c = Fiber::suspend($b + 1); return $c; });
         $values = [$fiber->start(1), $fiber->resume(10), $fiber->resume(20), $fiber->getReturn()];
         try { (new Fiber(fn () => throw new DomainException('through')))->start(); } catch (DomainException $e) { $values[] = $e->getMessage(); }
         return $values;",
    );
    assert_eq!(app.get("a"), r#"[2,11,null,20,"through"]"#);
    assert_eq!(app.get("a"), r#"[2,11,null,20,"through"]"#);
}

#[test]
fn an_unfinished_fiber_is_dropped() {
    let mut app = ScriptWorker::new(
        "$kept = [];
         Outboard\\serve(function () use (&$kept) { $fiber = new Fiber(function () { try { Fiber::suspend(1); } finally { $GLOBALS['unwound'] = ($GLOBALS['unwound'] ?? 0) + 1; } });
            $fiber->start(); $before = $GLOBALS['unwound'] ?? 0; unset($fiber); return [$before, $GLOBALS['unwound']]; });",
    );
    assert_eq!(app.get("a"), "[0,1]");
    assert_eq!(app.get("a"), "[1,2]");
}

#[test]
fn many_requests_reuse_memory() {
    let mut app = ScriptWorker::serving(
        "ob_start(); echo str_repeat('x', 10000); $GLOBALS['n'] = ($GLOBALS['n'] ?? 0) + 1; return json_encode($GLOBALS['n']) . strlen(ob_get_clean());",
    );
    for n in 1..=2000 {
        assert_eq!(app.get("a"), format!("{n}10000"));
    }
}
