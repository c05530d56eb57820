//! What the PHP of one app cannot do to the gateway, to its spawner, or to another app.

#![forbid(unsafe_code)]

use outboard_e2e::{Certificate, Configured, Docroot, Request};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// The users of the app that attacks, of the other, and of the gateway.
const A: &str = "www-data";
const B: &str = "games";
const GATEWAY: &str = "daemon";

fn uid_of(name: &str) -> u32 {
    let text = fs::read_to_string("/etc/passwd").expect("it is everybody's to read");
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:")));
    line.and_then(|line| line.split(':').nth(2)?.parse().ok()).expect("Debian has this user")
}

/// A line of `/proc/PID/status`.
fn status(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("proc(5) has it").trim().to_owned()
}

fn user_of(pid: u32) -> u32 {
    status(pid, "Uid").split_whitespace().next().and_then(|uid| uid.parse().ok()).expect("a number")
}

fn put(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("it is ours");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

fn serving() -> Configured {
    let docroot = Docroot::of("privileges");
    let folder = docroot.beside().path().to_owned();
    let make = |name: &str, user: &str| {
        let path = folder.join(name);
        fs::create_dir(&path).expect("it is new");
        chown(&path, Some(uid_of(user)), None).expect("the test is root's");
    };
    make("b", B);
    make("a-logs", A);
    fs::create_dir(folder.join("logs")).expect("it is new");
    fs::rename(docroot.path().join("b.php"), folder.join("b/index.php")).expect("it is there");
    Certificate::make(&folder, "site", "DNS:a.test");
    let key = folder.join("site.key");
    fs::set_permissions(key, Permissions::from_mode(0o600)).expect("it is ours");
    let text = format!(
        "listen = [\"127.0.0.1:0\"]\ngateway_user = \"{GATEWAY}\"\n\
         [app.a]\nroot = \"www\"\nuser = \"{A}\"\nkv_namespaces = [\"shared\"]\n\
         [app.a.pool]\nmin = 1\nmax = 1\n\
         [app.a.php.ini]\n\"ffi.enable\" = true\n\
         [app.a.php.rlimits]\nfiles = 512\n\
         [app.a.log.error]\npath = \"a-logs/error.log\"\n\
         [app.b]\nroot = \"b\"\npath = \"/b\"\nuser = \"{B}\"\nkv_namespaces = [\"orders\"]\n\
         page_cache = {{ mode = \"on\", disk = \"cache\" }}\n\
         [app.b.pool]\nmin = 1\nmax = 1\n\
         [app.b.php.env]\nPASSWORD = \"of b\"\n\
         [log.access]\npath = \"logs/access.log\"\n\
         [log.error]\npath = \"logs/error.log\"\n\
         [kv]\ndata_dir = \"kept\"\nlisten = \"127.0.0.1:0\"\n\
         [kv.namespace.orders]\n[kv.namespace.shared]\n"
    );
    Configured::start(docroot, &text)
}

#[test]
fn an_app_reaches_nothing_that_is_not_its_own() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: it takes root to have users");
        return;
    }
    let site = serving();
    let folder = site.docroot().beside().path().to_owned();
    put(
        &folder.join("outboard.toml"),
        &fs::read_to_string(folder.join("outboard.toml")).unwrap(),
        0o600,
    );
    // The mode of the socket lets it in; who it is does not.
    fs::set_permissions(site.admin_socket(), Permissions::from_mode(0o666)).expect("it is ours");
    // What is executed as its owner: on most machines sudo, here one of our own.
    fs::copy("/usr/bin/id", folder.join("id")).expect("Debian has it");
    fs::set_permissions(folder.join("id"), Permissions::from_mode(0o4755)).expect("it is ours");
    let precious = folder.join("precious");
    put(&precious, "the gateway's\n", 0o600);
    chown(&precious, Some(uid_of(GATEWAY)), None).expect("the test is root's");

    let of_b: u32 = site.client().get("/b/").expect(200).text().parse().expect("a process id");
    let gateway = site.child().pid();
    let parent = |pid: u32| status(pid, "PPid").parse::<u32>().expect("a number");
    let zygote_of_b = parent(of_b);
    let spawner = parent(zygote_of_b);
    let zygotes = site.processes();
    let own_zygote = *zygotes.iter().find(|pid| user_of(**pid) == uid_of(A)).expect("it runs");
    let users = [gateway, spawner, own_zygote, zygote_of_b].map(user_of);
    assert_eq!(users, [uid_of(GATEWAY), 0, uid_of(A), uid_of(B)]);

    let attempts = json!({
        "processes": {
            "gateway": gateway, "spawner": spawner, "own zygote": own_zygote,
            "other zygote": zygote_of_b, "other worker": of_b,
        },
        "sockets": { "admin": site.admin_socket() },
        "files": {
            "configuration": folder.join("outboard.toml"), "key": folder.join("site.key"),
            "private file": folder.join("b/private"), "access log": folder.join("logs/access.log"),
            "error log": folder.join("logs/error.log"), "lock of the store": folder.join("kept/lock"),
            "gateway's file": &precious,
        },
        "folders": {
            "store": folder.join("kept/namespaces"), "journal": folder.join("kept/namespaces/orders/journal"),
            "page cache": folder.join("cache/b"),
        },
        "store": site.listeners().last().expect("the store has one"),
        "gateway uid": uid_of(GATEWAY), "other uid": uid_of(B),
        "suid": folder.join("id"), "own": folder.join("a-logs/own"),
        "log": folder.join("a-logs/error.log"), "precious": &precious,
    });
    let request = Request::post("/attack.php", "application/json", attempts.to_string());
    let answer: Value =
        serde_json::from_str(&site.client().send(&request).expect(200).text()).unwrap();
    let of = |part: &str| answer[part].as_object().expect("attempts").clone();
    let (done, own) = (of("done"), of("own"));
    let with = |all: &serde_json::Map<String, Value>, outcome: bool| -> Vec<String> {
        all.iter().filter(|(_, done)| **done == outcome).map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(with(&own, false), Vec::<String>::new(), "what is its own it can do");
    assert_eq!(with(&done, true), Vec::<String>::new(), "of {} attempts", done.len());
    assert!(done.len() >= 100, "{}", done.len());
    assert_eq!(site.client().get("/b/").expect(200).text(), of_b.to_string());

    // Its log is a link now: it is not followed when logs are opened anew.
    site.child().signal(Signal::USR1);
    site.command("reload", &[]);
    site.client().get("/attack.php");
    assert_eq!(fs::read_to_string(&precious).expect("it is there"), "the gateway's\n");
    site.client().get("/b/").expect(200);
}
