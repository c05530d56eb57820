//! PHP misbehaves, the server stops or reloads, and what clients see of it.
//! Requests are held at a gate (a named pipe), so that what happens meanwhile is in order.

#![forbid(unsafe_code)]

use outboard_e2e::{App, Client, Connection, Docroot, Fifo, Process, Request, Server, Site};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server of the fixtures.
struct Bench {
    docroot: Docroot,
    server: Server,
}

impl Bench {
    fn start(configure: impl Fn(App) -> App, tables: &str) -> Bench {
        let docroot = Docroot::of("supervision");
        let server = Server::with_configuration(&configure(docroot.app()), tables);
        Bench { docroot, server }
    }

    fn client(&self) -> Client {
        Client::new(self.server.address())
    }

    #[track_caller]
    fn greets(&self) {
        self.client().get("/hello.php").expect(200).saying("Hello, world\n");
    }

    /// Sends a request that is held at its gate and returns once a worker has it.
    fn hold(&self) -> Held {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let fifo =
            |name: &str| Fifo::at(self.docroot.beside().path().join(format!("{name}-{number}")));
        let (gate, mut done) = (fifo("gate"), fifo("done"));
        let target =
            format!("/gated.php?gate={}&done={}", gate.path().display(), done.path().display());
        let mut connection = Connection::open(self.server.address());
        connection.send(&Request::get(&target).to_bytes("a")).unwrap();
        let pid = done.hear().parse().expect("the script says which process it is");
        Held { connection, gate, worker: Process::of(pid) }
    }

    fn command(&self, name: &str) -> Output {
        Command::new(Server::binary())
            .arg(name)
            .arg("--admin")
            .arg(self.server.admin_socket())
            .output()
            .expect("the binary is there")
    }
}

/// A request in a worker.
struct Held {
    connection: Connection,
    gate: Fifo,
    worker: Process,
}

impl Held {
    #[track_caller]
    fn finishes(mut self) {
        self.gate.open();
        let response = self.connection.response().unwrap();
        response.expect(200).saying("through the gate\n");
    }
}

#[test]
fn a_killed_worker_costs_its_own_request_alone() {
    let bench = Bench::start(|app| app.workers(3), "");
    for _ in 0..10 {
        let (mut victim, neighbour) = (bench.hold(), bench.hold());
        victim.worker.kill();
        victim.connection.response().unwrap().expect(502);
        bench.greets();
        neighbour.finishes();
    }
}

#[test]
fn a_crash_is_a_502_and_the_next_request_is_served() {
    let bench = Bench::start(|app| app.workers(1), "");
    for _ in 0..3 {
        bench.client().get("/crash.php").expect(502);
        bench.greets();
    }
}

#[test]
fn endless_scripts_end_at_the_deadline() {
    // Long enough for `lock.php` beside other tests.
    let bench = Bench::start(|app| app.workers(1), "[limits]\nrequest_deadline = \"2s\"\n");
    for how in ["sleeps", "loops", "waits_for_a_lock", "reads_from_nobody"] {
        bench.client().get(&format!("/stuck.php?how={how}")).expect(504);
        // The worker was replaced, and what it had locked is free; the script waits for that.
        bench.client().get("/lock.php").expect(200).saying("true\n");
        let named = |line: &str| line.contains(how).then_some(());
        let log = bench.server.child().wait_for(|line| {
            (line.contains("stuck.php") && named(line).is_some()).then(|| line.to_owned())
        });
        assert!(log.is_ok_and(|line| line.contains("stuck.php")), "{}", bench.server.log());
    }
}

#[test]
fn beyond_the_queue_there_is_an_honest_503() {
    let bench =
        Bench::start(|app| app.workers(1), "[pool]\nqueue_length = 0\nloopback_slots = 0\n");
    let held = bench.hold();
    let response = bench.client().get("/hello.php").expect(503);
    assert!(response.header("retry-after").is_some(), "{:?}", response.headers);
    held.finishes();
    bench.greets();
}

#[test]
fn workers_are_recycled_between_requests() {
    let tables = "[pool]\nmax_requests = 5\nmax_requests_jitter = \"0%\"\n";
    let bench = Bench::start(|app| app.workers(1), tables);
    let mut client = bench.client();
    // A worker that has served its share leaves soon, not at once: as many requests as it takes.
    let mut processes = std::collections::BTreeSet::new();
    for _ in 0..50_000 {
        processes.insert(client.get("/pid.php").expect(200).text());
        if processes.len() == 5 {
            return;
        }
    }
    panic!("50,000 requests saw {processes:?} alone");
}

#[test]
fn sigterm_lets_requests_finish_and_then_ends() {
    let bench = Bench::start(|app| app.workers(2), "");
    let held = bench.hold();
    bench.server.child().signal(rustix::process::Signal::TERM);
    let stopping = |line: &str| line.contains("stopping").then_some(());
    bench.server.child().wait_for(stopping).expect("it says so");
    held.finishes();
    assert_eq!(bench.server.child().wait(), Some(0), "{}", bench.server.log());
}

/// While the old generation is leaving, and when its last worker has just left.
#[test]
fn sigterm_soon_after_a_reload_ends_too() {
    for round in 0..10 {
        let old_has_left = round % 2 == 1;
        let bench = Bench::start(|app| app.workers(1), "");
        let old = bench.client().get("/pid.php").expect(200).text();
        let old = Process::of(old.trim().parse().expect("a process id"));
        let output = bench.command("reload");
        assert!(output.status.success(), "{output:?}");
        bench.greets();
        if old_has_left {
            old.wait_until_gone();
        }
        bench.server.child().signal(rustix::process::Signal::TERM);
        assert_eq!(bench.server.child().wait(), Some(0), "{}", bench.server.log());
    }
}

#[test]
fn no_worker_survives_the_gateway() {
    let bench = Bench::start(|app| app.workers(2), "");
    let (held, other) = (bench.hold(), bench.hold());
    bench.server.child().signal(rustix::process::Signal::KILL);
    held.worker.wait_until_gone();
    other.worker.wait_until_gone();
}

#[test]
fn a_reload_lets_old_requests_finish_and_serves_new_ones() {
    let bench = Bench::start(|app| app.workers(2), "");
    let held = bench.hold();
    let before = bench.client().get("/pid.php").expect(200).text();
    let output = bench.command("reload");
    assert!(output.status.success(), "{output:?}");
    let after = bench.client().get("/pid.php").expect(200).text();
    assert_ne!(before, after, "a new generation has new workers");
    held.finishes();
}

#[test]
fn status_shows_the_state_of_each_worker() {
    let bench = Bench::start(|app| app.workers(2), "");
    let held = bench.hold();
    let status = bench.command("status");
    let text = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success() && text.contains("/gated.php"), "{text}");
    held.finishes();
}

#[test]
fn a_taken_port_is_the_operators_mistake() {
    let bench = Bench::start(|app| app, "");
    let output = Command::new(Server::binary())
        .arg("serve")
        .arg(bench.docroot.path())
        .args(["--listen", &bench.server.address().to_string()])
        .arg("--admin")
        .arg(bench.docroot.beside().path().join("other.sock"))
        .output()
        .expect("the binary is there");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains(&bench.server.address().port().to_string()), "{complaint}");
}
