//! Named servers: a command tells the truth about them, and reaches no other process.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Ended, NamedServers, Process, Request, Server, eventually, repeating};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SITE: &str = NamedServers::SITE;
/// An error of a server has to be reported within this time.
const AT_ONCE: Duration = Duration::from_secs(2);
/// How long something may take before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

fn worker(script: &str) -> String {
    format!("{SITE}mode = \"worker\"\n[app.site.worker]\nscript = \"../{script}\"\n")
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("no process has the id 0");
    kill_process(pid, signal).expect("it runs, and is ours");
}

/// The titles of processes with this word in them, with their ids.
fn titles_with(word: &str) -> Vec<(u32, String)> {
    let processes = fs::read_dir("/proc").expect("it is mounted").flatten();
    let titles = processes.filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        let title = fs::read(process.path().join("cmdline")).ok()?;
        let title = String::from_utf8_lossy(&title).replace('\0', " ").trim_end().to_owned();
        title.contains(word).then_some((pid, title))
    });
    titles.collect()
}

#[test]
fn start_waits_until_ready_and_stop_until_the_end() {
    let servers = NamedServers::with(&["shop"]);
    assert_eq!(servers.run("status", &["shop"]).code, Some(3));
    let started = servers.run("start", &["shop"]).well();
    assert!(started.stdout.contains("shop: RUNNING"), "{started:?}");
    servers.answers("shop");
    let status = servers.run("status", &["shop"]).well();
    for words in ["shop", "production", "RUNNING", "PHP 8", "pid", "up ", "requests", "idle"] {
        assert!(status.stdout.contains(words), "{words} is not in {status:?}");
    }
    let gateway = Process::of(servers.pid("shop"));
    servers.run("stop", &["shop"]).well();
    gateway.wait_until_gone();
    assert!(!servers.path("run/shop.pid").exists());
    assert!(!servers.path("run/shop.sock").exists());
    assert_eq!(servers.run("status", &["shop"]).code, Some(3));
    servers.run("stop", &["shop"]).well();
}

#[test]
fn a_broken_server_says_what_and_where_within_two_seconds() {
    let servers = NamedServers::new();
    let held = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let taken = format!("127.0.0.1:{}", held.local_addr().expect("it is bound").port());
    servers.put("syntax.php", "<?php\nfunction (");
    servers.put("missing.php", "<?php\n(new Shop\\Worker())->run();\n");
    servers.put("ends.php", "<?php\n");
    servers.describe("bad-toml", "listen = \n");
    servers.describe("bad-key", &format!("{SITE}rot = 1\n"));
    servers.describe("no-folder", &SITE.replace("public", "nowhere"));
    servers.describe("port-taken", &SITE.replace("127.0.0.1:0", &taken));
    servers.describe("syntax-error", &worker("syntax.php"));
    servers.describe("missing-class", &worker("missing.php"));
    servers.describe("no-worker", &worker("ends.php"));
    servers.describe("no-user", &format!("user = \"nobody-of-that-name\"\n{SITE}"));
    servers.describe("no-host", &format!("{SITE}[app.site.php]\nhost_binary = \"../none\"\n"));
    for (name, words) in [
        ("bad-toml", &["bad-toml.toml:1"][..]),
        ("bad-key", &["bad-key.toml:6", "rot"]),
        ("no-folder", &["no-folder.toml:5", "there is no directory"]),
        ("port-taken", &[&taken, "Address already in use"]),
        ("syntax-error", &["Parse error", "syntax.php", "line"]),
        ("missing-class", &["Shop\\Worker", "not found", "missing.php:2"]),
        ("no-worker", &["ended without a call for a request"]),
        ("no-user", &["nobody-of-that-name"]),
        ("no-host", &["no-host.toml:7", "none"]),
        ("unknown", &["there is no server `unknown`"]),
    ] {
        let ended = servers.run("start", &[name]);
        eprintln!("{name}: {} ms", ended.took.as_millis());
        assert!(ended.code.is_some_and(|code| code > 0), "{name}: {ended:?}");
        // One time of three, since a busy machine may be late once.
        let is_at_once = |ended: &Ended| ended.took < AT_ONCE;
        let again = || is_at_once(&servers.run("start", &[name]));
        assert!(is_at_once(&ended) || again() || again(), "{name}: {ended:?}");
        assert!(ended.stderr.lines().count() <= 24, "more than a screen: {ended:?}");
        for word in words {
            assert!(ended.stderr.contains(word), "{name}: {word:?} is not in {}", ended.stderr);
        }
        assert!(!servers.path(&format!("run/{name}.pid")).exists(), "{name} left a trace");
    }
}

#[test]
fn an_unreadable_directory_is_reported() {
    let servers = NamedServers::with(&["shop"]);
    let gone = servers.path("nowhere");
    let output = Command::new(Server::binary())
        .args(["start", "shop", "--conf-dir"])
        .arg(&gone)
        .output()
        .expect("the binary is there");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&gone.display().to_string()));
}

#[test]
fn the_processes_have_the_name_of_their_server() {
    let servers = NamedServers::new();
    let name = format!("titled-{}", std::process::id());
    servers.describe(&name, SITE);
    servers.run("start", &[&name]).well();
    let titles = titles_with(&name);
    for title in ["gateway", "zygote", "worker 1"] {
        let title = format!("outboard: {name} {title}");
        assert!(titles.iter().any(|(_, theirs)| theirs.starts_with(&title)), "{titles:?}");
    }
}

#[test]
fn a_killed_server_is_reported_dead_and_starts_again() {
    let servers = NamedServers::with(&["shop"]);
    servers.run("start", &["shop"]).well();
    let gateway = Process::of(servers.pid("shop"));
    gateway.kill();
    gateway.wait_until_gone();
    let status = servers.run("status", &["shop"]);
    assert_eq!(status.code, Some(1), "{status:?}");
    assert!(status.stdout.contains("DEAD"), "{status:?}");
    servers.run("start", &["shop"]).well();
    servers.answers("shop");
    let gateway = Process::of(servers.pid("shop"));
    gateway.kill();
    gateway.wait_until_gone();
    servers.run("stop", &["shop"]).well();
    assert_eq!(servers.run("status", &["shop"]).code, Some(3));
}

/// A process that has nothing to do with any of this.
struct Bystander(Child);

impl Bystander {
    fn new() -> Bystander {
        Bystander(Command::new("sleep").arg("600").spawn().expect("sleep(1) is there"))
    }

    #[track_caller]
    fn lives(&mut self) {
        assert_eq!(self.0.try_wait().expect("it is our child"), None);
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().expect("it is our child");
        self.0.wait().expect("it is our child");
    }
}

#[test]
fn no_order_reaches_a_process_whose_number_was_left_behind() {
    let servers = NamedServers::with(&["shop"]);
    let mut bystander = Bystander::new();
    let left_behind = format!("{}\n", bystander.0.id());
    for order in ["stop", "reload", "restart", "status", "start", "shutdown"] {
        servers.put("run/shop.pid", &left_behind);
        let names: &[&str] = if order == "shutdown" { &[] } else { &["shop"] };
        servers.run(order, names);
        bystander.lives();
        servers.run("stop", &["shop"]).well();
        bystander.lives();
    }
    // Even over the file of one that runs, the number in it is not believed.
    servers.run("start", &["shop"]).well();
    let gateway = Process::of(servers.pid("shop"));
    let file = fs::OpenOptions::new().write(true).open(servers.path("run/shop.pid"));
    std::io::Write::write_all(&mut file.expect("it is ours"), left_behind.as_bytes()).expect("so");
    servers.run("stop", &["shop"]).well();
    gateway.wait_until_gone();
    bystander.lives();
}

#[test]
fn a_stop_finishes_running_requests() {
    let servers = NamedServers::with(&["shop"]);
    let gate = servers.path("gate");
    let script =
        format!("<?php while (!file_exists('{}')) usleep(1000); echo 'done';", gate.display());
    servers.put("public/slow.php", &script);
    servers.run("start", &["shop"]).well();
    let mut client = servers.client("shop");
    std::thread::scope(|scope| {
        let answer = scope.spawn(move || client.send(&Request::get("/slow.php")));
        eventually("the request has begun", || {
            servers.status("shop")["status"]["pools"][0]["in_flight"] == 1
        });
        let stop = scope.spawn(|| servers.run("stop", &["shop"]));
        eventually("it stops", || servers.status("shop")["state"] != "RUNNING");
        fs::write(&gate, "").expect("it is ours");
        answer.join().expect("it is answered").expect(200).saying("done");
        stop.join().expect("it ends").well();
    });
}

#[test]
fn a_server_that_is_still_starting_is_stopped_at_once() {
    let servers = NamedServers::new();
    servers.put("endless.php", "<?php while (true) usleep(1000);");
    servers.describe("shop", &worker("endless.php"));
    std::thread::scope(|scope| {
        let start = scope.spawn(|| servers.run("start", &["shop"]));
        eventually("it has begun", || servers.status("shop")["state"] == "STARTING");
        servers.run("stop", &["shop"]).well();
        assert_eq!(start.join().expect("it ends").code, Some(1));
    });
    assert_eq!(servers.run("status", &["shop"]).code, Some(3));
}

#[test]
fn a_restart_with_a_bad_configuration_changes_nothing() {
    let servers = NamedServers::with(&["shop"]);
    servers.run("start", &["shop"]).well();
    let pid = servers.pid("shop");
    servers.describe("shop", "listen = 1\n");
    for order in ["restart", "reload"] {
        let ended = servers.run(order, &["shop"]);
        assert!(ended.code > Some(0), "{ended:?}");
        assert!(ended.stderr.contains("shop.toml:1"), "{ended:?}");
        assert_eq!(servers.pid("shop"), pid);
        servers.answers("shop");
    }
    servers.describe("shop", SITE);
    servers.run("restart", &["shop"]).well();
    assert_ne!(servers.pid("shop"), pid);
    servers.answers("shop");
}

#[test]
fn many_starts_at_a_time_start_one_server() {
    let servers = NamedServers::with(&["shop"]);
    let outputs: Vec<String> = std::thread::scope(|scope| {
        let start = || servers.run("start", &["shop"]).well().stdout;
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|start| start.join().expect("it ends")).collect()
    });
    let first = outputs.iter().filter(|text| text.contains("shop: RUNNING")).count();
    let late = outputs.iter().filter(|text| text.contains("is already running")).count();
    assert_eq!((first, late), (1, 5), "{outputs:?}");
    servers.answers("shop");
}

/// Rounds of the test below; `OUTBOARD_ROUNDS` for more.
fn rounds() -> usize {
    std::env::var("OUTBOARD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

/// While reloads, the servers are asked without a pause; a request that is lost fails the test.
#[test]
fn twenty_servers_start_reload_restart_and_stop_without_a_trace() {
    let servers = NamedServers::new();
    let tag = format!("many-{}", std::process::id());
    let names: Vec<String> = (0..20).map(|number| format!("{tag}-{number:02}")).collect();
    names.iter().for_each(|name| servers.describe(name, SITE));
    let mut bystander = Bystander::new();
    let mut asked = 0;
    for round in 0..rounds() {
        // Some have left a file behind, with the number of another process.
        for name in names.iter().step_by(3) {
            servers.put(&format!("run/{name}.pid"), &format!("{}\n", bystander.0.id()));
        }
        servers.run("start", &[]).well();
        asked += reload_under_load(&servers, &names);
        // Two commands at a time about the same servers.
        std::thread::scope(|scope| {
            let restart = || servers.run("restart", &[]);
            let ends = [scope.spawn(restart), scope.spawn(restart)];
            ends.into_iter().for_each(|end| drop(end.join().expect("it ends").well()));
        });
        let list = servers.run("list", &[]).well();
        assert_eq!(list.stdout.matches("RUNNING").count(), names.len(), "{round}: {list:?}");
        servers.run("stop", &[]).well();
        eventually("no orphan is left", || titles_with(&tag).is_empty());
        bystander.lives();
    }
    eprintln!("{asked} requests during reloads, none was lost");
}

fn reload_under_load(servers: &NamedServers, names: &[String]) -> usize {
    let asked = AtomicUsize::new(0);
    let client = |is_over: &dyn Fn() -> bool| {
        let mut clients: Vec<Client> = names.iter().map(|name| servers.client(name)).collect();
        while !is_over() {
            for client in &mut clients {
                client.get("/").expect(200).holding("Hello from ");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    repeating(1, client, || drop(servers.run("reload", &[]).well()));
    asked.into_inner()
}

#[test]
fn shutdown_stops_every_server_also_without_its_configuration() {
    let servers = NamedServers::with(&["one", "two"]);
    servers.run("start", &[]).well();
    let gateways = [servers.pid("one"), servers.pid("two")].map(Process::of);
    fs::remove_file(servers.path("conf/two.toml")).expect("it is ours");
    let list = servers.run("list", &[]).well();
    assert_eq!(list.stdout.matches("RUNNING").count(), 2, "{list:?}");
    servers.run("shutdown", &[]).well();
    gateways.iter().for_each(Process::wait_until_gone);
    assert!(!servers.path("run/two.pid").exists());
}

#[test]
fn a_background_server_logs_to_its_file_and_reopens_it() {
    let servers = NamedServers::with(&["shop"]);
    servers.run("start", &["shop"]).well();
    let (log, rotated) = (servers.path("conf/log/shop.log"), servers.path("conf/log/shop.log.1"));
    let has = |path: &Path, text: &str| {
        fs::read_to_string(path).is_ok_and(|written| written.contains(text))
    };
    let mut client = servers.client("shop");
    client.get("/?before").expect(200);
    eventually("it is logged", || has(&log, "GET /?before"));
    fs::rename(&log, &rotated).expect("it is ours");
    signal(servers.pid("shop"), Signal::USR1);
    eventually("the log is opened anew", || log.exists());
    client.get("/?after").expect(200);
    eventually("it is logged there", || has(&log, "GET /?after"));
    assert!(!has(&rotated, "GET /?after"));
}

#[test]
fn init_writes_a_working_server_and_overwrites_nothing() {
    let servers = NamedServers::new();
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../php");
    for (template, words) in
        [("classic", "public/index.php"), ("worker", "This worker"), ("mvc", "actionIndex()")]
    {
        let name = format!("new-{template}");
        let init = || {
            Command::new(Server::binary())
                .args(["init", &name, "--template", template, "--package", package])
                .args(["--listen", "127.0.0.1:0", "--conf-dir"])
                .arg(servers.path("conf"))
                .arg("--dir")
                .arg(servers.path(&name))
                .output()
                .expect("the binary is there")
        };
        let output = init();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        servers.run("start", &[&name]).well();
        servers.client(&name).get("/").expect(200).holding(words);
        servers.client(&name).get("/style.css").expect(200);
        let again = init();
        assert_eq!(again.status.code(), Some(2), "{again:?}");
        assert!(String::from_utf8_lossy(&again.stderr).contains("nothing was written"));
    }
}

#[test]
fn init_adds_plugins_to_a_wordpress_and_serves_it() {
    let servers = NamedServers::new();
    let directory = servers.path("blog");
    let init = || {
        Command::new(Server::binary())
            .args(["init", "blog", "--wordpress", "--listen", "127.0.0.1:0", "--conf-dir"])
            .arg(servers.path("conf"))
            .arg("--dir")
            .arg(&directory)
            .output()
            .expect("the binary is there")
    };
    let refused = init();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has no WordPress"), "{refused:?}");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("wp-settings.php"), "<?php").unwrap();
    std::fs::write(directory.join("index.php"), "<?php echo 'a page';").unwrap();
    let output = init();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for name in ["outboard-snapshot.php", "outboard-page-cache.php"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../php/drop-ins/wordpress");
        let plugin = std::fs::read(directory.join("wp-content/mu-plugins").join(name)).unwrap();
        assert_eq!(plugin, std::fs::read(source.join(name)).unwrap());
    }
    servers.run("start", &["blog"]).well();
    servers.client("blog").get("/any/page").expect(200).saying("a page");
    servers.client("blog").get("/xmlrpc.php").expect(404);
    assert_eq!(init().status.code(), Some(2));
}

/// What a service manager hears of a server that it starts.
struct Manager {
    ear: UnixDatagram,
}

impl Manager {
    fn at(path: &Path) -> Manager {
        let ear = UnixDatagram::bind(path).expect("the folder is ours");
        ear.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
        Manager { ear }
    }

    /// Waits for a message with this line.
    #[track_caller]
    fn hears(&self, line: &str) -> String {
        let mut space = [0; 4096];
        eventually(line, || {
            let len = self.ear.recv(&mut space).unwrap_or_else(|error| panic!("{line}: {error}"));
            let message = String::from_utf8_lossy(&space[..len]).into_owned();
            message.lines().any(|theirs| theirs == line).then_some(message)
        })
    }
}

#[test]
fn the_service_manager_hears_of_every_step() {
    let servers = NamedServers::with(&["shop"]);
    let manager = Manager::at(&servers.path("notify"));
    let mut server = servers
        .command("serve", &["--name", "shop"])
        .env("NOTIFY_SOCKET", servers.path("notify"))
        .env("WATCHDOG_USEC", "200000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary is there");
    let message = manager.hears("READY=1");
    assert!(message.contains(&format!("MAINPID={}", server.id())), "{message}");
    servers.answers("shop");
    manager.hears("WATCHDOG=1");
    manager.hears("WATCHDOG=1");
    signal(server.id(), Signal::HUP);
    let message = manager.hears("RELOADING=1");
    assert!(message.contains("MONOTONIC_USEC="), "{message}");
    manager.hears("READY=1");
    signal(server.id(), Signal::TERM);
    manager.hears("STOPPING=1");
    assert_eq!(server.wait().expect("it is our child").code(), Some(0));
}

/// Perl does what the service manager does: binds, and hands the socket over as descriptor 3.
const ACTIVATION: &str = "use IO::Socket::INET; $^F = 10; \
    my $s = IO::Socket::INET->new(Listen => 9, LocalAddr => $ARGV[0], ReuseAddr => 1) or die; \
    if (fileno($s) != 3) { POSIX::dup2(fileno($s), 3); close $s; } \
    $ENV{LISTEN_PID} = $$; $ENV{LISTEN_FDS} = 1; shift @ARGV; exec @ARGV or die;";

#[test]
fn a_socket_of_the_service_manager_is_listened_on() {
    let servers = NamedServers::new();
    let free = TcpListener::bind("127.0.0.1:0").and_then(|held| held.local_addr());
    let address = free.expect("a port is free").to_string();
    servers.describe("shop", &SITE.replace("127.0.0.1:0", &address));
    let command = servers.command("serve", &["--name", "shop"]);
    let mut server = Command::new("perl")
        .args(["-MPOSIX", "-e", ACTIVATION, &address])
        .arg(command.get_program())
        .args(command.get_args())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("perl(1) is there");
    eventually("it serves", || servers.run("status", &["shop"]).code == Some(0));
    servers.answers("shop");
    // Bound by itself it could not have been: the address was taken.
    let handed = fs::read_link(format!("/proc/{}/fd/3", server.id())).expect("it was handed over");
    // Handed over, kept for reloads, and listened on by each thread.
    let threads = servers.status("shop")["status"]["threads"].as_u64().expect("a number") as usize;
    // While a process is started, a descriptor may be there once more.
    eventually("the socket to be there as often as it is used", || {
        let open = fs::read_dir(format!("/proc/{}/fd", server.id())).expect("it runs");
        let files: Vec<_> = open.flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).collect();
        files.iter().filter(|file| **file == handed).count() == 2 + threads
    });
    signal(server.id(), Signal::TERM);
    assert_eq!(server.wait().expect("it is our child").code(), Some(0));
}
