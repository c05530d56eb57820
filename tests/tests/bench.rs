//! `outboard bench`: its reports match what the server did.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Backend, Certificate, Child, Docroot, Launch, Redis, Scratch, Server, eventually,
};
use rustix::process::Signal;
use serde_json::Value;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Output};
use std::time::Instant;

/// `outboard bench` with these arguments, to its end.
#[track_caller]
fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(Server::binary());
    let output = command.arg("bench").args(arguments).output().expect("the binary is there");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    output
}

/// The same for a result as JSON, with the exit code.
#[track_caller]
fn result(arguments: &[&str]) -> (Option<i32>, Value) {
    let scratch = Scratch::new("bench");
    let file = scratch.path().join("result.json");
    let mut all = vec!["--quiet", "--json", file.to_str().expect("a path of ASCII")];
    all.extend(arguments);
    let output = bench(&all);
    let text = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), serde_json::from_str(&text).expect("it is JSON"))
}

/// nginx in one process, which a signal stops as a whole.
struct Nginx {
    child: Child,
    port: u16,
    tls_port: u16,
    scratch: Scratch,
}

impl Nginx {
    fn start() -> Nginx {
        let scratch = Scratch::new("bench-nginx");
        Certificate::make(scratch.path(), "certificate", "IP:127.0.0.1");
        let path = scratch.path().display();
        for _ in 0..10 {
            let port = free_port();
            let tls_port = free_port();
            let configuration = format!(
                "daemon off; master_process off; pid {path}/pid; error_log stderr notice;\n\
                 events {{ worker_connections 256; }}\n\
                 http {{ access_log off; client_body_temp_path {path}/1; proxy_temp_path {path}/2;\n\
                 fastcgi_temp_path {path}/3; uwsgi_temp_path {path}/4; scgi_temp_path {path}/5;\n\
                 server {{ listen 127.0.0.1:{port} reuseport; listen unix:{path}/socket;\n\
                 listen 127.0.0.1:{tls_port} ssl http2; ssl_certificate {path}/certificate.pem;\n\
                 ssl_certificate_key {path}/certificate.key;\n\
                 location /few {{ keepalive_requests 5; return 200 hello; }}\n\
                 location / {{ return 200 hello; }} }} }}"
            );
            let file = scratch.file("nginx.conf", configuration);
            let launch = Launch::new("/usr/sbin/nginx").args(["-e", "stderr", "-c"]).arg(file);
            let child = launch.start();
            let ready = |line: &str| line.contains("using the").then_some(());
            match child.wait_for(ready) {
                Ok(()) => {
                    wait_for_listener(port);
                    return Nginx { child, port, tls_port, scratch };
                }
                Err(output) if output.contains("Address already in use") => continue,
                Err(output) => panic!("nginx does not start: {output}"),
            }
        }
        panic!("nginx found every port in use");
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

/// nginx logs its start before it listens.
fn wait_for_listener(port: u16) {
    let address = (Ipv4Addr::LOCALHOST, port);
    eventually("nginx listens", || std::net::TcpStream::connect(address).map(drop));
}

fn number(result: &Value, path: &str) -> f64 {
    let value = result.pointer(path).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("{path} is no number in {result}"))
}

#[test]
fn an_interrupted_run_gives_the_result_of_its_part() {
    let nginx = Nginx::start();
    let scratch = Scratch::new("bench-interrupted");
    let file = scratch.path().join("result.json");
    let run = Launch::new(Server::binary().to_str().expect("a path of ASCII"))
        .args(["bench", &nginx.url(), "-c", "4", "-r", "200", "-d", "1h", "--interval", "50ms"])
        .arg("--json")
        .arg(&file)
        .start();
    run.wait_for(|line| line.contains("/3600 s").then_some(())).expect("it has begun");
    run.signal(Signal::INT);
    assert_eq!(run.wait(), Some(130), "{}", run.output());

    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", run.output()));
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(result["partial"], true, "{result}");
    // What was due until then was sent, and the rate is that of the time until then.
    assert_eq!(number(&result, "/schedule/unsent"), 0.0, "{result}");
    assert_eq!(number(&result, "/schedule/due"), number(&result, "/sent"), "{result}");
    let rate = number(&result, "/responses") / number(&result, "/seconds");
    assert!((number(&result, "/rate") - rate).abs() < 1.0, "{result}");
}

#[test]
fn two_results_are_compared() {
    let nginx = Nginx::start();
    let scratch = Scratch::new("bench-diff");
    let file = |name: &str, connections: &str| {
        let path = scratch.path().join(name).display().to_string();
        bench(&["-q", &nginx.url(), "-c", connections, "-n", "200", "--json", &path]);
        path
    };
    let (a, b) = (file("a.json", "2"), file("b.json", "4"));
    let output = bench(&["diff", &a, &b]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    for words in ["latency 99 %", "different settings: connections: 2 and 4", "lab ab"] {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
    let other = scratch.file("other.json", "{}").display().to_string();
    assert_eq!(bench(&["diff", &a, &other]).status.code(), Some(2));
}

/// A server that is stopped for S seconds of T lets the requests due in that time wait for what is
/// left of S: the share S/T of all, evenly from S down to 0. So the latency at quantile q is at
/// least S - (1 - q)·T. Times of service know of as many as there are connections.
#[test]
fn a_stall_shows_in_the_corrected_percentiles_as_computed() {
    const SECONDS: f64 = 4.0;
    let nginx = Nginx::start();
    let scratch = Scratch::new("bench-stall");
    let file = scratch.path().join("result.json");
    let run = Launch::new(Server::binary().to_str().expect("a path of ASCII"))
        .args(["bench", &nginx.url(), "-c", "8", "-r", "500", "-d", "4s", "--interval", "100ms"])
        .arg("--json")
        .arg(&file)
        .start();
    // A line for each interval: time passes by them.
    let until = |seconds: f64| {
        let now = |line: &str| line.split_once("/4 s")?.0.trim().parse::<f64>().ok();
        let passed = |line: &str| now(line).filter(|&now| now >= seconds).map(drop);
        run.wait_for(passed).expect("the run goes on");
    };
    until(1.0);
    nginx.child.signal(Signal::STOP);
    let stopped = Instant::now();
    until(2.0);
    let stalled = stopped.elapsed().as_secs_f64();
    nginx.child.signal(Signal::CONT);
    run.wait();

    let text = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", run.output()));
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    for (name, quantile) in [("p90_ns", 0.9), ("p99_ns", 0.99)] {
        let expected = stalled - (1.0 - quantile) * SECONDS;
        let found = number(&result, &format!("/latency/{name}")) / 1e9;
        assert!(found > expected - 0.05, "{name}: {found} s, computed {expected} s");
    }
    let longest = number(&result, "/latency/max_ns") / 1e9;
    assert!(longest > stalled - 0.01, "{longest} of {stalled}");
    // 8 of 2000 requests were in flight in the stall: 0.4 %.
    let (service, corrected) = ("/service/p99_ns", "/latency/p99_ns");
    assert!(number(&result, service) < number(&result, corrected) / 2.0, "{result}");
    assert_eq!(number(&result, "/schedule/due"), 2000.0);
    assert_eq!(number(&result, "/failures/total"), 0.0);
}

#[test]
fn every_request_is_counted_once() {
    let nginx = Nginx::start();
    for keep in [&[][..], &["--no-keepalive"]] {
        let mut arguments = vec!["-n", "500", "-c", "7", "-t", "2"];
        let url = nginx.url();
        arguments.push(&url);
        arguments.extend(keep);
        let (_, result) = result(&arguments);
        assert_eq!(number(&result, "/sent"), 500.0);
        assert_eq!(number(&result, "/responses"), 500.0);
        assert_eq!(number(&result, "/body_bytes"), 2500.0);
        assert_eq!(number(&result, "/latency/count"), 500.0);
        let opened = if keep.is_empty() { 7.0 } else { 500.0 };
        assert_eq!(number(&result, "/connections_opened"), opened);
    }
}

/// nginx ends these connections after five responses.
#[test]
fn connections_closed_by_the_server_are_reopened() {
    let nginx = Nginx::start();
    let url = format!("{}few", nginx.url());
    let (_, closed) = result(&[&url, "-n", "100", "-c", "2"]);
    let (_, open) = result(&[&url, "-r", "200", "-d", "500ms", "-c", "4"]);
    for result in [closed, open] {
        assert_eq!(number(&result, "/responses"), 100.0, "{result}");
        assert_eq!(result["failures"]["total"], 0, "{result}");
        assert!(number(&result, "/connections_opened") >= 20.0, "{result}");
        assert!(number(&result, "/connections_closed_by_server") >= 16.0, "{result}");
    }
}

#[test]
fn a_bad_response_is_counted_in_its_class() {
    let backend = Backend::start();
    let url = |path: &str| format!("{}{path}", backend.url().trim_end_matches('/'));
    for (path, more, class) in [
        ("/status/503", &[][..], "status"),
        ("/text/x", &["--check", "status=204"], "status"),
        ("/large/100", &["--check", "length=99"], "length"),
        ("/text/words", &["--check", "body~other"], "body"),
        ("/cut", &[], "closed"),
        ("/both-lengths", &[], "malformed"),
        ("/silent", &["--timeout", "100ms"], "timeout"),
    ] {
        let url = url(path);
        let mut arguments = vec![url.as_str(), "-n", "4", "-c", "2"];
        arguments.extend(more);
        let (_, result) = result(&arguments);
        let failures = &result["failures"];
        assert_eq!(failures[class], 4, "{path}: {failures}");
        assert_eq!(failures["total"], 4, "{path}: {failures}");
    }
}

#[test]
fn refused_requests_have_times_of_their_own() {
    let backend = Backend::start();
    let scratch = Scratch::new("bench");
    let scenario = scratch.file(
        "scenario.toml",
        "[[scenario]]\nname = \"taken\"\nstep = [{ request = \"GET /text/x\" }]\n\
         [[scenario]]\nname = \"refused\"\nstep = [{ request = \"GET /status/503\" }]\n",
    );
    let scenario = scenario.to_str().expect("a path of ASCII");
    let (_, result) = result(&[&backend.url(), "-n", "40", "-c", "2", "--scenario", scenario]);
    let refused = result["statuses"]["503"].as_f64().expect("a count");
    let count = |kind: &str| number(&result, &format!("/{kind}/service/count"));
    assert!((1.0..40.0).contains(&refused), "{result}");
    assert_eq!((count("accepted"), count("refused")), (40.0 - refused, refused));
}

#[test]
fn bodies_of_every_framing_are_read_completely() {
    let backend = Backend::start();
    for path in ["chunked", "until-close", "large/100000"] {
        let url = format!("{}/{path}", backend.url().trim_end_matches('/'));
        let (_, result) = result(&[&url, "-n", "6", "-c", "2"]);
        assert_eq!(result["failures"]["total"], 0, "{path}: {result}");
        assert_eq!(number(&result, "/responses"), 6.0);
        assert!(number(&result, "/body_bytes") >= 6.0);
    }
}

#[test]
fn a_check_that_fails_is_exit_code_3_and_one_that_holds_is_none() {
    let nginx = Nginx::start();
    let url = nginx.url();
    let output = bench(&[&url, "-n", "20", "-c", "2", "-q", "--check", "body~absent"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let output = bench(&[&url, "-n", "20", "-c", "2", "-q", "--check", "body~hello"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_rate_that_cannot_be_sent_is_refused_with_the_reason() {
    let backend = Backend::start();
    let (code, result) =
        result(&[&backend.url(), "-r", "500000", "-c", "1", "-d", "300ms", "-X", "HEAD"]);
    assert_eq!(code, Some(5), "{result}");
    assert_eq!(result["valid"], false);
    let warnings = result["warnings"].as_array().expect("they are listed");
    let missed = warnings.iter().find(|warning| warning["name"] == "rate-missed");
    let why = missed.and_then(|warning| warning["why"].as_str()).expect("it says why");
    assert!(why.contains("requests that were due were sent"), "{why}");
    let schedule = &result["schedule"];
    let (due, unsent) = (number(schedule, "/due"), number(schedule, "/unsent"));
    assert_eq!(due, 150_000.0);
    assert_eq!(due - unsent, number(&result, "/sent"));
}

#[test]
fn no_server_is_exit_code_1_and_a_usage_error_exit_code_2() {
    let url = format!("http://127.0.0.1:{}/", free_port());
    for (arguments, code, words) in [
        (&[url.as_str()][..], 1, "is the server running?"),
        (&["gopher://x"], 2, "a URL begins with"),
        (&[], 2, "<URL>"),
        (&[url.as_str(), "--slo", "p99"], 2, "p99<50ms"),
        (&[url.as_str(), "-c", "0"], 2, "no connections"),
        (&[url.as_str(), "-X", "GE T"], 2, "no method"),
        (&["ab", "-Q", url.as_str()], 2, "-Q"),
    ] {
        let output = bench(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}

#[test]
fn results_are_written_in_every_format() {
    let nginx = Nginx::start();
    let scratch = Scratch::new("bench-files");
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let forms = ["json", "ndjson", "csv", "hgrm", "html"];
    let files: Vec<(String, String)> =
        forms.iter().map(|form| (format!("--{form}"), path(form))).collect();
    let url = nginx.url();
    let mut arguments = vec![url.as_str(), "-d", "300ms", "--interval", "100ms", "-c", "2", "-q"];
    files.iter().for_each(|(flag, file)| arguments.extend([flag.as_str(), file.as_str()]));
    bench(&arguments);
    let read = |form: &str| std::fs::read_to_string(path(form)).expect("it was written");
    let result: Value = serde_json::from_str(&read("json")).expect("it is JSON");
    assert_eq!(result["schema"], "outboard.bench.v1");
    let intervals = result["intervals"].as_array().expect("there is a time series").len();
    assert_eq!(read("ndjson").lines().count(), intervals);
    assert_eq!(read("csv").lines().count(), intervals + 1);
    assert!(read("hgrm").contains("#[Mean"), "{}", read("hgrm"));
    assert!(read("html").contains("<svg"), "{}", read("html"));
    let sum: f64 =
        (0..intervals).map(|at| number(&result, &format!("/intervals/{at}/responses"))).sum();
    assert_eq!(sum, number(&result, "/responses"));
}

#[test]
fn the_servers_cpu_time_is_reported_per_request() {
    let nginx = Nginx::start();
    let pid = nginx.child.pid().to_string();
    let (_, result) = result(&[&nginx.url(), "-d", "1s", "-c", "4", "--pid", &pid]);
    let each_us = number(&result, "/server/cpu_us_per_request");
    assert!(each_us > 0.1 && each_us < 10_000.0, "{result}");
    assert!(number(&result, "/server/by_program/nginx") > 0.0, "{result}");
}

#[test]
fn a_unix_socket_is_as_good_as_a_port() {
    let nginx = Nginx::start();
    let url = format!("http+unix:{}/socket:/", nginx.scratch.path().display());
    let (code, result) = result(&[&url, "-n", "100", "-c", "4", "--check", "body~hello"]);
    assert_eq!(code, Some(0), "{result}");
    assert_eq!(number(&result, "/responses"), 100.0);
}

#[test]
fn tls_http2_and_certificates_are_supported() {
    let nginx = Nginx::start();
    let url = format!("https://127.0.0.1:{}/", nginx.tls_port);
    for more in [&[][..], &["--http2"], &["--no-keepalive"], &["--http2", "--no-keepalive"]] {
        let mut arguments = vec![url.as_str(), "-n", "30", "-c", "3", "--insecure"];
        arguments.extend(["--check", "body~hello"].iter().chain(more));
        let (code, result) = result(&arguments);
        assert_eq!(code, Some(0), "{more:?}: {result}");
        assert_eq!(number(&result, "/responses"), 30.0);
    }
    let one_by_one = [&url, "-n", "20", "-c", "1", "--insecure", "--no-keepalive"];
    let (_, resumed) = result(&one_by_one);
    assert!(number(&resumed, "/tls_sessions_resumed") >= 15.0, "{resumed}");
    let (_, full) = result(&[&one_by_one[..], &["--no-resumption"]].concat());
    assert_eq!(number(&full, "/tls_sessions_resumed"), 0.0, "{full}");
    let output = bench(&[&url, "-n", "1"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("certificate"), "{text}");
}

#[test]
fn streams_share_a_connection_and_outlive_it() {
    let nginx = Nginx::start();
    let url = format!("https://127.0.0.1:{}/", nginx.tls_port);
    let many = ["--http2", "--insecure", "-c", "2", "--streams", "8", "--check", "body~hello"];
    let measured = |further: &[&str]| result(&[&[url.as_str()], &many[..], further].concat());
    let (code, found) = measured(&["-n", "400"]);
    assert_eq!((code, number(&found, "/responses")), (Some(0), 400.0), "{found}");
    assert_eq!((number(&found, "/connections_opened"), number(&found, "/streams")), (2.0, 8.0));
    // A server that closes a connection answers its pending requests; the others go to the next one.
    // nginx wants a thousand.
    let (code, found) = measured(&["-n", "5000"]);
    assert_eq!((code, number(&found, "/responses")), (Some(0), 5000.0), "{found}");
    assert!(number(&found, "/connections_opened") >= 5.0, "{found}");
    let (_, found) = measured(&["-r", "1000", "-d", "1s"]);
    assert_eq!(number(&found, "/failures/total"), 0.0, "{found}");
    let refused = bench(&[&nginx.url(), "--streams", "2"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

/// php-fpm on a Unix socket in `scratch`.
fn start_fpm(scratch: &Scratch) -> Child {
    let user =
        if rustix::process::geteuid().is_root() { "user=www-data\ngroup=www-data\n" } else { "" };
    let pool = format!(
        "[global]\nerror_log=/proc/self/fd/2\ndaemonize=no\n[www]\n{user}listen={}/fpm.sock\n\
         listen.mode=0666\npm=static\npm.max_children=2\n",
        scratch.path().display()
    );
    let fpm = Launch::new("/usr/sbin/php-fpm8.2")
        .args(["--nodaemonize", "--fpm-config"])
        .arg(scratch.file("fpm.conf", pool))
        .start();
    let ready = |line: &str| line.contains("ready to handle connections").then_some(());
    fpm.wait_for(ready).unwrap_or_else(|output| panic!("php-fpm does not start: {output}"));
    fpm
}

#[test]
fn php_fpm_is_measured_by_fastcgi_and_a_scenario_logs_in() {
    let docroot = Docroot::of("bench");
    let scratch = docroot.beside();
    let _fpm = start_fpm(scratch);
    let base =
        format!("fcgi+unix:{}/fpm.sock:{}", scratch.path().display(), docroot.path().display());

    for keep in [&[][..], &["--no-keepalive"]] {
        let url = format!("{base}/count.php?a=b");
        let mut arguments = vec![url.as_str(), "-n", "40", "-c", "2", "-b", "{rand:70000}"];
        arguments.extend(["--check", "body~70000b"].iter().chain(keep));
        let (code, result) = result(&arguments);
        assert_eq!(code, Some(0), "{result}");
    }

    scratch.file("users.csv", "user,unused\nada,1\n\"bob & co\",2\n");
    let scenario = scratch.file(
        "scenario.toml",
        r#"
        [[feed]]
        file = "users.csv"
        [[scenario]]
        name = "log in"
        [[scenario.step]]
        request = "GET /login.php"
        capture = { token = 'value="([^"]+)"' }
        [[scenario.step]]
        request = "POST /login.php?u={user}"
        form = { user = "{user}", token = "{token}" }
        check = { status = 201, body = "welcome" }
        "#,
    );
    let scenario = scenario.to_str().expect("a path of ASCII");
    let url = format!("{base}/login.php");
    let (code, result) = result(&[&url, "-n", "80", "-c", "2", "--scenario", scenario]);
    assert_eq!(code, Some(0), "{result}");
    assert_eq!(number(&result, "/responses"), 80.0);
}

#[test]
fn redis_is_measured_in_its_own_protocol() {
    let redis = Redis::start();
    redis.tell(&["CONFIG", "SET", "requirepass", "\"\""]);
    let url = format!("redis+unix:{}:/key{{key}}", redis.socket().display());
    let usual = [&url, "--fill-url", "--keys", "1", "-n", "40", "-c", "2"];
    let (_, missing) = result(&usual);
    assert_eq!(missing["statuses"]["404"], 40, "{missing}");
    let set = [&usual[..], &["-X", "SET", "-b", "{rand:70000}"]].concat();
    assert_eq!(result(&set).0, Some(0));
    let get = [&usual[..], &["--zipf", "--check", "length=70000"]].concat();
    let (code, result) = result(&get);
    assert_eq!((code, number(&result, "/responses")), (Some(0), 40.0), "{result}");
}

#[test]
fn ab_and_wrk_have_their_layouts() {
    let nginx = Nginx::start();
    let url = nginx.url();
    for (arguments, lines) in [
        (
            &["ab", "-n", "100", "-c", "4", "-k", &url][..],
            &["Complete requests:      100\n", "Document Length:        5 bytes\n", "\n  99% "][..],
        ),
        (&["ab", "-n50", "-c2", &url], &["Failed requests:        0\n", "(longest request)"]),
        (
            &["wrk", "-c4", "-t1", "-d", "1s", "--latency", &url],
            &[
                "  1 threads and 4 connections\n",
                "  Thread Stats   Avg ",
                "    99%  ",
                "Requests/sec: ",
            ],
        ),
    ] {
        let output = bench(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        for line in lines {
            assert!(text.contains(line), "{arguments:?}: {line:?} is not in:\n{text}");
        }
    }
}

#[test]
fn generated_keys_and_numbers_reach_the_server() {
    let backend = Backend::start();
    let url = format!("{}/echo?n={{seq}}", backend.url().trim_end_matches('/'));
    let (_, result) = result(&[
        &url,
        "--fill-url",
        "-n",
        "30",
        "-c",
        "3",
        "-X",
        "PUT",
        "-H",
        "X-Key: k{key}",
        "--keys",
        "1",
        "--check",
        "body~X-Key: k0",
    ]);
    assert_eq!(result["failures"]["total"], 0, "{result}");
    let mut heard: Vec<String> =
        backend.heard().into_iter().filter(|line| line.contains("n=")).collect();
    heard.sort();
    heard.dedup();
    assert_eq!(heard.len(), 30, "{heard:?}");
}

#[test]
fn a_search_ends_with_a_rate_that_meets_the_threshold() {
    let nginx = Nginx::start();
    let output = bench(&[
        "find",
        "--slo",
        "p50<5s",
        "--ceiling",
        "100",
        "--trial",
        "200ms",
        "--precision",
        "0.3",
        "-c",
        "4",
        &nginx.url(),
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("requests per second meet p50<5s"), "{text}");
    let output = bench(&[
        "find",
        "--slo",
        "rate>1000",
        "--ceiling",
        "40",
        "--trial",
        "100ms",
        "--precision",
        "0.5",
        "-c",
        "4",
        &nginx.url(),
    ]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn the_generator_measures_itself() {
    let output = bench(&["null", "-d", "200ms", "-c", "4", "-r", "500"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("requests/s in a closed loop"), "{text}{output:?}");
    assert!(text.contains("µs of CPU per request"), "{text}");
}
