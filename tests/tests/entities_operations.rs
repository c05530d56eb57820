//! `outboard kv`, a full disk, a damaged file: what an operator meets.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request};
use std::path::PathBuf;
use std::process::Output;

fn store(folder: &str, tables: &str) -> Configured {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n\
         [app.site.pool]\nmin = 1\nmax = 1\n[kv]\ndata_dir = \"{folder}\"\n\
         listen = \"127.0.0.1:0\"\n{tables}\n"
    );
    Configured::start(Docroot::of("entities"), &text)
}

#[track_caller]
fn kv(site: &Configured, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = site.command("kv", arguments);
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

#[test]
fn the_command_line_reads_and_writes() {
    let site = store("entities", "[kv.namespace.other]");
    kv(&site, &["put", "a", "one"]);
    kv(&site, &["put", "tab\there", "line\nbreak"]);
    assert_eq!(kv(&site, &["get", "a"]), "one");
    assert_eq!(kv(&site, &["scan"]), "a\tone\ntab\\there\tline\\nbreak\n");
    assert_eq!(kv(&site, &["scan", "b"]), "tab\\there\tline\\nbreak\n");
    assert_eq!(kv(&site, &["scan", "", "b"]), "a\tone\n");
    assert_eq!(kv(&site, &["scan", "--namespace", "other"]), "");
    kv(&site, &["delete", "a"]);
    assert_eq!(site.command("kv", &["get", "a"]).status.code(), Some(3));
    kv(&site, &["put", "--ttl-ms", "0", "a", "gone"]);
    assert_eq!(site.command("kv", &["get", "a"]).status.code(), Some(3));
    let nowhere = site.command("kv", &["get", "--namespace", "nowhere", "a"]);
    assert_eq!(nowhere.status.code(), Some(1));
    let stats = kv(&site, &["stats"]);
    assert!(stats.contains("namespace other: durability interval of 1000 ms"), "{stats}");
}

#[test]
fn a_backup_restores_everything_and_a_damaged_one_nothing() {
    let site = store("entities", "");
    for number in 0..300 {
        kv(&site, &["put", &format!("k{number}"), &"v".repeat(number * 7)]);
    }
    let file = site.docroot().beside().path().join("store.backup");
    let name = file.to_str().unwrap();
    assert!(kv(&site, &["backup", name]).starts_with("300 records"));
    let before = kv(&site, &["scan"]);
    kv(&site, &["put", "k7", "other"]);
    kv(&site, &["delete", "k8"]);
    assert!(kv(&site, &["restore", name]).starts_with("300 records"));
    assert_eq!(kv(&site, &["scan"]), before);
    kv(&site, &["compact"]);
    assert_eq!(kv(&site, &["scan"]), before);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    kv(&site, &["put", "k7", "other"]);
    let refused = site.command("kv", &["restore", name]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("damaged or truncated after"));
    assert_eq!(kv(&site, &["get", "k7"]), "other");
}

/// A file system of a few MiB, gone with the test.
struct Small(PathBuf);

impl Small {
    fn mount(at: PathBuf) -> Self {
        std::fs::create_dir_all(&at).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"])
            .arg(&at)
            .status();
        assert!(mounted.unwrap().success(), "mounting a tmpfs needs root");
        Self(at)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_507_and_loses_nothing_that_was_answered() {
    let scratch = outboard_e2e::Scratch::new("entities-full");
    let small = Small::mount(scratch.path().join("small"));
    let site =
        store(small.0.to_str().unwrap(), "write_buffer = \"256 KiB\"\ndurability = \"always\"");
    let mut client = outboard_e2e::Client::new(site.address_of(1));
    let value = |number: u32| number.to_le_bytes().repeat(2500);
    let target = |number: u32| format!("/v0/entity?id=k{number:05}");
    let mut answered = 0;
    loop {
        let put = Request::new("PUT", &target(answered)).body(value(answered));
        match client.send(&put).status {
            201 => answered += 1,
            507 => break,
            other => panic!("{other}"),
        }
        assert!(answered < 2000, "3 MiB hold no 20 MB");
    }
    assert!(answered > 20, "{answered}");
    for number in 0..answered {
        assert_eq!(client.get(&target(number)).expect(200).body, value(number), "{number}");
    }
    client.get(&target(answered)).expect(404);
}
