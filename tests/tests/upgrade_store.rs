//! An upgrade of a server with an entity store: no record is lost, and no request fails, whichever process
//! has the store.

#![forbid(unsafe_code)]

#[path = "upgrade/installed.rs"]
#[allow(dead_code)]
mod installed;

use installed::{Installed, POOL, succeeded, text};
use outboard_e2e::{Docroot, Wire, eventually, repeating};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const STORE: &str = "[kv]\ndata_dir = \"kv\"\npath = \"/kv\"\ntrusted_clients = [\"127.0.0.1\"]\n\
                     [kv.namespace.synced]\ndurability = \"always\"\n\
                     [kv.namespace.memory]\ndurability = \"memory\"\n";

const NAMESPACES: [&str; 3] = ["default", "synced", "memory"];

/// Counts in the store; `at` and `for` are files that it creates and waits for before.
const COUNT: &str = "<?php $kv = new Outboard\\KV($_GET['namespace']);\n\
    if (isset($_GET['at'])) { touch($_GET['at']); while (!file_exists($_GET['for'])) usleep(1000); }\n\
    echo $kv->increment($_GET['key']), \"\\n\";";

fn start() -> Installed {
    let docroot = Docroot::of("reload");
    docroot.put("count.php", COUNT);
    fs::set_permissions(docroot.beside().path(), fs::Permissions::from_mode(0o777)).unwrap();
    Installed::with(docroot, text(&format!("{POOL}\n{STORE}")))
}

#[track_caller]
fn get(wire: &mut Wire, target: &str) -> (String, String) {
    wire.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let head = wire.head();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let length = head.split("Content-Length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let length = length.and_then(|length| length.parse().ok()).expect("a length");
    (String::from_utf8(wire.exactly(length)).unwrap(), head)
}

#[test]
fn five_upgrades_under_load_lose_no_record() {
    let server = start();
    let (counted, next_client) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let client = |is_over: &dyn Fn() -> bool| {
        let mut wire = server.site.wire();
        let client = next_client.fetch_add(1, Ordering::Relaxed);
        let mut value = 0;
        while !is_over() {
            value += 1;
            for namespace in NAMESPACES {
                let target = format!("/count.php?namespace={namespace}&key=client{client}");
                let (body, head) = get(&mut wire, &target);
                // Neither lost nor repeated.
                assert_eq!(body, format!("{value}\n"), "{namespace}");
                counted.fetch_add(1, Ordering::Relaxed);
                if head.contains("Connection: close") {
                    wire = server.site.wire();
                }
            }
        }
    };
    repeating(3, client, || {
        for _ in 0..5 {
            let before = server.pid();
            succeeded(&server.upgrade(), &server.site);
            assert_ne!(server.pid(), before);
        }
    });
    let output = server.site.child().output();
    output
        .lines()
        .filter(|line| line.contains("store has moved"))
        .for_each(|line| println!("{line}"));
    let counted = counted.into_inner();
    println!("{counted} counted, 0 lost, repeated or failed");
    assert!(counted > 50);
}

#[test]
fn a_request_of_the_old_server_counts_in_the_store_of_the_new_one() {
    let server = start();
    let folder = server.site.docroot().beside().path();
    for namespace in NAMESPACES {
        let target = |rest: &str| format!("/count.php?namespace={namespace}&key=n{rest}");
        let (at, go) =
            (folder.join(format!("at-{namespace}")), folder.join(format!("go-{namespace}")));
        assert_eq!(get(&mut server.site.wire(), &target("")).0, "1\n");
        let mut wire = server.site.wire();
        let waiting = target(&format!("&at={}&for={}", at.display(), go.display()));
        wire.send(format!("GET {waiting} HTTP/1.1\r\nHost: a\r\n\r\n"));
        eventually("the request runs", || at.exists());
        succeeded(&server.upgrade(), &server.site);
        assert_eq!(get(&mut server.site.wire(), &target("")).0, "2\n");
        fs::write(&go, "").unwrap();
        let head = wire.head();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        wire.expect("3\n");
        assert_eq!(get(&mut server.site.wire(), &target("")).0, "4\n");
    }
}

#[test]
fn a_failed_upgrade_leaves_the_store_where_it_was() {
    let server = start();
    let pid = server.pid();
    let count = |expected: usize| {
        for namespace in NAMESPACES {
            let target = format!("/count.php?namespace={namespace}&key=n");
            assert_eq!(get(&mut server.site.wire(), &target).0, format!("{expected}\n"));
        }
    };
    count(1);
    for (text, word) in [
        (server.text.replace("[kv.namespace.synced]\n", "[kv.namespace.other]\n"), "restart"),
        (server.text.replace("data_dir = \"kv\"", "data_dir = \"other\""), "restart"),
        (server.text.replace("durability = \"always\"", "durability = \"sometimes\""), "sometimes"),
    ] {
        assert_ne!(text, server.text);
        server.site.rewrite(&text);
        let output = server.upgrade();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(word), "{message}");
        assert_eq!(server.pid(), pid);
    }
    count(2);
    server.site.rewrite(&server.text);
    succeeded(&server.upgrade(), &server.site);
    count(3);
}

/// The processes of the server, newest last.
fn processes(server: &Installed) -> Vec<i32> {
    let program = server.program();
    let is_gateway = |pid: &i32| {
        let of = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = |word: &[u8]| command.split(|byte| *byte == 0).any(|one| one == word);
        of("exe").is_ok_and(|exe| exe == program) && words(b"serve") && !words(b"starter")
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found: Vec<i32> = pids.filter(is_gateway).collect();
    found.sort_unstable();
    found
}

/// Kills a process of each upgrade, later each time, while clients write. What they got is never lost.
fn kills(is_new: bool) {
    const ROUNDS: u64 = 8;
    let server = start();
    let (written, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let killed = AtomicUsize::new(0);
    let client = |is_over: &dyn Fn() -> bool| {
        let mut open = None;
        while !is_over() {
            let Ok(mut stream) =
                open.take().map_or_else(|| TcpStream::connect(server.site.address()), Ok)
            else {
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let key = format!("key{}", next.fetch_add(1, Ordering::Relaxed));
            let request = format!(
                "PUT /kv/entity?namespace=synced&id={key} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
            );
            let mut response = [0; 4096];
            let sent =
                stream.write_all(request.as_bytes()).and_then(|()| stream.read(&mut response));
            if sent.is_ok_and(|count| response[..count].starts_with(b"HTTP/1.1 201")) {
                written.lock().unwrap().push(key);
                let is_last = response.windows(17).any(|part| part == b"Connection: close");
                open = (!is_last).then_some(stream);
            }
        }
    };
    repeating(2, client, || {
        for round in 0..ROUNDS {
            let (old, before) = (server.pid() as i32, processes(&server));
            kill_process(Pid::from_raw(old).unwrap(), Signal::USR2).unwrap();
            let mut new = None;
            eventually("the new process starts", || {
                new = processes(&server).into_iter().find(|pid| !before.contains(pid));
                new.is_some()
            });
            thread::sleep(Duration::from_millis(round * 120));
            let new = new.unwrap();
            if is_new && server.try_pid() == u64::try_from(new).ok() {
                // It has taken over: it is the server, and there is none beside it that could go on.
                continue;
            }
            let victim = if is_new { new } else { old };
            // It may have completed its part.
            let _ = kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL);
            eventually("it has ended", || !processes(&server).contains(&victim));
            let mut is_serving = false;
            eventually("it serves, or it had taken over since", || {
                is_serving = server.try_pid().is_some();
                is_serving || TcpStream::connect(server.site.address()).is_err()
            });
            if !is_serving {
                break;
            }
            killed.fetch_add(1, Ordering::Relaxed);
            let written = written.lock().unwrap().clone();
            for key in written {
                let target = format!("/kv/entity?namespace=synced&id={key}");
                server.site.client().get(&target).expect(200).saying("x");
            }
        }
    });
    let (written, killed) = (written.into_inner().unwrap().len(), killed.into_inner());
    println!("{written} records acknowledged, {killed} processes killed");
    assert!(written > 20 && killed > 1);
}

#[test]
fn killing_the_new_server_in_any_phase_loses_no_record() {
    kills(true);
}

#[test]
fn killing_the_old_server_in_any_phase_loses_no_record() {
    kills(false);
}
