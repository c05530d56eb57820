//! A newer program takes over a running server without losing a request, or changes nothing at all.

#![forbid(unsafe_code)]

#[path = "upgrade/installed.rs"]
#[allow(dead_code)]
mod installed;

use installed::{Installed, POOL, succeeded, text, with_http3};
use outboard_e2e::{Backend, Docroot, Request, Server, Wire, connect, eventually, repeating};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn five_upgrades_under_load_lose_no_request() {
    five_upgrades_under_load(&Installed::start(POOL));
}

#[test]
fn upgrades_lose_no_request_of_connections_at_workers() {
    let docroot = Docroot::of("reload");
    let script =
        "<?php while (Outboard\\handle_request(function () { echo \"Hello, world\\n\"; })) {}";
    docroot.beside().file("worker.php", script);
    let worker = "root = \"www\"\nmode = \"worker\"\n\
                  worker = { script = \"worker.php\", direct = true }\n";
    let server = Installed::with(docroot, text(POOL).replace("root = \"www\"\n", worker));
    std::fs::remove_file(server.site.root().join("hello.php")).unwrap();
    five_upgrades_under_load(&server);
    // The last server as well: its load may have ended before it had any.
    let mut client = server.site.client();
    eventually("a worker has responded without the gateway", || {
        client.get("/hello.php").expect(200).saying("Hello, world\n");
        let pool = server.site.status()["pools"][0].clone();
        if pool["direct_requests"].as_u64() > Some(0) { Ok(()) } else { Err(pool) }
    });
}

fn five_upgrades_under_load(server: &Installed) {
    let (served, closed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let client = |is_over: &dyn Fn() -> bool| {
        let mut wire = server.site.wire();
        while !is_over() {
            wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
            let head = wire.head();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            wire.expect("Hello, world\n");
            served.fetch_add(1, Ordering::Relaxed);
            // The old server announces the end of a connection, with a response.
            if head.contains("Connection: close") {
                closed.fetch_add(1, Ordering::Relaxed);
                wire = server.site.wire();
            }
        }
    };
    let first = server.pid();
    repeating(2, client, || {
        for _ in 0..5 {
            let before = server.pid();
            succeeded(&server.upgrade(), &server.site);
            assert_ne!(server.pid(), before);
        }
    });
    assert_ne!(server.pid(), first);
    let (served, closed) = (served.into_inner(), closed.into_inner());
    println!("{served} requests, {closed} connections ended, 0 lost or failed");
    assert!(served > 20 && closed > 0);
}

/// The load generator knows HTTP/1.1, HTTP/2 and HTTP/3, and counts what is lost or fails.
fn upgrades_under_load(protocol: &[&str]) {
    let (server, address) = with_http3("threads = 2\n", POOL);
    let report = server.site.docroot().beside().path().join("report.json");
    let mut load = Command::new(Server::binary());
    load.args(["bench", "-c", "8", "-d", "4s", "--rate", "400", "--insecure", "--json"]);
    load.arg(&report).args(protocol).arg(format!("https://{address}/hello.php"));
    let mut load = load.spawn().expect("the binary is there");
    for _ in 0..3 {
        let before = server.pid();
        succeeded(&server.upgrade(), &server.site);
        assert_ne!(server.pid(), before);
    }
    // It exits with an error on a busy machine, too, whose latencies it does not trust.
    load.wait().expect("it ends by itself");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(report).unwrap()).expect("it is JSON");
    let (responses, failures) = (&report["responses"], &report["failures"]);
    println!("{protocol:?}: {responses} responses, failures {failures}");
    assert!(is_none(failures) && !is_none(responses), "{report:#}");
}

/// 0, or an object of counts that are.
fn is_none(count: &serde_json::Value) -> bool {
    match count {
        serde_json::Value::Object(counts) => counts.values().all(is_none),
        count => count.as_u64() == Some(0),
    }
}

#[test]
fn upgrades_under_load_lose_no_request_of_http1_over_tls() {
    upgrades_under_load(&[]);
}

#[test]
fn upgrades_under_load_lose_no_request_of_http2() {
    upgrades_under_load(&["--http2"]);
}

#[test]
fn upgrades_under_load_lose_no_request_of_http3() {
    upgrades_under_load(&["--http3"]);
}

/// By a client of another QUIC: the datagrams that the new server receives reach the old one.
#[test]
fn a_running_request_of_http3_is_completed_by_the_old_server() {
    let (server, address) = with_http3("", POOL);
    let folder = server.site.docroot().beside();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (at, go) = (folder.path().join("at"), folder.path().join("go"));
    let port = address.port();
    let query = format!("at={}&for={}", at.display(), go.display());
    let mut client = Command::new("timeout");
    client.args(["60", "gtlsclient", "--quiet", "--exit-on-all-streams-close", "--download"]);
    client.arg(folder.folder("download")).args(["127.0.0.1", &port.to_string()]);
    client.arg(format!("https://localhost:{port}/wait.php?{query}"));
    let mut client = client.spawn().expect("it is installed");
    eventually("the request runs", || at.exists());
    succeeded(&server.upgrade(), &server.site);
    fs::write(&go, "").unwrap();
    assert!(client.wait().unwrap().success());
    let downloaded = fs::read_dir(folder.path().join("download")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_to_string(downloaded.path()).unwrap(), "waited");
}

#[test]
fn a_websocket_stays_open_across_an_upgrade() {
    let backend = Backend::start();
    let url = backend.url();
    let server = Installed::start(&format!(
        "{POOL}\n[[app.site.proxy]]\npath = \"/switch\"\nupstream = \"{url}\"\n"
    ));
    let mut stream = connect(server.site.address());
    let request = Request::get("/switch")
        .header("Connection", "keep-alive, Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13");
    stream.write_all(&request.to_bytes(&server.site.address().to_string())).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\nhello ") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    for _ in 0..3 {
        succeeded(&server.upgrade(), &server.site);
        for _ in 0..100 {
            stream.write_all(b"one").unwrap();
            let mut echo = [0; 3];
            stream.read_exact(&mut echo).unwrap();
            assert_eq!(&echo, b"one");
        }
    }
}

#[test]
fn a_running_request_is_completed_by_the_old_server() {
    let server = Installed::start(POOL);
    let folder = server.site.docroot().beside().path();
    let (at, go) = (folder.join("at"), folder.join("go"));
    let mut wire: Wire = server.site.wire();
    let query = format!("at={}&for={}", at.display(), go.display());
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    wire.send(format!("GET /wait.php?{query} HTTP/1.1\r\nHost: a\r\n\r\n"));
    eventually("the request runs", || at.exists());
    let old = server.pid();
    succeeded(&server.upgrade(), &server.site);
    assert_ne!(server.pid(), old);
    server.site.client().get("/hello.php").expect(200);
    fs::write(&go, "").unwrap();
    let head = wire.head();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    wire.expect("waited");
    assert_eq!(wire.to_end(), "");
}

#[test]
fn of_two_upgrades_at_a_time_each_has_an_outcome() {
    let server = Installed::start(POOL);
    let before = server.pid();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| server.upgrade());
        let outcomes = [server.upgrade(), other.join().unwrap()];
        let succeeded = outcomes.iter().filter(|output| output.status.success()).count();
        for output in outcomes.iter().filter(|output| !output.status.success()) {
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(message.contains("another process serves now"), "{message}");
        }
        assert!(succeeded > 0);
    });
    assert_ne!(server.pid(), before);
    server.site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[test]
fn an_idle_connection_has_one_more_request() {
    let server = Installed::start(POOL);
    let mut wire = server.site.wire();
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(!wire.head().contains("Connection: close"));
    wire.expect("Hello, world\n");
    succeeded(&server.upgrade(), &server.site);
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(wire.head().contains("Connection: close"));
    wire.expect("Hello, world\n");
    assert_eq!(wire.to_end(), "");
}

#[test]
fn a_new_program_that_does_not_start_changes_nothing() {
    let server = Installed::start(POOL);
    let pid = server.pid();
    let built = fs::read(server.program()).unwrap();
    for (program, word) in [
        (&b"#!/bin/sh\nexit 3\n"[..], "has ended"),
        (b"not a program", "cannot start"),
        (b"#!/bin/sh\nkill -9 $$\n", "has ended"),
    ] {
        server.install(program);
        let output = server.upgrade();
        assert!(!output.status.success(), "{output:?}");
        server.site.child().signal(Signal::USR2);
        server.site.logs(&["the upgrade failed", word]);
        server.install(&built);
        server.is_as_before(pid);
    }
    server.site.rewrite(&format!("nonsense = 1\n{}", server.text));
    let output = server.upgrade();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("nonsense"), "{message}");
    server.is_as_before(pid);
    server.site.rewrite(&server.text);
    succeeded(&server.upgrade(), &server.site);
    assert_ne!(server.pid(), pid);
}

#[test]
fn a_new_server_that_is_killed_while_it_starts_changes_nothing() {
    let server = Installed::start(POOL);
    let pid = server.pid();
    let built = fs::read(server.program()).unwrap();
    let folder = server.site.docroot().beside().path();
    // It has the sockets, and is killed before it is ready.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--take-over*) echo $$ >{0}/pid.new; mv {0}/pid.new {0}/pid; exec sleep 60;; esac\n\
         exec {0}/bin/built \"$@\"\n",
        folder.display()
    );
    fs::write(folder.join("bin/built"), &built).unwrap();
    fs::set_permissions(folder.join("bin/built"), fs::Permissions::from_mode(0o755)).unwrap();
    server.install(script.as_bytes());
    server.site.child().signal(Signal::USR2);
    let mut new = None;
    eventually("the new program runs", || {
        new = fs::read_to_string(folder.join("pid")).ok().and_then(|pid| pid.trim().parse().ok());
        new.is_some()
    });
    kill_process(Pid::from_raw(new.unwrap()).unwrap(), Signal::KILL).unwrap();
    server.site.logs(&["the upgrade failed", "has ended"]);
    server.is_as_before(pid);
}

/// The file of a socket is that of the server that is there last.
#[test]
fn the_last_server_removes_the_socket_files() {
    let server = Installed::start(POOL);
    let socket = server.site.admin_socket();
    for _ in 0..2 {
        succeeded(&server.upgrade(), &server.site);
        eventually("the old server has ended", || {
            server.site.child().output().matches("info  stopped").count() > 0
        });
        assert!(socket.exists());
    }
    succeeded(&server.site.command("stop", &[]), &server.site);
    eventually("the file is removed", || !socket.exists());
}
