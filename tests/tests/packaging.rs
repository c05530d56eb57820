//! What the packages and the container image bring fits the programs.

#![forbid(unsafe_code)]

use outboard_e2e::{Scratch, Server, page::repository};
use regex::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

fn text(file: &str) -> String {
    let path = repository().join("packaging").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

fn check(file: &std::path::Path) -> Command {
    let mut command = Command::new(Server::binary());
    command.arg("check").arg(file);
    command
}

#[test]
fn the_configuration_of_the_package_is_valid() {
    let folder = Scratch::new("package");
    let root = folder.folder("www");
    let text = text("outboard.toml");
    assert!(text.contains("\"/var/www/html\"") && text.contains("\"/var/log/outboard/"));
    let text = text.replace("/var/www/html", &root.display().to_string());
    let text = text.replace("/var/log/outboard", &folder.path().display().to_string());
    succeeded(&check(&folder.file("outboard.toml", text)).output().unwrap());
}

#[test]
fn the_configuration_of_the_image_is_valid_with_every_variable() {
    let folder = Scratch::new("image");
    let root = folder.folder("public");
    let file = folder.file("outboard.toml", text("image.toml"));
    succeeded(&check(&file).env("DOCUMENT_ROOT", &root).output().unwrap());
    let mut changed = check(&file);
    changed.env("DOCUMENT_ROOT", &root).env("PORT", "81").env("METRICS_PORT", "82");
    changed.env("TRUSTED_PROXY", "10.0.0.0/8").env("DRAIN_TIMEOUT", "5s");
    changed.env("OUTBOARD_ENV", "development");
    succeeded(&changed.output().unwrap());
    let refused = check(&file).env("DOCUMENT_ROOT", &root).env("PORT", "none").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn examples_of_containers_name_this_version_and_known_variables() {
    let image = text("image.toml");
    let known: Vec<_> = Regex::new(r"\$\{(\w+):-").unwrap().captures_iter(&image).collect();
    let known: Vec<&str> = known.iter().map(|found| found.get(1).unwrap().as_str()).collect();
    assert_eq!(known.len(), 6);
    let used = Regex::new(r"(?m)^ +(?:- name: )?([A-Z_]+)(?::|$)").unwrap();
    for file in ["compose.yaml", "kubernetes/outboard.yaml"] {
        let text = text(file);
        let version = format!("image: outboard:{}\n", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&version), "{file}");
        let names: Vec<&str> =
            used.captures_iter(&text).map(|found| found.get(1).unwrap().as_str()).collect();
        assert!(!names.is_empty(), "{file}");
        names.iter().for_each(|name| assert!(known.contains(name), "{file}: {name}"));
    }
}

/// `outboard status` and its like look for named servers in /etc/outboard, the others for the default socket.
#[test]
fn commands_find_the_server_of_the_unit_without_options() {
    let unit = fs::read_to_string(repository().join("dist/outboard.service")).unwrap();
    assert!(unit.contains("serve --name outboard --conf-dir /etc/outboard\n"), "{unit}");
    assert!(unit.contains("RuntimeDirectory=outboard\n"), "{unit}");
    assert!(text("outboard.toml").contains("socket = \"/run/outboard.sock\"\n"));
}

/// Where the service manager is installed, as in Debian.
#[test]
fn systemd_understands_the_units() {
    let folder = Scratch::new("units");
    let programs = Server::binary().parent().unwrap().display().to_string();
    for unit in ["outboard.service", "outboard@.service", "outboard@.socket"] {
        let text = fs::read_to_string(repository().join("dist").join(unit)).unwrap();
        // Without its manual page, which is not installed here.
        let text = text.replace("/usr/local/bin", &programs).replace("man:outboard(1)", "");
        let file = folder.file(unit, text);
        let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(file).output() else {
            return eprintln!("skipped: there is no systemd-analyze");
        };
        succeeded(&output);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The system calls of a group of systemd, with the groups in it.
fn calls_of(group: &str) -> Option<BTreeSet<String>> {
    let output = Command::new("systemd-analyze").args(["syscall-filter", group]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut calls = BTreeSet::new();
    for line in text.lines().skip(1).map(str::trim) {
        match line.starts_with('@') {
            true => calls.extend(calls_of(line)?),
            false => drop(calls.insert(line.to_owned())),
        }
    }
    Some(calls)
}

#[test]
fn the_units_permit_what_the_server_calls() {
    let Some(general) = calls_of("@system-service") else {
        return eprintln!("skipped: there is no systemd-analyze");
    };
    assert!(general.contains("epoll_wait") && !general.contains("mount"));
    for unit in ["outboard.service", "outboard@.service"] {
        let text = fs::read_to_string(repository().join("dist").join(unit)).unwrap();
        // It has openat2 fail with ENOSYS (systemd.exec(5)), without which no file is opened.
        assert!(!text.lines().any(|line| line.starts_with("RestrictSUIDSGID=")), "{unit}");
        let filters = text.lines().filter_map(|line| line.strip_prefix("SystemCallFilter="));
        let named: Vec<&str> = filters.flat_map(str::split_whitespace).collect();
        assert!(named.contains(&"@system-service"), "{unit}");
        for call in [
            "landlock_create_ruleset",
            "landlock_add_rule",
            "landlock_restrict_self",
            "seccomp",
            "pidfd_open",
            "pidfd_getfd",
            "pidfd_send_signal",
            "process_vm_readv",
            "memfd_create",
            "setresuid",
            "setgroups",
            "capset",
        ] {
            assert!(general.contains(call) || named.contains(&call), "{unit}: {call}");
        }
    }
}
