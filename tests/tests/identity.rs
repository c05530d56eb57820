//! Who serves: a server that root starts goes on as the configured user.

#![forbid(unsafe_code)]

use outboard_e2e::{NamedServers, Process};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

const USER: &str = "www-data";

/// Only root can become somebody else.
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
    servers.put("public/who.php", "<?php echo fileowner('/proc/self/status');");
    servers.describe(
        "site",
        &format!(
            "listen = [\"127.0.0.1:0\", \"unix:{}\"]\n{settings}\n[pool]\nmin = 1\n\
             [log.access]\nto = \"{}\"\n[app.site]\nroot = \"../public\"\n",
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
fn root_binds_the_addresses_and_the_user_serves() {
    if !is_root() {
        return;
    }
    let servers = NamedServers::new();
    described(&servers, &format!("user = \"{USER}\""));
    let uid = uid_of(USER);
    // The second start finds what the first, which could not remove it, has left.
    for _ in 0..2 {
        servers.run("start", &["site"]).well();
        let pid = servers.pid("site");
        for ids in users_of(pid) {
            assert_eq!(ids, [uid; 4]);
        }
        let who = servers.client("site").get("/who.php").expect(200).text();
        assert_eq!(who, uid.to_string());
        assert!(through(&servers.path("run/http.sock")).ends_with(&who));
        for file in ["run/http.sock", "run/site.sock", "access.log", "conf/log/site.log"] {
            assert_eq!(owner(&servers.path(file)), uid, "{file}");
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
fn a_group_of_its_own_is_the_servers_and_phps() {
    if !is_root() {
        return;
    }
    let servers = NamedServers::new();
    described(&servers, &format!("user = \"{USER}\"\ngroup = \"nogroup\""));
    servers.put("public/group.php", "<?php echo filegroup('/proc/self/status');");
    servers.run("start", &["site"]).well();
    let group = fs::metadata(servers.path("access.log")).expect("it is there").gid();
    assert_eq!(
        fs::metadata(format!("/proc/{}", servers.pid("site"))).expect("it runs").gid(),
        group
    );
    let of_php = servers.client("site").get("/group.php").expect(200).text();
    assert_eq!(of_php, group.to_string());
}

#[test]
fn apps_of_different_users_keep_the_gateway_root_and_the_log_says_so() {
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
    assert_eq!(users_of(servers.pid("site"))[0], [0; 4]);
    let mut client = servers.client("site");
    for (target, user) in [("/who.php", USER), ("/other/who.php", "nobody")] {
        assert_eq!(client.get(target).expect(200).text(), uid_of(user).to_string());
    }
    let log = fs::read_to_string(servers.path("conf/log/site.log")).expect("it is there");
    assert!(log.contains("the gateway stays root"), "{log}");
}
