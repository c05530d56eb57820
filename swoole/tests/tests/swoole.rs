//! Programs that were written for Swoole, run by `outboard run` without the extension.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Docroot, Process, Program, Request, Wire, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a test that asks again and again does so.
const PATIENCE: Duration = Duration::from_secs(60);

fn docroot() -> Docroot {
    Docroot::of("swoole")
}

/// The server of `http.php`, which every test of requests and responses uses.
fn http() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| Program::start(docroot(), "http.php", &[]))
}

#[track_caller]
fn json(program: &Program, target: &str) -> Value {
    let text = program.client().get(target).expect(200).text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{target} is answered by {text}"))
}

/// Asks until the answer is as wanted.
#[track_caller]
fn await_json(program: &Program, target: &str, wanted: &Value) {
    let begun = Instant::now();
    loop {
        let answer = json(program, target);
        if &answer == wanted {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{target} is answered by {answer}");
    }
}

#[track_caller]
fn printed(script: &str, arguments: &[&str]) -> String {
    let output = Program::run(&docroot(), script, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn the_smallest_program_answers() {
    let program = Program::start(docroot(), "hello.php", &[]);
    let response = program.client().get("/?name=Ada").expect(200);
    assert_eq!(response.text(), "hello Ada");
    assert_eq!(response.header("Content-Type"), Some("text/plain"));
    assert_eq!(program.client().get("/any/path").expect(200).text(), "hello world");
    program.logs(&["the server has started"]);
    program.logs(&["no effect here", "reactor_num"]);
}

#[test]
fn settings_of_php_and_the_end_of_short_names_are_honored() {
    let options = ["-d", "swoole.use_shortname=Off", "-d", "memory_limit=300M"];
    let program = Program::start_with(docroot(), "short_names.php", &options);
    program.logs(&[r#",false,"own",false,false,false,false,true,"300M"]"#]);
    assert_eq!(program.client().get("/").expect(200).text(), "own 300M");
}

#[test]
fn a_request_has_what_the_client_has_sent() {
    let request = Request::get("/request?a=1&b[]=2&b[]=3")
        .header("X-Some", "first")
        .header("Cookie", "one=1; two=a%20b; one=2; l[]=x; l[]=+; m[k][l]=%2B; a.b=c; e; 0=");
    let text = http().client().send(&request).expect(200).text();
    let answer: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(answer["method"], "GET");
    assert_eq!(answer["header"]["x-some"], "first");
    assert_eq!(answer["server"]["request_uri"], "/request");
    assert_eq!(answer["server"]["path_info"], "/request");
    assert_eq!(answer["server"]["query_string"], "a=1&b[]=2&b[]=3");
    assert_eq!(answer["server"]["server_protocol"], "HTTP/1.1");
    assert_eq!(answer["get"], json!({"a": "1", "b": ["2", "3"]}));
    let nested = json!({"one": "1", "two": "a b", "l": ["x", "+"], "m": {"k": {"l": "+"}}, "a_b": "c",
        "e": "", "0": ""});
    assert_eq!(answer["cookie"], nested);
    assert_eq!(answer["post"], Value::Null);
}

#[test]
fn a_form_is_read() {
    let form = "application/x-www-form-urlencoded";
    let request = Request::post("/request", form, "x=1&y[k]=two words");
    let text = http().client().send(&request).expect(200).text();
    let answer: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(answer["post"], json!({"x": "1", "y": {"k": "two words"}}));
    assert_eq!(answer["raw"], 18);
}

#[test]
fn uploads_are_files_of_the_request() {
    let body = "--XX\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\nvalue\r\n\
                --XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\
                Content-Type: text/plain\r\n\r\nline one\r\nline two\r\n--XX--\r\n";
    let request = Request::post("/request", "multipart/form-data; boundary=XX", body);
    let text = http().client().send(&request).expect(200).text();
    let answer: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(answer["post"], json!({"field": "value"}));
    assert_eq!(
        answer["files"]["file"],
        json!(["a.txt", "text/plain", 18, 0, "line one\r\nline two"])
    );
    assert_eq!(answer["is_uploaded"]["file"], true);
}

#[test]
fn a_response_has_its_status_headers_and_cookies() {
    let response = http().client().get("/response").expect(418);
    assert_eq!(response.header("X-First"), Some("one"));
    assert_eq!(response.header("x-AS-it-is"), Some("two"));
    assert_eq!(response.all("X-Many").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(response.header("X-Injected"), None);
    let cookies: Vec<_> = response.all("Set-Cookie").collect();
    assert_eq!(cookies, ["plain=a+b; path=/; secure; HttpOnly; SameSite=Lax", "raw=a%20b"]);
    assert_eq!(response.header("Content-Type"), Some("text/html"));
    assert_eq!(response.text(), "teapot");
}

#[test]
fn a_response_to_head_has_the_length_of_the_body() {
    let mut client = http().client();
    let response = client.send(&Request::new("HEAD", "/response")).expect(418);
    assert_eq!(response.header("Content-Length"), Some("6"));
    assert_eq!(response.text(), "");
    let file = client.send(&Request::new("HEAD", "/file")).expect(200);
    assert_eq!(file.all("Content-Length").collect::<Vec<_>>(), ["3"]);
}

#[test]
fn pieces_a_redirect_and_files_are_sent() {
    let mut client = http().client();
    assert_eq!(client.get("/chunks").expect(200).text(), "one two three");
    assert_eq!(
        client.send(&Request::get("/redirect")).expect(301).header("Location"),
        Some("/hello")
    );
    assert_eq!(client.get("/file").expect(200).text(), "php");
    let whole = client.get("/whole").expect(200).text();
    let file = std::fs::read_to_string(http().docroot().path().join("http.php"));
    assert_eq!(whole, file.expect("it is there"));
    assert_eq!(client.get("/large").expect(200).text().len(), 2_000_000);
    assert_eq!(client.get("/writable").expect(200).text(), "writable exists");
    assert_eq!(client.get("/twice").expect(200).text(), "once");
}

#[test]
fn trailers_follow_a_body_without_a_length() {
    let address = http().address();
    let receive = |target: &str, version: &str| {
        let mut wire = Wire::open(address);
        wire.send(format!("GET {target} HTTP/{version}\r\nHost: a\r\nConnection: close\r\n\r\n"));
        let head = wire.head();
        (head, wire.to_end())
    };
    let (head, body) = receive("/trailers", "1.1");
    assert!(
        head.contains("Transfer-Encoding: chunked") && !head.contains("Content-Length"),
        "{head}"
    );
    assert_eq!(body, "4\r\nbody\r\n0\r\ngrpc-status: 0\r\n\r\n");
    let (_, body) = receive("/trailers?write=1", "1.1");
    assert!(body.ends_with("\r\n0\r\ngrpc-status: 0\r\nX-After: yes\r\n\r\n"), "{body}");
    assert_eq!(receive("/trailers", "1.0").1, "body");
}

#[test]
fn a_response_that_nobody_can_end_is_an_error() {
    let mut client = http().client();
    client.get("/unended").expect(500);
    client.get("/throws").expect(500);
    http().logs(&["on purpose"]);
    assert_eq!(client.get("/twice").expect(200).text(), "once");
}

#[test]
fn a_response_may_be_ended_by_any_coroutine() {
    assert_eq!(http().client().get("/later").expect(200).text(), "later");
    assert_eq!(http().client().get("/detach").expect(200).text(), "attached");
    let waiting: Vec<_> = (0..3)
        .map(|_| std::thread::spawn(|| http().client().get("/wait").expect(200).text()))
        .collect();
    let begun = Instant::now();
    let mut released = 0;
    while released < 3 {
        released +=
            http().client().get("/release").expect(200).text().parse::<i32>().expect("a number");
        assert!(begun.elapsed() < PATIENCE, "{released} waited");
    }
    for one in waiting {
        assert_eq!(one.join().expect("it has not panicked"), "released");
    }
}

#[test]
fn what_a_handler_prints_goes_to_the_log() {
    assert_eq!(http().client().get("/twice").expect(200).text(), "once");
    http().logs(&["not part of the response"]);
}

#[test]
fn a_command_finds_the_variables_of_the_command_line() {
    let docroot = docroot();
    let script = docroot.path().join("command.php").to_string_lossy().into_owned();
    let output = Program::run(&docroot, "command.php", &["start"]);
    let wanted = json!([script, script, script, script, "", 2, [script, "start"], 4]);
    let title = json!(["", true, "a title"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{wanted}\n{title}\n[false,null]\n")
    );
}

#[test]
fn coroutines_run_in_the_order_of_the_extension() {
    let text = printed("coroutines.php", &["one", "--two"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "loaded",
            "cli 3 one,--two",
            "order: 1 -1",
            "inside 1",
            "outside",
            "exists",
            "resumed",
            "deferred first",
            "deferred last",
            "gone",
            "pushed a",
            "pushed b",
            "pushed c",
            "popped a",
            "pushed d",
            "popped b",
            "popped c",
            "popped d",
            "closed -2",
            "false -1 late",
            "all 6",
            "barrier 3",
            "{\"slept\":true,\"computed\":42} together",
            "[1,4,9]",
            "parallel 4",
            "other context null",
            "own context mine",
            "cancelled false true",
            "cancel true",
            "join true",
            "list 1",
            "caught",
            "exec {\"code\":3,\"signal\":0,\"output\":\"out\\n\"}",
            "after once",
            "ticks 3 false",
            "after run",
            "last line",
            "after the last line",
        ]
    );
}

#[test]
fn each_coroutine_has_output_buffers_of_its_own() {
    let wanted = "[\"<0 1 0>\",\"<1 1 1>\",\"<2 1 2>\"]\n0 inside\nmain 1\nleft\nmore\n";
    assert_eq!(printed("output.php", &[]), wanted);
}

#[test]
fn a_class_that_two_coroutines_need_is_loaded_once() {
    assert_eq!(printed("autoload.php", &[]), "1 loading Late\nLate\n2 Late\n");
}

#[test]
fn coroutines_that_wait_for_each_other_are_reported() {
    let output = Program::run(&docroot(), "deadlock.php", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("all coroutines (count: 1) are asleep - deadlock!"), "{errors}");
    assert!(errors.contains("deadlock.php:3"), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "not stuck\n");
}

#[test]
fn a_program_without_a_server_ends_with_its_code() {
    let output = Program::run(&docroot(), "fatal.php", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("before\n") && text.contains("undefined_function"), "{text}");
    assert_eq!(output.status.code(), Some(255));
}

#[test]
fn a_program_without_a_server_ends_with_outboard_run() {
    let docroot = docroot();
    let child = Program::begin(&docroot, "endless.php");
    let has = |wanted: &'static str| move |line: &str| (line == wanted).then_some(());
    child.wait_for(has("started")).expect("it starts");
    child.signal(Signal::TERM);
    child.wait_for(has("terminated")).expect("the program has the signal");
}

#[test]
fn a_server_of_another_protocol_is_refused() {
    let output = Program::run(&docroot(), "websocket.php", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("only Swoole\\Server and Swoole\\Http\\Server can be run"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
    let output = Program::run(&docroot(), "missing.php", &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no file"));
}

#[test]
fn a_server_that_cannot_start_is_reported_and_start_is_false() {
    let output = Program::run(&docroot(), "child.php", &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("cannot start a server"), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "false\n");
}

#[test]
fn options_that_restrict_are_honored_or_refused() {
    let output = Program::run(&docroot(), "restricted.php", &["dispatch_func"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("cannot be honored") && errors.contains("dispatch_func"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
    let program = Program::start(docroot(), "restricted.php", &[]);
    let form =
        Request::post("/", "application/x-www-form-urlencoded", "a=b").header("Cookie", "c=d");
    assert_eq!(program.client().send(&form).expect(200).text(), "[null,null,[]]");
    let part = |name: &str, data: &str| {
        format!(
            "--X\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n\r\n{data}\r\n"
        )
    };
    let body = part("small", "abc") + &part("large", "abcd") + "--X--\r\n";
    let upload = Request::post("/", "multipart/form-data; boundary=X", body);
    let wanted = r#"[null,null,{"small":[0,3,true],"large":[1,0,false]}]"#;
    assert_eq!(program.client().send(&upload).expect(200).text(), wanted);
}

#[test]
fn an_invalid_port_is_reported_with_its_line() {
    let output = Program::run(&docroot(), "port.php", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("invalid port 80800") && text.contains("port.php(3)"), "{text}");
    assert_eq!(output.status.code(), Some(255));
}

#[test]
fn tables_atomics_and_locks_have_their_results() {
    let answer: Value = serde_json::from_str(&printed("table.php", &[])).expect("it is JSON");
    assert_eq!(
        answer,
        json!([
            true,
            {"id": 1, "name": "long", "share": 0.5},
            "long",
            false,
            [true, false, 1],
            [5, 4, 0.75, 1],
            {"id": 4, "name": "x", "share": 0.75},
            {"a": 4, "new": 1},
            [true, false, 1],
            [75, 76, 64, true],
            76,
            [12, 11, 11, true, false, 3],
            4_294_967_295_u64,
            [-4, -4],
            [true, false, true, true, true],
            [true, true, false, true, true, true, true],
        ])
    );
}

#[test]
fn rows_of_a_table_are_whole_while_writers_are_killed() {
    assert_eq!(printed("table_writers.php", &["8", "2"]), "whole\n");
}

#[test]
fn locks_of_killed_readers_and_writers_are_free() {
    let wanted = "[true,false,true]\n[true,true]\n[true,false,true,true,true,false]\n\
                  [false,true,true,false]\n[false,true,true,true]\n";
    assert_eq!(printed("locks.php", &[]), wanted);
}

#[test]
fn events_come_when_they_are_due() {
    let program = Program::start(docroot(), "life.php", &[]);
    program.logs(&["event start"]);
    program.logs(&["event managerStart"]);
    program.logs(&["event workerStart 0"]);
    program.logs(&["event workerStart 1"]);
    program.logs(&["event workerStart 2"]);
    let ids = json(&program, "/ids");
    assert_eq!(
        (&ids["task"], &ids["pid"], &ids["manager"]),
        (&json!(false), &json!(true), &json!(true))
    );
    program.child().signal(Signal::TERM);
    assert_eq!(program.child().wait(), Some(0));
    program.logs(&["event workerStop"]);
    program.logs(&["event shutdown"]);
}

#[test]
fn the_start_is_called_without_pcntl() {
    let options = ["-d", "disable_functions=pcntl_fork"];
    let program = Program::start_with(docroot(), "hello.php", &options);
    program.logs(&["the server has started"]);
}

#[test]
fn timers_of_the_start_and_of_processes_run_until_the_server_stops() {
    let program = Program::start(docroot(), "life.php", &[]);
    let count = |key: &str| json(&program, &format!("/table?key={key}"))["count"].as_u64();
    let first = eventually("the coroutine of onStart", || count("manager"));
    let process = |pid| Process::of(u32::try_from(pid).expect("it is a process id"));
    let watcher = process(first);
    eventually("a process of the program", || count("process").is_some_and(|count| count > 2));
    program.logs(&["event process"]);
    // Killed, it is started again.
    let killed = count("processPid").expect("it runs");
    process(killed).kill();
    eventually("another process", || count("processPid").is_some_and(|pid| pid != killed));
    eventually("the timer of onStart", || count("start").is_some_and(|count| count > 2));
    // Its timer reloads the server, which starts another watcher and ends this one.
    json(&program, "/change");
    watcher.wait_until_gone();
    let another = eventually("another watcher", || count("manager").filter(|&pid| pid != first));
    let another = process(another);
    program.child().signal(Signal::TERM);
    another.wait_until_gone();
}

#[test]
fn tasks_are_performed_and_finished() {
    let program = Program::start(docroot(), "life.php", &[]);
    assert_eq!(json(&program, "/taskwait"), 42);
    assert_eq!(json(&program, "/taskco"), json!({"a": 2, "b": 4}));
    assert_eq!(json(&program, "/stats"), json!({"worker_num": 2, "task_worker_num": 1}));
    program.logs(&["task 0"]);
}

#[test]
fn memory_is_shared_by_all_processes() {
    let program = Program::start(docroot(), "life.php", &[]);
    let counts: Vec<Value> = (0..20).map(|_| json(&program, "/incr")).collect();
    assert_eq!(counts.last(), Some(&json!([20, 25])));
    assert_eq!(json(&program, "/taskwait"), 42);
    // The task worker is another program's child, and shares it as well.
    await_json(&program, "/table?key=tasks", &json!({"count": 1, "name": ""}));
}

#[test]
fn a_program_reloads_and_stops_its_server() {
    let program = Program::start(docroot(), "life.php", &[]);
    json(&program, "/incr");
    assert_eq!(json(&program, "/reload"), true);
    program.logs(&["event workerStop"]);
    // What was in shared memory is there after it.
    assert_eq!(json(&program, "/table?key=hits")["count"], 1);
    assert_eq!(json(&program, "/shutdown"), true);
    assert_eq!(program.child().wait(), Some(0));
}

/// The tables of the reference are those of the classes; `OUTBOARD_REGENERATE=1` writes them.
#[test]
fn the_reference_lists_every_method() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference.md");
    let text = std::fs::read_to_string(path).expect("it is there");
    let (begin, end) = ("<!-- generated -->\n", "<!-- end generated -->");
    let (head, rest) = text.split_once(begin).expect("it has a place for the tables");
    let (_, tail) = rest.split_once(end).expect("the place has an end");
    let wanted = format!("{head}{begin}{}{end}{tail}", printed("reference.php", &[]));
    if std::env::var_os("OUTBOARD_REGENERATE").is_some() {
        std::fs::write(path, wanted).expect("it can be written");
    } else {
        assert!(text == wanted, "regenerate it: OUTBOARD_REGENERATE=1");
    }
}

#[test]
fn a_daemon_has_its_pid_and_log_files_and_static_files() {
    let docroot = docroot();
    let folder = docroot.writable("var");
    let folder = folder.to_str().expect("the tests name it");
    let output = Program::run(&docroot, "daemon.php", &[folder]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let url = text.lines().find_map(|line| line.strip_prefix("listening on http://"));
    let address = url.and_then(|url| url.trim_end_matches('/').parse().ok());
    let mut client = Client::new(address.unwrap_or_else(|| panic!("no address in {text}")));
    let pid = std::fs::read_to_string(format!("{folder}/server.pid")).expect("it is written");
    let daemon = Process::of(pid.parse().expect("a number"));
    assert_eq!(client.get("/anything").expect(200).text(), "dynamic");
    let file = std::fs::read_to_string(docroot.path().join("test.txt"));
    assert_eq!(client.get("/test.txt").expect(200).text(), file.expect("it is there"));
    let pid = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("not 0");
    rustix::process::kill_process(pid, Signal::TERM).expect("it runs");
    daemon.wait_until_gone();
    let log = std::fs::read_to_string(format!("{folder}/server.log")).expect("it is written");
    assert!(log.contains("printed by the handler"), "{log}");
}
