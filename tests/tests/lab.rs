//! `outboard lab`: it measures, judges, and refuses to judge what cannot be compared.
//!
//! Nothing here depends on the speed of the machine: noise is accepted (`--noise 100`), and servers
//! that differ differ by much.

#![forbid(unsafe_code)]

use outboard_e2e::{Browser, Configured, Docroot, Launch, Scratch, Server};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How a server answers its nth request.
type Respond = fn(request: u64, head: &str) -> String;

/// A server with persistent connections that runs until the test ends; returns its URL.
fn serve(answer: Respond) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    let requests = Arc::new(AtomicU64::new(0));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let requests = Arc::clone(&requests);
            thread::spawn(move || converse(&stream, &requests, answer));
        }
    });
    format!("http://{address}/")
}

fn converse(mut stream: &TcpStream, requests: &AtomicU64, answer: Respond) {
    let mut head = String::new();
    let _ = stream.set_nodelay(true);
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if !line.is_empty() {
            head.push_str(&(line + "\n"));
            continue;
        }
        let text = answer(requests.fetch_add(1, Ordering::Relaxed), &head);
        if stream.write_all(text.as_bytes()).is_err() || head.contains("Connection: close") {
            return;
        }
        head.clear();
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn right(_: u64, _: &str) -> String {
    ok("right")
}

fn slow(_: u64, _: &str) -> String {
    thread::sleep(Duration::from_millis(20));
    ok("right")
}

/// `outboard lab ab` in short slices, with further arguments.
///
/// Access logs may differ: the servers are threads of this process, so the labs of other tests
/// count as their processes.
fn ab(a: &str, b: &str, further: &[&str]) -> Output {
    let usual = ["--pairs", "8", "--slice", "0.05", "-c", "4", "--noise", "100", "--gate"];
    let mut command = Command::new(Server::binary());
    command.args(["lab", "ab", "--a", a, "--b", b, "--accept", "access log"]);
    command.args(usual).args(further);
    command.stdin(Stdio::null()).output().expect("the binary is there")
}

/// It ended with this code and printed these words.
#[track_caller]
fn assert_ended(output: &Output, code: i32, words: &[&str]) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
    for word in words {
        assert!(stdout.contains(word), "{word:?} is not in:\n{stdout}\n{stderr}");
    }
}

#[test]
fn the_gate_distinguishes_worse_from_better() {
    let (quick, slow) = (serve(right), serve(slow));
    let rate = ["--metric", "rate"];
    assert_ended(&ab(&quick, &slow, &rate), 3, &["B is worse than A"]);
    assert_ended(&ab(&slow, &quick, &rate), 0, &["B is better than A"]);
}

#[test]
fn servers_that_answer_differently_are_not_compared() {
    let other = serve(|_, _| ok("other"));
    let output = ab(&serve(right), &other, &["--metric", "rate"]);
    assert_ended(
        &output,
        5,
        &["the stacks answer / differently", "B: 200 with 5 bytes: \"other\""],
    );
}

#[test]
fn a_server_that_answers_wrong_bodies_under_load_is_not_ranked() {
    let wrong_later: Respond = |request, _| ok(if request < 500 { "right" } else { "wrong" });
    let output = ab(&serve(right), &serve(wrong_later), &["--metric", "rate"]);
    assert_ended(&output, 5, &["against A: invalid: B: ", "responses had other bytes"]);
}

#[test]
fn a_server_that_fails_under_load_is_not_ranked() {
    let failing_later: Respond = |request, _| match request {
        0..500 => ok("right"),
        _ => "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".into(),
    };
    let output = ab(&serve(right), &serve(failing_later), &["--metric", "rate"]);
    assert_ended(&output, 5, &["against A: invalid: B: ", "requests failed"]);
}

#[test]
fn unequal_settings_are_rejected_unless_accepted() {
    let compressing: Respond = |_, head| match head.contains("Accept-Encoding: gzip") {
        true => ok("right").replacen("\r\n", "\r\nContent-Encoding: gzip\r\n", 1),
        false => ok("right"),
    };
    let (plain, compressing) = (serve(right), serve(compressing));
    let rate = ["--metric", "rate"];
    let words = ["their settings differ: compression differs", "A has none", "B has gzip"];
    assert_ended(&ab(&plain, &compressing, &rate), 5, &words);
    let accepted =
        ab(&plain, &compressing, &[rate.as_slice(), &["--accept", "compression"]].concat());
    assert_ne!(accepted.status.code(), Some(5), "{accepted:?}");
}

/// Outboard with less memory for PHP than its peers have.
#[test]
fn a_run_of_stacks_that_are_set_up_differently_is_refused() {
    let scratch = Scratch::new("lab-unequal");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" != serve ] || sed -i s/128M/64M/ \"${{3%/*}}/php.ini\"\nexec {:?} \"$@\"\n",
        Server::binary()
    );
    let other = scratch.file("outboard", script);
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut run = Command::new(Server::binary());
    run.env("OUTBOARD_BIN", other).args(["lab", "run", "hello", "--quick", "--gate"]);
    let output = run.output().expect("the binary is there");
    let words = ["their settings differ: memory_limit differs", "outboard has 64M"];
    assert_ended(&output, 5, &words);
}

#[test]
fn the_generator_is_measured_beside_others() {
    let mut run = Command::new(Server::binary());
    run.args(["lab", "run", "generator", "--slices", "1", "--seconds", "0.2", "--noise", "100"]);
    let output = run.output().expect("the binary is there");
    let words = [
        "CPU per request on null server ≤ 1.15 × wrk's",
        "CPU per request on nginx-return ≤ 1.15 × wrk's",
        "p50 as wrk's",
        "achieved rate within 0.5 %",
        "rate as h2load's",
    ];
    assert_ended(&output, 0, &words);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("not measured"), "{output:?}");
}

/// Every target of the store is in the report, however short the slices are.
#[test]
fn the_entity_store_is_measured_row_by_row() {
    let mut run = Command::new(Server::binary());
    run.args(["lab", "run", "entity", "--slices", "1", "--seconds", "0.05", "--noise", "100"]);
    let output = run.output().expect("the binary is there");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for words in [
        "PUT 15,000/s c=512: p99 below that of the synchronous store",
        "queue operations ≤ 1 % of CPU",
        "the capacity of the processor: good responses ≥ 0.9 × peak",
        "the capacity of the disk: p99 of the accepted ≤ 5 × the unloaded",
        "the capacity of the disk for 1 s: recovered within 1 s",
        "YCSB E: 95 % scans, 5 % inserts",
        "GET: requests per second of CPU ≥ 0.8 × Redis",
    ] {
        assert!(stdout.contains(words), "{words:?} is not in:\n{stdout}");
    }
    let same = stdout.lines().find(|line| line.contains("the three ways give the same"));
    assert!(same.is_some_and(|line| line.contains(" pass ")), "{stdout}");
}

#[test]
fn a_command_that_does_not_serve_is_reported() {
    let output = ab("false {port}", &serve(right), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("A does not answer"), "{output:?}");
}

/// In a network of its own, with thirty ports.
#[test]
fn exhausted_ports_are_refused() {
    let root = Scratch::new("lab-root");
    root.file("index.php", "<?php echo 'ok';");
    let script = "ip link set lo up && \
                  echo '40000 40029' > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", script, "sh"])
        .arg(Server::binary())
        .args(["lab", "ab", "--a", "nginx-fpm", "--b", "nginx-fpm", "--root"])
        .arg(root.path())
        .args(["-c", "60", "--pairs", "8", "--slice", "0.02", "--noise", "100", "--gate"])
        .output()
        .expect("util-linux is there");
    assert_ended(&output, 5, &["no port was left to connect from", "ip_local_port_range"]);
}

#[test]
fn a_report_is_one_page_that_fits_and_fetches_nothing() {
    let out = Scratch::new("lab-report");
    let folder = out.path().to_str().expect("it is text");
    let (quick, slow) = (serve(right), serve(slow));
    let further = ["--metric", "rate", "--metric", "p99", "--out", folder];
    // On a busy machine p99 tells nothing (4): the report says that as well.
    let ended = ab(&slow, &quick, &further).status.code();
    assert!(matches!(ended, Some(0 | 4)), "{ended:?}");
    let report: Value =
        serde_json::from_slice(&read(&out.path().join("report.json"))).expect("it is JSON");
    assert_eq!(report["comparisons"][0]["class"]["class"], "better", "{report:#}");
    assert!(String::from_utf8_lossy(&read(&out.path().join("report.md"))).contains("A against B"));

    let mut browser = Browser::start();
    browser.visit(&format!("file://{folder}/report.html"));
    assert_eq!(browser.complaints("file:"), Vec::<String>::new());
    let fetched = browser.evaluate("performance.getEntriesByType('resource').length");
    assert_eq!(fetched, 0);
    let headline = browser.evaluate("document.querySelector('h1').textContent");
    assert!(headline.as_str().is_some_and(|text| text.contains("2 comparisons: ")), "{headline}");
    for width in [360, 1280] {
        let overflow = browser.evaluate(&format!(
            "new Promise(done => {{
                const frame = document.createElement('iframe');
                frame.style.width = '{width}px';
                frame.srcdoc = document.documentElement.outerHTML;
                frame.onload = () => {{
                    const root = frame.contentDocument.documentElement;
                    done(root.scrollWidth - root.clientWidth);
                    frame.remove();
                }};
                document.body.append(frame);
            }})"
        ));
        assert_eq!(overflow, 0, "at {width} px");
    }
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn the_report_has_both_profiles_and_their_difference() {
    let (root, out) = (Scratch::new("lab-root"), Scratch::new("lab-profile"));
    root.file(
        "index.php",
        "<?php function work() { return hash('md5', str_repeat('x', 99999)); } work();",
    );
    let mut ab = Command::new(Server::binary());
    ab.args([
        "lab",
        "ab",
        "--a",
        "outboard",
        "--b",
        "outboard",
        "--path",
        "/index.php",
        "--profile",
    ]);
    ab.args(["--pairs", "8", "--slice", "0.05", "-c", "4", "--noise", "100", "--root"])
        .arg(root.path());
    let output = ab.arg("--out").arg(out.path()).output().expect("the binary is there");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report: Value =
        serde_json::from_slice(&read(&out.path().join("report.json"))).expect("it is JSON");
    let profiles = report["profiles"].as_array().expect("a list");
    for stack in ["A", "B"] {
        let is_its = |profile: &&Value| profile["stack"] == stack && profile["kind"] == "php";
        let profile = profiles.iter().find(is_its).unwrap_or_else(|| panic!("none of {stack}"));
        let stacks = profile["folded"].as_object().expect("stacks and counts");
        assert!(stacks.keys().any(|stack| stack.ends_with(";work;hash")), "{profile:#}");
    }
    let html = String::from_utf8_lossy(&read(&out.path().join("report.html"))).into_owned();
    assert!(html.contains("PHP functions: from A to B"), "the difference is missing");
}

#[test]
fn a_report_is_shown_again_as_it_was() {
    let out = Scratch::new("lab-report");
    let folder = out.path().to_str().expect("it is text");
    let first = ab(&serve(slow), &serve(right), &["--metric", "rate", "--out", folder]);
    let mut again = Command::new(Server::binary());
    again.args(["lab", "report", "--gate"]).arg(out.path().join("report.json"));
    let again = again.output().expect("the binary is there");
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(again.status.code(), first.status.code());
}

#[test]
fn a_lab_that_is_killed_leaves_nothing_behind() {
    let (root, scratch) = (Scratch::new("lab-root"), Scratch::new("lab-killed"));
    root.file("index.php", "<?php echo 'ok';");
    let lab = Launch::new(&Server::binary().to_string_lossy())
        .env("TMPDIR", scratch.path())
        .args(["lab", "ab", "--a", "nginx-fpm", "--b", "php-server", "--accept", "keep-alive"])
        .args(["--slice", "0.1", "--noise", "100", "--root"])
        .arg(root.path())
        .start();
    lab.wait_for(|line| line.contains("round").then_some(())).expect("it measures");
    let folder = || std::fs::read_dir(scratch.path()).expect("it is ours").count();
    assert_eq!(folder(), 1);
    let pid = rustix::process::Pid::from_raw(lab.pid() as i32).expect("it is a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
    // The janitor ends what was started, removes the folder, and closes its output by ending.
    let everything = lab.wait_for(|_| None::<()>).expect_err("nobody writes any more");
    assert_eq!(folder(), 0, "{everything}");
}

#[test]
fn mistakes_are_reported_before_anything_is_started() {
    let outboard = |arguments: &[&str]| {
        Command::new(Server::binary()).args(arguments).output().expect("the binary is there")
    };
    for (arguments, word) in [
        (vec!["lab", "run"], "--all"),
        (vec!["lab", "run", "no-such-experiment"], "no-such-experiment"),
        (vec!["lab", "ab", "--a", "nowhere", "--b", "outboard"], "lab stacks"),
    ] {
        let ended = outboard(&arguments);
        assert_eq!(ended.status.code(), Some(2), "{ended:?}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains(word), "{ended:?}");
    }
    let listed = outboard(&["lab", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for seed in ["offload", "workers", "page-cache", "entity", "framework"] {
        assert!(listed.contains(seed), "{seed} is not in:\n{listed}");
    }
}

#[test]
fn a_server_without_the_lab_names_where_it_was_looked_for() {
    let scratch = Scratch::new("lab-missing");
    let alone = scratch.path().join("outboard");
    std::fs::copy(Server::binary(), &alone).expect("the binary is there");
    let output = Command::new(&alone).args(["lab", "list"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let beside = scratch.path().join("outboard-lab").display().to_string();
    for words in ["the lab is not installed", &beside, "cargo build --release -p outboard-lab"] {
        assert!(stderr.contains(words), "{words:?} is not in: {stderr}");
    }
}

/// Its figures are the same again, and the server that was stepped serves on.
#[test]
fn a_footprint_is_exact_and_leaves_the_server_well() {
    let docroot = Docroot::of("files");
    docroot.put("tiny.txt", "ok");
    let site = Configured::start(docroot, &Configured::text(""));
    let url = format!("http://{}/tiny.txt", site.address());
    let footprint = || {
        let mut command = Command::new(Server::binary());
        command.args(["lab", "footprint", &url, "-n", "3", "--functions", "5", "--json"]);
        let output = command.output().expect("the binary is there");
        assert_ended(&output, 0, &[]);
        let rows: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        rows.as_array().expect("rows").iter().find(|row| row["process"] == "outboard").cloned()
    };
    let (first, second) = (footprint().expect("traced"), footprint().expect("traced"));
    let figure = |row: &Value, name: &str| row[name].as_u64().expect("a number");
    for name in ["instructions", "code_lines", "data_lines", "pages", "system_calls"] {
        let (first, second) = (figure(&first, name), figure(&second, name));
        assert!(first.abs_diff(second) * 5 <= first, "{name}: {first}, then {second}");
    }
    // A read and a write at least; and far from what timers and start-up would add.
    assert!((2..20).contains(&figure(&first, "system_calls")), "{first}");
    assert!((1_000..100_000).contains(&figure(&first, "instructions")), "{first}");
    assert_eq!(first["places"].as_array().expect("places").len(), 5, "{first}");
    assert_eq!(site.client().get("/tiny.txt").expect(200).text(), "ok");
}
