//! Logs that go to syslog, and files that the server rotates itself.

#![forbid(unsafe_code)]

use outboard_e2e::{Collector, Configured, Docroot, Request, Scratch, eventually};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

fn receiver(scratch: &Scratch) -> UnixDatagram {
    let path = scratch.path().join("log");
    let socket = UnixDatagram::bind(&path).expect("the directory is empty");
    // The server may run as another user, as /dev/log allows.
    std::fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("the file is ours");
    // Only a broken server needs it.
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a valid time");
    socket
}

/// The next message that contains the text.
#[track_caller]
fn message(socket: &UnixDatagram, text: &str) -> String {
    let mut buffer = [0; 16 << 10];
    loop {
        let length = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("{text}: {error}"));
        let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if message.contains(text) {
            return message;
        }
    }
}

#[test]
fn access_and_error_log_are_messages_of_syslog() {
    let scratch = Scratch::new("syslog");
    let socket = receiver(&scratch);
    let path = scratch.path().join("log");
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"syslog:unix:{path}\"\n\
         [log.error]\npath = \"syslog:unix:{path}\"\n[app.site]\nroot = \"www\"\n",
        path = path.display()
    );
    let site = Configured::start(Docroot::of("tracing"), &text);
    let started = message(&socket, "started");
    assert!(started.starts_with("<30>1 2") && started.contains(" outboard "), "{started}");
    assert!(started.ends_with(')') && started.contains(" - - app=site PHP "), "{started}");
    site.docroot().put("broken.php", "<?php throw new Exception('on purpose');");
    site.client().get("/broken.php?%0a%3C0%3Eforged");
    let failed = message(&socket, "on purpose");
    assert!(failed.starts_with("<27>1 "), "{failed}");
    let access = message(&socket, "GET /broken.php");
    assert!(access.starts_with("<30>1 ") && access.contains("forged HTTP/1.1\""), "{access}");
}

#[test]
fn a_line_has_the_fields_of_a_format() {
    let format = r#"{client} {header:X-Shop} "{method} {target}" {status} {app} {header:X-None}"#;
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\nformat = '{format}'\npath = \"access.log\"\n\
         [app.site]\nroot = \"www\"\n"
    );
    let site = Configured::start(Docroot::of("tracing"), &text);
    let request = Request::get("/index.php?a=%22").header("X-Shop", "a\" 500 forged");
    site.client().send(&request).expect(200);
    let log = site.docroot().beside().path().join("access.log");
    let line = eventually("the line is written", || {
        std::fs::read_to_string(&log).ok().filter(|text| text.ends_with('\n'))
    });
    assert_eq!(line, "127.0.0.1 a\\\" 500 forged \"GET /index.php?a=%22\" 200 site -\n");
}

#[test]
fn a_json_line_has_the_ids_of_the_trace() {
    let collector = Collector::start();
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\nformat = \"json\"\npath = \"access.log\"\n\
         [tracing]\nendpoint = \"{}\"\ndelay = \"10ms\"\nsample = \"100%\"\n\
         [app.site]\nroot = \"www\"\n",
        collector.url()
    );
    let site = Configured::start(Docroot::of("tracing"), &text);
    site.client().send(&Request::get("/index.php")).expect(200);
    let spans = collector.receives(|spans| spans.iter().any(|span| span.name == "GET"));
    let span = spans.iter().find(|span| span.name == "GET").expect("it was awaited");
    let log = site.docroot().beside().path().join("access.log");
    let line = eventually("the line is written", || {
        std::fs::read_to_string(&log).ok().filter(|text| text.ends_with('\n'))
    });
    let line: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
    assert_eq!(
        (&line["trace_id"], &line["span_id"]),
        (&span.trace_id.clone().into(), &span.span_id.clone().into())
    );
}

#[test]
fn a_log_file_is_rotated_by_size() {
    let text = "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"access.log\"\n\
                [log.rotate]\nsize = 1000\nkeep = 3\n[app.site]\nroot = \"www\"\n";
    let site = Configured::start(Docroot::of("tracing"), text);
    let directory = site.docroot().beside().path().to_owned();
    let count = || {
        let names = ["access.log", "access.log.1", "access.log.2", "access.log.3"];
        let lines = names.map(|name| std::fs::read_to_string(directory.join(name)));
        lines.map(|found| found.map_or(0, |text| text.lines().count()))
    };
    let mut client = site.client();
    let mut sent = 0;
    eventually("two files are full", || {
        client.get("/index.php").expect(200);
        sent += 1;
        (count()[2] > 0).then_some(())
    });
    eventually("no line is lost", || (count().iter().sum::<usize>() == sent).then_some(()));
}
