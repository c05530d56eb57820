//! The escape suite: what the PHP of one app, and native code in it, tries on another app, on the gateway
//! and on the machine. `make escape-suite` prints each attempt and its result.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Configured, Docroot, Request, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The user of the app that attacks, another one, and the gateway's.
const A: &str = "www-data";
const B: &str = "games";
const GATEWAY: &str = "daemon";

/// Without it there is one user only.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: it takes root to have users");
    }
    is_root
}

fn uid_of(name: &str) -> u32 {
    ids_of(name).0
}

fn ids_of(name: &str) -> (u32, u32) {
    let text = fs::read_to_string("/etc/passwd").expect("it is everybody's to read");
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:")));
    let mut fields = line.expect("Debian has this user").split(':').skip(2).map(str::parse);
    let mut number = || fields.next().expect("a field").expect("a number");
    (number(), number())
}

fn parent(pid: u32) -> u32 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|line| line.trim().parse().ok()).expect("proc(5) has it")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// The directory of app b, which is no temporary one.
struct OtherApp(PathBuf);

impl OtherApp {
    fn of(user: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/var/lib/outboard-e2e-{}-{number}", id()));
        fs::create_dir(&path).expect("the test is root's");
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sandbox/b/index.php");
        fs::copy(fixture, path.join("index.php")).expect("it is there");
        chown(&path, Some(uid_of(user)), None).expect("the test is root's");
        Self(path)
    }
}

impl Drop for OtherApp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A gateway with two apps.
struct Site {
    site: Configured,
    b: OtherApp,
}

/// `sandbox` is that of app a.
fn serving(user_of_b: &str, sandbox: &str) -> Site {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sandbox");
    let docroot = Docroot::copy(&fixtures.join("www"));
    let (folder, root) = (docroot.beside().path().to_owned(), docroot.path().to_owned());
    let compile = |arguments: &[&str], name: &str| {
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall", "-Werror"]).args(arguments);
        let done = cc.arg("-o").arg(root.join(name)).arg(fixtures.join("escape.c")).status();
        assert!(done.expect("a C compiler").success());
    };
    compile(&[], "escape");
    compile(&["-shared", "-fPIC"], "escape.so");
    chown(&root, Some(uid_of(A)), None).expect("the test is root's");
    let b = OtherApp::of(user_of_b);
    fs::create_dir(folder.join("logs")).expect("it is new");
    docroot.writable("kept");
    Certificate::make(&folder, "site", "DNS:a.test");
    set_mode(&folder.join("site.key"), 0o600);
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\ngateway_user = \"{GATEWAY}\"\n\
         [app.a]\nroot = \"www\"\nuser = \"{A}\"\n{sandbox}\n\
         [app.a.pool]\nmin = 1\nmax = 1\n\
         [app.a.php.ini]\n\"ffi.enable\" = true\n\
         [app.b]\nroot = {:?}\npath = \"/b\"\nuser = \"{user_of_b}\"\nkv_namespaces = [\"orders\"]\n\
         page_cache = {{ mode = \"on\", disk = \"cache\" }}\n\
         [app.b.pool]\nmin = 1\nmax = 1\n\
         [log.access]\npath = \"logs/access.log\"\n\
         [log.error]\npath = \"logs/error.log\"\n\
         [kv]\ndata_dir = \"kept\"\n[kv.namespace.orders]\n",
        b.0
    );
    let site = Configured::start(docroot, &text);
    set_mode(&folder.join("outboard.toml"), 0o600);
    // The mode of the socket lets it in; who it is does not.
    set_mode(&site.admin_socket(), 0o666);
    Site { site, b }
}

impl Site {
    fn json(&self, request: &Request) -> Value {
        let response = self.site.client().send(request).expect(200);
        serde_json::from_str(&response.text()).unwrap_or_else(|_| panic!("{}", response.text()))
    }

    /// Has every attempt made, prints them, and returns those that succeeded.
    fn attempts(&self, title: &str) -> (BTreeSet<String>, usize) {
        let folder = self.site.docroot().beside().path();
        // A program that is executed as its owner: on most machines sudo, here one of the test's own.
        let suid = folder.join("id");
        fs::copy("/usr/bin/id", &suid).expect("Debian has it");
        set_mode(&suid, 0o4755);
        // An abstract socket of a process that is not the app's.
        let name = format!("outboard-e2e-{}-{title}", id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let _listener = UnixListener::bind_addr(&address).expect("the name is new");
        let b = self.json(&Request::get("/b/"));
        let worker = b["pid"].as_u64().expect("a process id") as u32;
        let zygote = parent(worker);
        let targets = json!({
            "processes": {
                "gateway": self.site.child().pid(), "spawner": parent(zygote),
                "zygote of b": zygote, "worker of b": worker,
            },
            "sockets": { "admin": self.site.admin_socket() },
            "files": {
                "script": self.b.0.join("index.php"), "private file": self.b.0.join("private"),
                "public file": self.b.0.join("public"),
                "configuration": folder.join("outboard.toml"), "key": folder.join("site.key"),
                "access log": folder.join("logs/access.log"), "shadow": "/etc/shadow",
                "lock of the store": folder.join("kept/lock"),
            },
            "directories": {
                "root of b": self.b.0, "store": folder.join("kept/namespaces"),
                "journal": folder.join("kept/namespaces/orders/journal"),
                "page cache": folder.join("cache/b"), "system": "/usr/bin", "settings": "/etc",
            },
            // A worker that enters namespaces of its own could not go on.
            "ffi": !title.contains("off"),
            "other uid": uid_of(B), "suid": suid, "abstract": name, "shared": b["shared"],
        });
        let request = Request::post("/attack.php", "application/json", targets.to_string());
        let answer = self.json(&request);
        for (name, done) in answer["own"].as_object().expect("attempts") {
            assert_ne!(*done, json!(false), "what is its own it can do: {name}");
        }
        let mut succeeded = BTreeSet::new();
        let attempts = answer["attempts"].as_array().expect("attempts");
        println!("\n{title}: {} attempts", attempts.len());
        for attempt in attempts {
            let (subject, name) = (attempt[0].as_str().unwrap(), attempt[1].as_str().unwrap());
            let is_done = attempt[2] == json!(true);
            println!("{:9} {subject}: {name}", if is_done { "SUCCEEDED" } else { "denied" });
            if is_done {
                succeeded.insert(format!("{subject}: {name}"));
            }
        }
        // The gateway as a deputy: it sends no file of b that app a names to it.
        for path in ["/soft%20script", "/soft%20private%20file", "/soft%20public%20file", "/race"] {
            let text = self.site.client().get(path).text();
            let is_done = text.contains("of b");
            println!(
                "{:9} the gateway: sends {path}",
                if is_done { "SUCCEEDED" } else { "denied" }
            );
            if is_done {
                succeeded.insert(format!("the gateway: {path}"));
            }
        }
        self.site.client().get("/b/?clean=1").expect(200);
        (succeeded, attempts.len())
    }
}

/// `/usr/bin` and `/etc` may be listed, as by every user.
const LISTED: [&str; 2] = ["directories: settings listed", "directories: system listed"];

/// What the kernel ties to the user alone. A change of limits by prlimit(2) is not among it: to read them is.
const SHARED: [&str; 6] = [
    "files: private file given",
    "files: public file given",
    "shared: memory (/dev/shm)",
    "shared: memory (shmget)",
    "shared: session",
    "shared: temporary file",
];

/// What a user may do to a process of its own.
fn tuned(processes: &[&str]) -> BTreeSet<String> {
    let names = ["prlimit", "sched_setaffinity", "setpriority"];
    let ways = ["by a program", "by FFI"].map(|how| names.map(|name| (how, name)));
    let all =
        processes.iter().flat_map(|process| ways.iter().flatten().map(move |way| (process, way)));
    all.map(|(process, (how, name))| format!("{process}, {how}: {name}")).collect()
}

fn without_listed(succeeded: BTreeSet<String>) -> BTreeSet<String> {
    succeeded.into_iter().filter(|one| !LISTED.contains(&one.as_str())).collect()
}

#[test]
fn no_attempt_succeeds_on_an_app_of_another_user() {
    if !is_root() {
        return;
    }
    let (succeeded, count) = serving(B, "").attempts("two users, sandbox = \"default\"");
    assert_eq!(without_listed(succeeded), tuned(&["own zygote", "own monitor"]));
    assert!(count >= 300, "{count}");
}

#[test]
fn apps_of_one_user_share_what_the_kernel_ties_to_the_user() {
    if !is_root() {
        return;
    }
    let (succeeded, _) = serving(A, "").attempts("one user, sandbox = \"default\"");
    let mut shared: BTreeSet<String> = SHARED.map(str::to_owned).into();
    shared.extend(tuned(&["zygote of b", "worker of b", "own zygote", "own monitor"]));
    assert_eq!(without_listed(succeeded), shared);
}

#[test]
fn without_a_sandbox_modes_decide_what_is_read() {
    if !is_root() {
        return;
    }
    let (succeeded, _) = serving(B, "sandbox = \"off\"").attempts("two users, sandbox = \"off\"");
    for name in ["files: public file read", "directories: root of b listed"] {
        assert!(succeeded.contains(name), "{succeeded:?}");
    }
    let memory = succeeded.iter().find(|name| name.starts_with("memory of its own"));
    assert_eq!(memory, None, "it is nobody's without a sandbox either");
}

#[test]
fn a_worker_has_no_descriptor_or_mapping_of_another_app() {
    if !is_root() {
        return;
    }
    let site = serving(B, "");
    site.site.client().get("/b/").expect(200);
    let found = site.json(&Request::get("/descriptors.php"));
    site.site.client().get("/b/?clean=1").expect(200);
    let list = |name: &str| -> Vec<String> {
        let all = found[name].as_array().expect("a list").iter();
        all.map(|one| one.as_str().expect("a path").to_owned()).collect()
    };
    let of_b = site.b.0.display().to_string();
    let (descriptors, mapped) = (list("descriptors"), list("mapped"));
    assert!(!descriptors.iter().chain(&mapped).any(|path| path.contains(&of_b)), "{found}");
    let count = |list: &[String], word: &str| list.iter().filter(|one| one.contains(word)).count();
    // Its own ring is mapped and has no descriptor; one eventfd wakes it, and a pipe wakes the gateway.
    assert_eq!(
        (count(&mapped, "outboard-ring"), count(&descriptors, "outboard-ring")),
        (1, 0),
        "{found}"
    );
    assert_eq!(
        (count(&descriptors, "socket:"), count(&descriptors, "memfd:outboard")),
        (0, 0),
        "{found}"
    );
    let known = [
        "/dev/null",
        "opcache users",
        // OPcache's lock, until PHP 8.3 and since.
        ".ZendSem",
        "opcache_lock",
        "descriptors.php",
        "eventfd",
        "eventpoll",
        "pipe:",
    ];
    let is_known = |path: &&String| !known.iter().any(|word| path.contains(word));
    assert_eq!(descriptors.iter().find(is_known), None, "{found}");
}

#[test]
fn a_strict_app_has_only_what_is_listed() {
    if !is_root() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let sandbox = format!(
        "[app.a.sandbox]\nlevel = \"strict\"\nwrite_paths = [\"www/kept\"]\nconnect_ports = [{port}]\n"
    );
    let site = serving(B, &sandbox);
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let other = other.local_addr().expect("an address").port();
    let found = site.json(&Request::get(&format!("/strict.php?port={port}&other={other}")));
    let expected = json!({
        "read": true, "write listed": true, "connect listed": true, "name": true,
        "write to the root": false, "write to /tmp": false, "exec": false, "popen": false,
        "proc_open": false, "connect": false, "listen": false,
        "mptcp": false, "seqpacket": false, "fast open": false, "fast open by option": false,
        "listen unbound": false,
    });
    assert_eq!(found, expected);
}

#[test]
fn a_root_that_its_user_replaces_by_a_link_leads_nowhere() {
    if !is_root() {
        return;
    }
    let site = serving(B, "");
    let folder = site.site.docroot().beside().path();
    fs::write(site.site.docroot().path().join("peek.php"), "<?= 'own';").expect("it is ours");
    fs::write(site.b.0.join("peek.php"), "<?= 'peeked';").expect("it is ours");
    fs::write(site.b.0.join("secret.txt"), "secret of b").expect("it is ours");
    let user = ids_of(B);
    chown(site.b.0.join("secret.txt"), Some(user.0), Some(user.1)).expect("the test is root's");
    set_mode(&site.b.0.join("secret.txt"), 0o640);
    let get = |path: &str| site.site.client().send(&Request::get(path));
    assert_eq!(get("/peek.php").expect(200).text(), "own");
    // As PHP does where the directory above is its own.
    chown(folder, Some(uid_of(A)), None).expect("the test is root's");
    fs::rename(folder.join("www"), folder.join("www.real")).expect("it is there");
    std::os::unix::fs::symlink(&site.b.0, folder.join("www")).expect("the name is free");
    std::os::unix::fs::lchown(folder.join("www"), Some(uid_of(A)), None).expect("as above");
    let reload = site.site.command("reload", &[]);
    let error = String::from_utf8_lossy(&reload.stderr).into_owned();
    assert!(!reload.status.success() && error.contains("symbolic link"), "{reload:?}");
    assert_ne!(get("/secret.txt").status, 200);
    for monitor in site.site.monitors() {
        let zygote = Pid::from_raw(parent(monitor) as i32).expect("a process");
        kill_process(zygote, Signal::KILL).expect("it runs");
    }
    let log = || fs::read_to_string(folder.join("logs/error.log")).unwrap_or_default();
    eventually("the next zygote refuses the link", || log().contains("sandbox: not accessible"));
    eventually("it serves", || ![502, 503].contains(&get("/peek.php").status));
    assert!(!get("/peek.php").text().contains("peeked"));
}

#[test]
fn a_denied_file_is_logged_once_with_what_permits_it() {
    if !is_root() {
        return;
    }
    let data = OtherApp::of(A);
    chown(data.0.join("index.php"), Some(uid_of(A)), None).expect("the test is root's");
    let (file, made) = (data.0.join("index.php"), data.0.join("made"));
    for tables in [
        "",
        "[app.site.worker]\nscript = \"www/deny_worker.php\"\nisolation = \"rewind\"\n",
        "[app.site.worker]\nscript = \"www/deny_worker.php\"\nisolation = \"rewind\"\n\
         [app.site.php.env]\nOUTBOARD_FORBID_REWIND = \"1\"\n",
    ] {
        let docroot =
            Docroot::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sandbox/www"));
        let mode = if tables.is_empty() { "classic" } else { "worker" };
        let text = Configured::text(&format!("[app.site.pool]\nmin = 2\nmax = 2\n{tables}"));
        let text = text.replace("root = \"www\"", &format!("root = \"www\"\nmode = \"{mode}\""));
        let site = Configured::start(docroot, &format!("user = \"{A}\"\n{text}"));
        for _ in 0..6 {
            let target = format!("/denied_files.php?dir={}", data.0.display());
            site.client().get(&target).expect(200).saying("denied");
        }
        let key = format!("['{}']", data.0.display());
        for (words, path) in [("may not read", &file), ("may not write", &file), ("write", &made)] {
            let path = format!(" {}: add", path.display());
            let line = site.logs(&["sandbox: PHP", words, &path, &key]);
            let log = site.child().output();
            let same = log
                .lines()
                .filter(|other| other.contains(&line[line.find("sandbox: ").unwrap()..]));
            assert_eq!(same.count(), 1, "{tables}\n{log}");
        }
        assert!(!site.child().output().contains("shadow: add"), "{}", site.child().output());
    }
}

#[test]
fn a_denied_call_is_logged_with_its_rule_and_program() {
    let site = Configured::serving("sandbox/www", "[pool]\nmin = 1\nmax = 1\n");
    assert_eq!(site.client().get("/denied.php").expect(200).text(), "Operation not permitted");
    site.logs(&["sandbox: ", "unshare", "may not call unshare", "rule namespaces"]);
}

#[test]
fn a_monitor_ends_with_its_zygote() {
    let site = Configured::serving("sandbox/www", "[pool]\nmin = 1\nmax = 1\n");
    let monitors = site.monitors();
    assert_eq!(monitors.len(), 1);
    let zygote = Pid::from_raw(parent(monitors[0]) as i32).expect("a process");
    kill_process(zygote, Signal::KILL).expect("it runs");
    let are_gone =
        |pids: &[u32]| !pids.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists());
    eventually("its monitor has gone", || are_gone(&monitors));
    eventually("the next zygote has one", || site.monitors().len() == 1);
    let monitors = site.monitors();
    drop(site.into_killed());
    eventually("it ends with the gateway", || are_gone(&monitors));
}

#[test]
fn a_killed_monitor_permits_nothing() {
    let site = Configured::serving("sandbox/www", "[pool]\nmin = 1\nmax = 1\n");
    for monitor in site.monitors() {
        let monitor = Pid::from_raw(monitor as i32).expect("a process");
        kill_process(monitor, Signal::KILL).expect("it runs");
    }
    let text = || site.client().get("/denied.php").expect(200).text();
    eventually("the call has no monitor", || text().contains("Function not implemented"));
}

#[test]
fn limits_of_a_control_group_that_cannot_be_set_are_logged() {
    let tables = "[app.site.php.control_group]\nmemory_max = \"1 GiB\"\n[pool]\nmin = 1\nmax = 1\n";
    let site = Configured::serving("sandbox/www", tables);
    site.client().get("/denied.php").expect(200);
    let worker = *site.processes().last().expect("a worker");
    let groups = fs::read_to_string(format!("/proc/{worker}/cgroup")).expect("it runs");
    let is_limited = groups.lines().any(|line| line.ends_with("/app-site"));
    let limit = groups.lines().find_map(|line| {
        let group = line.strip_prefix("0::")?;
        fs::read_to_string(format!("/sys/fs/cgroup{group}/memory.max")).ok()
    });
    match limit {
        Some(limit) if is_limited => assert_eq!(limit.trim(), (1_u64 << 30).to_string()),
        _ => drop(site.logs(&["the limits of its control group are not complete"])),
    }
    drop(site.into_stopped());
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
        let group = format!("{mount}{}", group.unwrap_or_default());
        if group.ends_with("/app-site") && Path::new(&group).exists() {
            let removed = || fs::remove_dir(&group).is_ok();
            eventually("the group has no processes", removed);
        }
    }
}
