//! Who serves: a server that root starts goes on as a user of its own, and PHP as another.

#![forbid(unsafe_code)]

use outboard_e2e::{
    Certificate, Client, Configured, Docroot, Launch, NamedServers, Process, Server,
};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const USER: &str = "www-data";
const GATEWAY: &str = "daemon";

/// Only root can become another user.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: it takes root to give root up");
    }
    is_root
}

fn uid_of(name: &str) -> u32 {
    let text = fs::read_to_string("/etc/passwd").expect("it is everybody's to read");
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:")));
    line.and_then(|line| line.split(':').nth(2)?.parse().ok()).expect("Debian has this user")
}

fn gid_of(name: &str) -> u32 {
    let text = fs::read_to_string("/etc/group").expect("it is everybody's to read");
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:")));
    line.and_then(|line| line.split(':').nth(2)?.parse().ok()).expect("Debian has this group")
}

/// The process that started this one (proc(5)).
fn parent(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|id| id.trim().parse().ok()).expect("proc(5) has it")
}

fn owner(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).uid()
}

/// The user ids (real, effective, saved, of the file system) of each thread.
fn users_of(pid: u32) -> Vec<Vec<u32>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let users = threads.map(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let ids = line.expect("proc(5) has it").split_whitespace();
        ids.map(|id| id.parse().expect("a number")).collect()
    });
    users.collect()
}

/// A server whose Unix socket lies where only root may make one.
fn described(servers: &NamedServers, settings: &str) {
    let socket = servers.path("run/http.sock");
    servers.put("public/who.php", "<?php echo preg_match('/^Uid:\\s+(\\d+)/m', file_get_contents('/proc/self/status'), $m) ? $m[1] : '';");
    servers.describe(
        "site",
        &format!(
            "listen = [\"127.0.0.1:0\", \"unix:{}\"]\n{settings}\n[pool]\nmin = 1\n\
             [log.access]\npath = \"{}\"\n[app.site]\nroot = \"../public\"\n",
            socket.display(),
            servers.path("access.log").display(),
        ),
    );
}

fn through(socket: &Path) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    let request = b"GET /who.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn root_binds_the_addresses_and_another_user_than_phps_serves() {
    if !is_root() {
        return;
    }
    let servers = NamedServers::new();
    described(&servers, &format!("user = \"{USER}\"\ngateway_user = \"{GATEWAY}\""));
    let (php, own) = (uid_of(USER), uid_of(GATEWAY));
    // The second start finds what the first, which could not remove it, has left.
    for _ in 0..2 {
        servers.run("start", &["site"]).well();
        let pid = servers.pid("site");
        for ids in users_of(pid) {
            assert_eq!(ids, [own; 4]);
        }
        let who = servers.client("site").get("/who.php").expect(200).text();
        assert_eq!(who, php.to_string());
        assert!(through(&servers.path("run/http.sock")).ends_with(&who));
        for file in ["run/http.sock", "run/site.sock", "access.log", "conf/log/site.log"] {
            assert_eq!(owner(&servers.path(file)), own, "{file}");
        }
        servers.run("reload", &["site"]).well();
        assert_eq!(servers.client("site").get("/who.php").expect(200).text(), who);
        let gateway = Process::of(pid);
        servers.run("stop", &["site"]).well();
        gateway.wait_until_gone();
        assert_eq!(servers.run("status", &["site"]).code, Some(3));
    }
}

#[test]
fn a_group_of_its_own_is_phps() {
    if !is_root() {
        return;
    }
    let servers = NamedServers::new();
    described(&servers, &format!("user = \"{USER}\"\ngroup = \"nogroup\""));
    servers.put("public/group.php", "<?php echo preg_match('/^Gid:\\s+(\\d+)/m', file_get_contents('/proc/self/status'), $m) ? $m[1] : '';");
    servers.run("start", &["site"]).well();
    let of_php = servers.client("site").get("/group.php").expect(200).text();
    assert_eq!(of_php, gid_of("nogroup").to_string());
    let socket = fs::metadata(servers.path("run/http.sock")).expect("it is there");
    assert_eq!((socket.uid(), socket.gid()), (uid_of("nobody"), gid_of("nogroup")));
}

#[test]
fn apps_have_users_of_their_own_and_none_is_the_gateways() {
    if !is_root() {
        return;
    }
    let servers = NamedServers::new();
    described(&servers, &format!("user = \"{USER}\""));
    let file = servers.path("conf/site.toml");
    let text = fs::read_to_string(&file).expect("it is ours");
    let other = "[app.other]\nroot = \"../public\"\npath = \"/other/\"\nuser = \"nobody\"\n";
    servers.describe("site", &format!("{text}{other}"));
    servers.run("start", &["site"]).well();
    assert_eq!(users_of(servers.pid("site"))[0], [uid_of("daemon"); 4]);
    let mut client = servers.client("site");
    for (target, user) in [("/who.php", USER), ("/other/who.php", "nobody")] {
        assert_eq!(client.get(target).expect(200).text(), uid_of(user).to_string());
    }
    // A user whom root has not heard of takes a start by root.
    let later = "[app.later]\nroot = \"../public\"\npath = \"/later/\"\nuser = \"games\"\n";
    servers.describe("site", &format!("{text}{other}{later}"));
    let refused = servers.run("reload", &["site"]);
    assert_ne!(refused.code, Some(0));
    let log = fs::read_to_string(servers.path("conf/log/site.log")).expect("it is there");
    assert!(log.contains("was not configured when root started the server"), "{log}");
    client.get("/who.php").expect(200);
}

#[test]
fn apps_that_cannot_be_separated_are_rejected() {
    if !is_root() {
        return;
    }
    let servers = NamedServers::new();
    let same = format!("user = \"{USER}\"\ngateway_user = \"{USER}\"");
    let none = format!("user = \"{USER}\"\ngateway_user = \"no-such-user\"");
    for (settings, words) in
        [(same.as_str(), "a user of its own"), (none.as_str(), "no user no-such-user")]
    {
        described(&servers, settings);
        let ended = servers.run("start", &["site"]);
        assert!(ended.code != Some(0) && ended.stderr.contains(words), "{ended:?}");
    }
}

#[test]
fn without_a_user_php_is_not_root_and_the_log_says_who_it_is() {
    if !is_root() {
        return;
    }
    let servers = NamedServers::new();
    described(&servers, "");
    servers.run("start", &["site"]).well();
    let who = servers.client("site").get("/who.php").expect(200).text();
    assert_eq!(who, uid_of(USER).to_string());
    let log = fs::read_to_string(servers.path("conf/log/site.log")).expect("it is there");
    assert!(log.contains("PHP runs as www-data"), "{log}");
    servers.run("stop", &["site"]).well();

    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(servers.path("public"), mode(0o700)).expect("it is ours");
    let ended = servers.run("start", &["site"]);
    assert!(ended.code != Some(0) && ended.stderr.contains("run PHP as root"), "{ended:?}");
    described(&servers, "user = \"root\"");
    servers.run("start", &["site"]).well();
    assert_eq!(servers.client("site").get("/who.php").expect(200).text(), "0");
    let log = fs::read_to_string(servers.path("conf/log/site.log")).expect("it is there");
    assert!(log.contains("runs as root, as configured"), "{log}");
}

#[test]
fn no_process_survives_a_killed_gateway_or_spawner() {
    if !is_root() {
        return;
    }
    let site = || {
        let tables = "[app.site.pool]\nmin = 1\nmax = 1\n";
        Configured::start(Docroot::of("routing"), &Configured::text(tables))
    };
    let killed = site();
    let processes = killed.processes();
    assert!(processes.len() >= 2, "{processes:?}");
    let spawner = parent(processes[0]);
    assert_ne!(spawner, killed.child().pid());
    assert_eq!(users_of(spawner)[0], [0; 4]);
    let all: Vec<Process> = processes.iter().chain([&spawner]).copied().map(Process::of).collect();
    let _ = killed.into_killed();
    all.iter().for_each(Process::wait_until_gone);

    let orphaned = site();
    let processes = orphaned.processes();
    let all: Vec<Process> = processes.iter().copied().map(Process::of).collect();
    let pid = rustix::process::Pid::from_raw(parent(processes[0]).cast_signed());
    rustix::process::kill_process(pid.expect("it runs"), rustix::process::Signal::KILL)
        .expect("it is ours");
    all.iter().for_each(Process::wait_until_gone);
    assert_eq!(orphaned.child().wait(), Some(1));
    orphaned.logs(&["the spawner has exited"]);
}

#[test]
fn a_stopped_spawner_stops_neither_requests_nor_the_end() {
    if !is_root() {
        return;
    }
    use rustix::process::{Pid, Signal, kill_process};
    let tables = "[app.site.pool]\nmin = 1\nmax = 1\n";
    let site = Configured::start(Docroot::of("routing"), &Configured::text(tables));
    site.client().get("/index.php").expect(200);
    let spawner = Pid::from_raw(parent(site.processes()[0]).cast_signed()).expect("it runs");
    kill_process(spawner, Signal::STOP).expect("it is ours");
    std::thread::scope(|scope| {
        // It needs PHP of its own, which the spawner would start.
        let reload = scope.spawn(|| site.command("reload", &[]));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            site.client().get("/index.php").expect(200);
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(!reload.is_finished(), "the spawner is stopped");
        let ordered = Instant::now();
        site.child().signal(Signal::TERM);
        site.child().wait();
        assert!(ordered.elapsed() < Duration::from_secs(15), "{:?}", ordered.elapsed());
    });
    let _ = kill_process(spawner, Signal::CONT);
}

#[test]
fn a_reload_reads_and_a_rotation_makes_what_is_roots_alone() {
    if !is_root() {
        return;
    }
    let docroot = Docroot::of("routing");
    let folder = docroot.beside().path().to_owned();
    let of_root = |name: &str, mode: u32| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(folder.join(name), mode).expect("it is ours");
    };
    fs::create_dir(folder.join("keys")).expect("it is new");
    fs::create_dir(folder.join("logs")).expect("it is new");
    Certificate::make(&folder.join("keys"), "site", "DNS:one.test");
    of_root("keys", 0o700);
    let tables = format!(
        "[log.error]\npath = \"logs/error.log\"\n[app.site]\nroot = \"www\"\nuser = \"{USER}\"\n\
         [app.site.pool]\nmin = 1\nmax = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         tls = [{{ certificate = \"keys/site.pem\", key = \"keys/site.key\" }}]\n"
    );
    let site = Configured::start(docroot, &tables);
    of_root("outboard.toml", 0o600);
    Certificate::make(&folder.join("keys"), "site", "DNS:two.test");
    let reload = site.command("reload", &[]);
    assert!(reload.status.success(), "{reload:?}");
    let connect =
        site.listeners()[0].trim_start_matches("https://").trim_end_matches('/').to_owned();
    let shown = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!("openssl s_client -connect {connect} </dev/null | openssl x509 -noout -ext subjectAltName"))
        .output()
        .expect("openssl is there");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("two.test"), "{shown}");

    let log = folder.join("logs/error.log");
    fs::rename(&log, folder.join("logs/error.log.1")).expect("it is there");
    site.child().signal(rustix::process::Signal::USR1);
    site.command("reload", &[]);
    let text = fs::read_to_string(&log).expect("it was made anew");
    assert!(text.contains("generation 3 is active"), "{text}");
    assert_eq!(owner(&log), 0, "the folder is root's");
}

#[test]
fn capabilities_of_the_gateway_do_not_reach_php() {
    if !is_root() {
        return;
    }
    let docroot = Docroot::of("routing");
    docroot.put("status.php", "<?php readfile('/proc/self/status');");
    let admin = docroot.beside().path().join("admin.sock");
    let child = Launch::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--init-groups"])
        .args(["--inh-caps", "+net_bind_service", "--ambient-caps", "+net_bind_service", "--"])
        .arg(Server::binary())
        .arg("serve")
        .arg(docroot.path())
        .args(["--listen", "127.0.0.1:0", "--admin"])
        .arg(&admin)
        .start();
    let address = child.wait_for(|line| {
        line.strip_prefix("listening on http://")?.trim_end_matches('/').parse().ok()
    });
    let mut client = Client::new(address.expect("it starts"));
    let of_php = client.get("/status.php").expect(200).text();
    for line in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert!(of_php.contains(&format!("{line}:\t0000000000000000")), "{of_php}");
    }
    assert!(of_php.contains("NoNewPrivs:\t1"), "{of_php}");
    // The gateway keeps what a reload may need for an address.
    let own = fs::read_to_string(format!("/proc/{}/status", child.pid())).expect("it runs");
    assert!(own.contains("CapEff:\t0000000000000400"), "{own}");
}

/// The status of a file, or of an order to the admin socket, as curl gets it.
fn asked(command: &mut std::process::Command) -> String {
    let output = command.args(["-s", "-o", "/dev/null", "-w", "%{http_code}"]).args(["-m", "10"]);
    let output = output.output().expect("curl is there");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_gateway_sends_files_that_the_apps_group_can_read() {
    if !is_root() {
        return;
    }
    let tables = "[app.site.pool]\nmin = 1\nmax = 1\n";
    let site = Configured::start(Docroot::of("routing"), &Configured::text(tables));
    let put = |name: &str, mode: u32| {
        let path = site.root().join(name);
        fs::write(&path, name).expect("it is ours");
        let ids = (uid_of(USER), gid_of(USER));
        std::os::unix::fs::chown(&path, Some(ids.0), Some(ids.1)).expect("the test is root's");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(&path, mode).expect("it is ours");
    };
    put("group.txt", 0o640);
    put("alone.txt", 0o600);
    put("all.txt", 0o644);
    let mut client = site.client();
    client.get("/group.txt").expect(200).holding("group.txt");
    client.get("/all.txt").expect(200);
    client.get("/alone.txt").expect(403);
}

#[test]
fn admin_group_members_have_access_but_no_user_of_an_app() {
    if !is_root() {
        return;
    }
    let tables = "[admin]\ngroup = \"adm\"\n[app.site.pool]\nmin = 1\nmax = 1\n";
    let site = Configured::start(Docroot::of("routing"), &Configured::text(tables));
    let socket = site.admin_socket();
    let found = fs::metadata(&socket).expect("it is there");
    assert_eq!((found.mode() & 0o777, found.gid()), (0o660, gid_of("adm")));
    for (user, group, status) in
        [("games", "adm", "200"), (USER, "adm", "000"), ("games", "games", "000")]
    {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", user, "--regid", group, "--clear-groups", "--", "curl"]);
        command.arg("--unix-socket").arg(&socket).arg("http://a/status");
        assert_eq!(asked(&mut command), status, "{user} of {group}");
    }
    site.logs(&["user 33", "was refused"]);
}
