//! Floods of files: one that has no end for its readers, a folder that changes all the time, and logs
//! that take nothing.

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_large_file_that_is_read_as_fast_as_it_comes() {
    let docroot = docroot();
    docroot.put("large.bin", "");
    let file = std::fs::File::options().write(true).open(docroot.path().join("large.bin"));
    file.and_then(|file| file.set_len(256 << 20)).expect("a file with a hole");
    let text = text("listen = \"127.0.0.1:0\"\n", "[app.site.pool]\nmin = 1\nmax = 1");
    is_borne("a large file, read", Configured::start(docroot, &text), |site| {
        let address = site.address();
        Flood::of_clients(4, move || {
            let request = Request::get("/large.bin").to_bytes("site");
            if let Some(stream) = unread(address, &request) {
                drain(stream, DEADLINE / 2);
            }
        })
    });
}

#[test]
fn a_folder_that_changes_all_the_time_in_development() {
    let own = "listen = \"127.0.0.1:0\"\nenvironment = \"development\"\n";
    let tables = "[app.site.pool]\nmin = 1\nmax = 1\n[development]\nlive_reload = false";
    let site = serving_with(own, tables);
    is_borne("files, development", site, |site| {
        let folder = site.docroot().path().to_owned();
        Flood::of_clients(2, move || {
            for number in 0..200 {
                let path =
                    folder.join(format!("made-{:?}-{number}.php", std::thread::current().id()));
                let _ = std::fs::write(&path, "<?php");
                let _ = std::fs::remove_file(&path);
            }
        })
    });
}

/// Clients that are answered so fast that the log gets many lines.
fn many_lines(site: &Configured) -> Flood {
    let address = site.address();
    Flood::of_clients(2, move || {
        let requests = "GET /no-such-file.txt HTTP/1.1\r\nHost: site\r\n\r\n".repeat(50);
        let Some(stream) = unread(address, requests.as_bytes()) else { return };
        drain(stream, DEADLINE / 200);
    })
}

#[test]
fn an_access_log_without_a_reader() {
    let docroot = docroot();
    // What is no regular file has to be where nobody else can put another.
    let folder = docroot.beside().path().to_owned();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("it is ours");
    for (name, mode) in [("error.log", 0o666), ("entities", 0o777)] {
        let path = folder.join(name);
        let made =
            if mode == 0o777 { std::fs::create_dir(&path) } else { std::fs::write(&path, "") };
        made.and_then(|()| std::fs::set_permissions(&path, Permissions::from_mode(mode)))
            .expect(name);
    }
    let path = folder.join("access.fifo");
    let made = std::process::Command::new("mkfifo").args(["-m", "666"]).arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()));
    let reader = std::fs::File::options().read(true).write(true).open(&path).expect("it is there");
    let log = format!("[app.site.log.access]\npath = {path:?}\n");
    let text =
        text("listen = \"127.0.0.1:0\"\n", &format!("[app.site.pool]\nmin = 1\nmax = 1\n{log}"));
    is_borne("a log nobody reads", Configured::start(docroot, &text), many_lines);
    drop(reader);
}

#[test]
fn an_access_log_on_a_full_disk() {
    let log = "[app.site.log.access]\npath = \"/dev/full\"\n";
    let site = serving(&format!("[app.site.pool]\nmin = 1\nmax = 1\n{log}"));
    is_borne("a log, disk full", site, many_lines);
}
