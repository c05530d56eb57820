//! Requests that fail in a worker that is rewound: each is answered as in classic mode, and hurts no other.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Connection, Docroot, Held, Process, Request, connect};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

const CLASSIC: &str = "classic.test";
const REWIND: &str = "rewind.test";

/// One script, served classically and by workers that are rewound.
fn both_modes(tables: &str) -> Configured {
    displaying("1", tables)
}

/// The same with this value of `display_errors`.
fn displaying(display_errors: &str, tables: &str) -> Configured {
    let app = |name: &str, rest: &str| {
        format!(
            "[app.{name}]\nroot = \"www\"\n{rest}[app.{name}.pool]\nmin = 4\nmax = 4\nloopback_slots = 0\n"
        )
    };
    let text = format!(
        "listen = \"127.0.0.1:0\"\nthreads = 1\n[log.access]\npath = \"off\"\n{tables}\n{}{}\
         [php.ini]\n\"ffi.enable\" = \"1\"\nhtml_errors = \"0\"\nmemory_limit = \"64M\"\nexpose_php = \"0\"\n\
         display_errors = \"{display_errors}\"\n",
        app("classic", &format!("hosts = [\"{CLASSIC}\"]\nfront_controller = \"/front.php\"\n")),
        app(
            "rewind",
            "mode = \"worker\"\nworker.script = \"www/front.php\"\nworker.isolation = \"rewind\"\n\
             [app.rewind.php.env]\nOUTBOARD_VERIFY_REWIND = \"1\"\n"
        ),
    );
    Configured::start(Docroot::of("rewind_failures"), &text)
}

/// Status, the script's own header and body; or that there was no whole response.
fn answer(
    site: &Configured,
    host: &str,
    path: &str,
) -> Result<(u16, Option<String>, String), String> {
    let request = Request::get(&format!("/{}", path.replace(' ', "%20"))).header("Host", host);
    let mut connection = Connection::open(site.address());
    connection.send(&request.to_bytes(host)).map_err(|error| error.to_string())?;
    let response = connection.response().map_err(|_| "no whole response".to_owned())?;
    Ok((
        response.status,
        response.header("x-a").map(str::to_owned),
        without_sizes(&response.text()),
    ))
}

/// Without how much memory was asked for when there was none left: that depends on what was in use before.
fn without_sizes(text: &str) -> String {
    let words = text.split_inclusive(' ');
    let mut after_allocate = false;
    let mut kept = String::new();
    for word in words {
        kept.push_str(if after_allocate { "many " } else { word });
        after_allocate = word == "allocate ";
    }
    kept
}

fn text(site: &Configured, host: &str, path: &str) -> String {
    let (status, _, text) = answer(site, host, path).expect("an answer");
    assert_eq!(status, 200, "{path}: {text}");
    text
}

#[test]
fn each_failure_is_answered_as_in_classic_mode() {
    for display_errors in ["1", "0"] {
        let site = displaying(display_errors, "");
        let names = text(&site, CLASSIC, "names");
        assert!(names.lines().count() > 50, "{names}");
        let different: Vec<String> =
            names.lines().filter_map(|name| difference(&site, name)).collect();
        assert!(different.is_empty(), "{}\n{}", different.join("\n"), site.child().output());
    }
}

/// How the answers of the two modes differ; afterwards a worker has no trace of it.
fn difference(site: &Configured, name: &str) -> Option<String> {
    let [classic, rewind] = [CLASSIC, REWIND].map(|host| answer(site, host, name));
    for _ in 0..2 {
        assert_eq!(text(site, REWIND, "fine"), "fine 1\n", "after {name:?}");
    }
    let different = classic != rewind;
    different.then(|| format!("{name}: {classic:?} in classic mode, but {rewind:?}"))
}

#[test]
fn what_was_sent_before_a_crash_is_cut_off_in_both_modes() {
    let site = both_modes("");
    for _ in 0..3 {
        for host in [CLASSIC, REWIND] {
            let mut stream = connect(site.address());
            let request = Request::get("/partly").header("Host", host);
            stream.write_all(&request.to_bytes(host)).unwrap();
            let mut received = vec![0];
            stream.read_exact(&mut received).unwrap();
            site.docroot().put("received", "");
            stream.read_to_end(&mut received).unwrap();
            std::fs::remove_file(site.root().join("received")).unwrap();
            let text = String::from_utf8(received).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 ") && text.contains("sent\n"), "{text}");
            assert!(!text.ends_with("\r\n0\r\n\r\n"), "{host}: it is whole");
        }
        assert_eq!(text(&site, REWIND, "fine"), "fine 1\n");
    }
}

#[test]
fn a_deadline_ends_the_request_alone() {
    let site = both_modes("[limits]\nrequest_deadline = \"500ms\"");
    let before: HashSet<String> = (0..8).map(|_| text(&site, REWIND, "who")).collect();
    let [classic, rewind] = [CLASSIC, REWIND].map(|host| answer(&site, host, "forever"));
    assert_eq!(classic, rewind);
    assert_eq!(rewind.expect("a refusal").0, 504);
    assert_eq!(text(&site, REWIND, "fine"), "fine 1\n");
    assert!(!before.is_empty());
}

#[test]
fn no_failure_hurts_another_request() {
    let site = both_modes("");
    let names = text(&site, CLASSIC, "names");
    let over = AtomicBool::new(false);
    let held: Vec<Held> = (0..2).map(|_| site.hold()).collect();
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0;
                    while !over.load(Ordering::Relaxed) {
                        assert_eq!(text(&site, REWIND, "fine"), "fine 1\n");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for name in names.lines().filter(|name| !name.starts_with("run too long")) {
            let _ = answer(&site, REWIND, name);
        }
        over.store(true, Ordering::Relaxed);
        for other in others {
            let count: usize = other.join().expect("each of its requests is answered");
            assert!(count > 50, "{count} requests beside the failures");
        }
    });
    for held in held {
        held.finishes();
    }
}

#[test]
fn a_worker_that_is_killed_while_idle_costs_nothing() {
    let site = both_modes("");
    for _ in 0..20 {
        let worker: u32 = text(&site, REWIND, "who").parse().expect("an id");
        if let Some(process) = Process::find(worker) {
            process.kill();
        }
        assert_eq!(text(&site, REWIND, "fine"), "fine 1\n");
    }
}
