//! A new configuration takes over without losing a request, or changes nothing at all.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Process, Server, Wire, eventually, repeating};
use rustix::process::Signal;
use std::fs::Permissions;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

const POOL: &str = "[pool]\nmin = 2\nmax = 2";

fn serving() -> Configured {
    Configured::serving("reload", POOL)
}

#[track_caller]
fn greets(site: &Configured) {
    site.client().get("/hello.php").expect(200).saying("Hello, world\n");
}

#[track_caller]
fn reloads(site: &Configured) -> Output {
    let output = site.command("reload", &[]);
    assert!(output.status.success(), "{output:?}\n{}", site.child().output());
    output
}

/// A reload fails: exit code 1, this in the message and in the log, and everything as before.
#[track_caller]
fn is_refused(site: &Configured, text: &str, words: &[&str]) {
    let before = site.processes();
    let pid = site.client().get("/pid.php").expect(200).text();
    site.rewrite(text);
    let output = site.command("reload", &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message}");
    }
    site.logs(&["the reload failed"]);
    greets(site);
    assert_eq!(site.status()["generation"].as_u64(), Some(1));
    assert!(before.iter().any(|process| pid.trim() == process.to_string()));
    // What was tried leaves nothing behind.
    eventually("what was tried has gone", || site.processes() == before);
    site.rewrite(&Configured::text(POOL));
    reloads(site);
    greets(site);
}

/// The kept connections are never closed, which a client that connects anew would not notice.
#[test]
fn twenty_reloads_cost_no_request_and_no_connection() {
    let site = serving();
    let served = AtomicUsize::new(0);
    let client = |is_over: &dyn Fn() -> bool| {
        let mut wire = site.wire();
        while !is_over() {
            wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
            let head = wire.head();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(!head.contains("Connection: close"), "{head}");
            wire.expect("Hello, world\n");
            served.fetch_add(1, Ordering::Relaxed);
        }
    };
    // Enough for requests at every moment; more would only keep the successors from starting.
    repeating(2, client, || (0..20).for_each(|_| drop(reloads(&site))));
    assert!(served.into_inner() > 20);
    assert_eq!(site.status()["generation"].as_u64(), Some(21));
    let threads = site.threads();
    eventually("the zygotes and two workers are left", || site.processes().len() == threads + 2);
}

#[test]
fn an_invalid_configuration_is_reported_and_changes_nothing() {
    let site = serving();
    let text = Configured::text("[app.site.limits]\nrequest_timeout = \"2s\"");
    is_refused(&site, &text, &["outboard.toml:", "request_timeout", "request_deadline"]);
}

#[test]
fn a_configuration_with_invalid_toml_changes_nothing() {
    is_refused(&serving(), "[app.site\n", &["outboard.toml:"]);
}

#[test]
fn a_missing_host_is_reported_and_changes_nothing() {
    let text = Configured::text("[php]\nhost_binary = \"/nonexistent/outboard-php\"");
    is_refused(&serving(), &text, &["/nonexistent/outboard-php"]);
}

#[test]
fn a_host_that_exits_is_reported_and_changes_nothing() {
    let text = Configured::text("[php]\nhost_binary = \"/bin/false\"");
    is_refused(&serving(), &text, &["PHP of app site did not start"]);
}

#[test]
fn a_missing_ini_file_is_reported_and_changes_nothing() {
    let text = Configured::text("[php]\nini_file = \"no-such-php.ini\"");
    is_refused(&serving(), &text, &["no-such-php.ini"]);
}

#[test]
fn a_failing_preload_is_reported_and_changes_nothing() {
    let site = serving();
    site.docroot().beside().file("preload.php", "<?php throw new Exception('not today');\n");
    let text = Configured::text("[php]\npreload = \"preload.php\"");
    is_refused(&site, &text, &["not today"]);
}

/// What the start prints last is reported, and how it ended: by a reload and by a start of the server.
#[test]
fn a_start_that_dies_is_reported_with_its_last_lines() {
    let worker = |isolation: &str| {
        Configured::text("\"ffi.enable\" = true").replace(
            "root = \"www\"\n",
            &format!("root = \"www\"\nmode = \"worker\"\nworker = {{ script = \"dies.php\", isolation = \"{isolation}\" }}\n"),
        )
    };
    let preload = Configured::text("\"ffi.enable\" = true\n[php]\npreload = \"dies.php\"");
    for (place, text) in
        [("reset", worker("reset")), ("rewind", worker("rewind")), ("preload", preload)]
    {
        for (end, how) in [
            ("posix_kill(posix_getpid(), 11);", "was killed by signal 11 (SIGSEGV) while starting"),
            ("posix_kill(posix_getpid(), 9);", "was killed by signal 9 (SIGKILL) while starting"),
            ("FFI::cdef('void _exit(int);')->_exit(3);", "exited with code 3 while starting"),
        ] {
            let site = serving();
            let prints = "for ($i = 0; $i < 200; $i++) { file_put_contents('php://stderr', \"line $i of the start\\n\"); }";
            site.docroot().beside().file("dies.php", format!("<?php {prints} {end}"));
            let words = [how, "line 198 of the start\nline 199 of the start"];
            is_refused(&site, &text, &words);
            let file = site.docroot().beside().file("dies.toml", &text);
            let mut serve = Command::new(Server::binary());
            serve.arg("serve").arg("--config").arg(file).arg("--admin");
            let ended =
                serve.arg(site.docroot().beside().path().join("other.sock")).output().unwrap();
            let message = String::from_utf8_lossy(&ended.stderr);
            for word in words {
                assert!(message.contains(word), "{place}: {word:?} is not in {message}");
            }
        }
    }
}

/// The first app's processes were started by then.
#[test]
fn a_second_app_that_fails_to_open_changes_nothing() {
    let text =
        Configured::text("[app.zoo]\nroot = \"www\"\nhosts = [\"zoo\"]\nuser = \"nobody-has-it\"");
    is_refused(&serving(), &text, &["nobody-has-it"]);
}

#[test]
fn an_address_in_use_is_reported_and_changes_nothing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = Configured::text(POOL).replace("127.0.0.1:0", &address);
    is_refused(&serving(), &text, &["cannot listen on", &address]);
}

#[test]
fn a_request_that_has_begun_is_finished_by_the_old_generation() {
    let site = serving();
    let held = site.hold();
    let pid = held.pid();
    reloads(&site);
    for _ in 0..4 {
        assert_ne!(site.client().get("/pid.php").expect(200).text().trim(), pid.to_string());
    }
    let old = Process::of(pid);
    held.finishes();
    old.wait_until_gone();
}

/// Who uploads slowly has no worker yet when the reload comes.
#[test]
fn the_old_generation_serves_a_request_that_it_has_begun() {
    let site = serving();
    let before = site.processes();
    let mut wire = site.wire();
    wire.send("POST /length.php HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n");
    wire.send("Expect: 100-continue\r\n\r\n");
    assert_eq!(wire.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    wire.send("half ");
    reloads(&site);
    greets(&site);
    // The zygotes for it and one worker stay.
    let threads = site.threads();
    let old = || site.processes().iter().filter(|process| before.contains(process)).count();
    eventually("one old worker is left", || (2..=threads + 1).contains(&old()));
    wire.send("more.");
    assert!(wire.head().starts_with("HTTP/1.1 200 OK\r\n"));
    wire.expect("10 bytes\n");
    eventually("the old processes have gone", || old() == 0);
}

#[test]
fn sighup_does_the_same() {
    let site = serving();
    let before = site.processes();
    site.child().signal(Signal::HUP);
    site.logs(&["generation 2 is active"]);
    greets(&site);
    assert!(site.processes().iter().any(|process| !before.contains(process)));
}

#[test]
fn a_changed_configuration_applies_after_the_reload() {
    let site = serving();
    site.docroot().beside().file("other/hello.php", "<?php echo \"of the other root\\n\";");
    site.rewrite(&Configured::text(POOL).replace("root = \"www\"", "root = \"other\""));
    let mut wire = site.wire();
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.head();
    wire.expect("Hello, world\n");
    reloads(&site);
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.head();
    wire.expect("of the other root\n");
}

#[test]
fn cached_code_is_read_again() {
    let site = Configured::serving("reload", "\"opcache.validate_timestamps\" = 0");
    greets(&site);
    site.docroot().put("hello.php", "<?php echo \"deployed\\n\";");
    reloads(&site);
    site.client().get("/hello.php").expect(200).saying("deployed\n");
}

/// A site whose root is below a link to the first of two releases.
fn released(keys: &str, tables: &str) -> Configured {
    let docroot = Docroot::of("reload");
    let folder = docroot.beside();
    for release in ["1", "2"] {
        let at = |name: &str| format!("releases/{release}/public/{name}");
        folder.file(&at("asset.txt"), release);
        folder.file(&at("lib.php"), format!("<?php const RELEASE = '{release}';"));
        let page = "<?php require_once 'lib.php'; echo RELEASE;";
        folder.file(&at("page.php"), page);
        folder.file(
            &at("worker.php"),
            format!("<?php while (Outboard\\handle_request(function () {{ echo '{release}'; }}));"),
        );
    }
    symlink("releases/1", folder.path().join("current")).expect("the name is free");
    let text = Configured::text(tables)
        .replace("root = \"www\"", &format!("root = \"current/public\"\n{keys}"));
    Configured::start(docroot, &text)
}

/// As deployments do (`mv -T`).
fn switch(site: &Configured) {
    let folder = site.docroot().beside().path();
    symlink("releases/2", folder.join("next")).expect("the name is free");
    std::fs::rename(folder.join("next"), folder.join("current")).expect("both are there");
}

#[test]
fn a_switched_link_changes_pages_and_assets_together() {
    let site = released("", "[pool]\nmin = 1\nmax = 1\n");
    let get = |path: &str| site.client().get(path).expect(200).text();
    assert_eq!((get("/page.php"), get("/asset.txt")), ("1".to_owned(), "1".to_owned()));
    switch(&site);
    eventually("the release is switched", || {
        // Each may be the first of the new release, and what follows is not older.
        let (before, page, after) = (get("/asset.txt"), get("/page.php"), get("/asset.txt"));
        assert!(before <= page && page <= after, "{before} {page} {after}");
        after == "2"
    });
    assert_eq!(get("/page.php"), "2");
}

#[test]
fn a_worker_script_and_its_files_change_with_a_reload() {
    let tables =
        "[app.site.worker]\nscript = \"current/public/worker.php\"\n[pool]\nmin = 1\nmax = 1\n";
    let site = released("mode = \"worker\"", tables);
    let get = |path: &str| site.client().get(path).expect(200).text();
    switch(&site);
    for _ in 0..5 {
        assert_eq!((get("/asset.txt"), get("/")), ("1".to_owned(), "1".to_owned()));
    }
    reloads(&site);
    assert_eq!((get("/asset.txt"), get("/")), ("2".to_owned(), "2".to_owned()));
}

/// The first TCP address that `status` lists.
fn listening(site: &Configured) -> SocketAddr {
    let status = site.status();
    let listeners = status["listeners"].as_array().expect("a list");
    let found = listeners.iter().find_map(|name| name.as_str()?.parse().ok());
    found.unwrap_or_else(|| panic!("{status:#}"))
}

#[test]
fn a_new_address_is_listened_on_and_the_old_one_is_let_go() {
    let site = serving();
    let old = site.served_at();
    let mut kept = site.wire();
    kept.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    kept.head();
    kept.expect("Hello, world\n");
    site.rewrite(&Configured::text(POOL).replace("127.0.0.1:0", "127.0.0.2:0"));
    reloads(&site);
    let new = listening(&site);
    assert_ne!(new, old);
    let mut wire = Wire::open(new);
    wire.send("GET /hello.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(wire.to_end().ends_with("\r\n\r\nHello, world\n"));
    eventually("the old address is let go", || TcpStream::connect(old).is_err());
    // A connection outlives the socket that it came from.
    kept.send("GET /hello.php HTTP/1.1\r\nHost: a\r\n\r\n");
    kept.head();
    kept.expect("Hello, world\n");
}

#[test]
fn reloads_at_the_same_time_leave_one_generation() {
    let site = serving();
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| reloads(&site));
        }
    });
    greets(&site);
    let threads = site.threads();
    eventually("the zygotes and two workers are left", || site.processes().len() == threads + 2);
}

#[test]
fn a_reload_reads_included_files_and_secrets_again() {
    let docroot = Docroot::of("reload");
    let folder = docroot.beside();
    folder.file("www/token.php", "<?php echo getenv('TOKEN');");
    folder.file("conf.d/limits.toml", "[limits]\nbody = 1000\n");
    let secret = folder.file("secret", "of-winter-4711\n");
    // If root starts the server, the gateway's own user cannot read it.
    std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).expect("its owner may");
    let tables = format!("[php.env]\nTOKEN = \"${{file:secret}}\"\n{POOL}");
    let text = format!("include = \"conf.d/*.toml\"\n{}", Configured::text(&tables));
    let site = Configured::start(docroot, &text);
    site.client().get("/token.php").expect(200).saying("of-winter-4711");
    let shown = |words: &str| {
        let output = site.command("config", &["show", "--origin"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(words), "{words} is not in {text}");
        assert!(!text.contains("4711"), "{text}");
    };
    shown("limits.body = \"1000 B\"  # ");
    let folder = site.docroot().beside();
    folder.file("conf.d/limits.toml", "[limits]\nbody = 2000\n");
    folder.file("secret", "of-summer-4711\n");
    reloads(&site);
    site.client().get("/token.php").expect(200).saying("of-summer-4711");
    shown("limits.body = \"2000 B\"  # ");
    shown("conf.d/limits.toml:2");
    shown("TOKEN = \"[redacted]\"  # secret file ");
}
