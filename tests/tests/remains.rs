//! What a request leaves to those after it and to the processes beside it: memory, programs, zombies, signals.

#![forbid(unsafe_code)]

use outboard_e2e::{Backend, Configured, Docroot, Request, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// "fork" is a rewind where none is possible.
const MODES: [&str; 4] = ["classic", "reset", "rewind", "fork"];

/// One script in each mode, with so many workers of each.
fn serving(workers: u32, each: &str) -> Configured {
    let worker = |isolation: &str| {
        format!(
            "mode = \"worker\"\nworker.script = \"www/front.php\"\nworker.isolation = \"{isolation}\"\n"
        )
    };
    let app = |mode: &&str| {
        let (keys, env) = match *mode {
            "classic" => ("front_controller = \"/front.php\"\n".to_owned(), ""),
            "reset" => (worker(mode), "loop"),
            _ => (worker("rewind"), ""),
        };
        let forbid = if *mode == "fork" { "OUTBOARD_FORBID_REWIND = \"1\"\n" } else { "" };
        format!(
            "[app.{mode}]\nroot = \"www\"\nhosts = [\"{mode}.test\"]\n{keys}{each}\n\
             [app.{mode}.pool]\nmin = {workers}\nmax = {workers}\nloopback_slots = 0\n\
             [app.{mode}.php.env]\nMODE = \"{env}\"\nOUTBOARD_VERIFY_REWIND = \"1\"\n{forbid}"
        )
    };
    let apps: String = MODES.iter().map(app).collect();
    let text =
        format!("listen = \"127.0.0.1:0\"\nthreads = 1\n[log.access]\npath = \"off\"\n{apps}");
    Configured::start(Docroot::of("remains"), &text)
}

fn get(site: &Configured, mode: &str, query: &str) -> Value {
    let request = Request::get(&format!("/?{query}")).header("Host", &format!("{mode}.test"));
    let response = site.client().send(&request).expect(200);
    serde_json::from_str(&response.text()).unwrap_or_else(|_| panic!("{mode}: {}", response.text()))
}

/// Root opens everything, so then PHP runs as another user.
#[test]
fn php_opens_the_memory_of_its_worker_in_no_mode() {
    for sandbox in ["default", "off"] {
        let site = serving(2, &format!("sandbox = \"{sandbox}\""));
        for mode in MODES {
            for visit in 0..2 {
                let found = get(&site, mode, "w=memory");
                let ways = found.as_object().expect("ways");
                let open: Vec<_> =
                    ways.iter().filter(|(_, is_open)| **is_open != Value::Bool(false)).collect();
                assert!(
                    ways.len() > 10 && open.is_empty(),
                    "{mode}, visit {visit}, sandbox {sandbox}: {open:?}"
                );
            }
        }
    }
}

#[test]
fn php_signals_neither_its_zygote_nor_other_workers() {
    let site = serving(2, "");
    for mode in MODES {
        let found = get(&site, mode, "w=signals");
        assert!(found[0].as_u64() >= Some(2), "{mode}: {found}");
        assert_eq!(found[1], json!([]), "{mode}");
    }
}

const WAYS: [&str; 6] = ["background", "nohup", "session", "orphan", "proc_open", "fork"];

/// Has a request start a program that stays, and returns its process id.
fn leave(site: &Configured, mode: &str, how: &str) -> u64 {
    let file = site.docroot().beside().path().join(format!("{mode}-{how}"));
    let found = get(site, mode, &format!("w=leave&how={how}&file={}", file.display()));
    found.as_u64().expect("a process id")
}

/// The worker that serves the next request, and whether this process exists then.
fn next(site: &Configured, mode: &str, pid: u64) -> (u64, bool) {
    let found = get(site, mode, &format!("w=exists&pid={pid}"));
    (found[0].as_u64().expect("a process id"), found[1] == json!(true))
}

fn is_there(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn kill(pid: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it runs");
}

#[test]
fn a_program_that_a_request_leaves_ends_with_it() {
    let site = serving(1, "");
    for how in WAYS {
        let (worker, _) = next(&site, "rewind", 1);
        let pid = leave(&site, "rewind", how);
        assert_eq!(next(&site, "rewind", pid), (worker, false), "{how}");
        let pid = leave(&site, "fork", how);
        eventually("it has ended", || !is_there(pid));
    }
}

#[test]
fn a_program_of_a_request_that_is_killed_ends_with_it() {
    let site = serving(1, "limits.request_deadline = \"1s\"");
    for mode in ["rewind", "fork"] {
        let file = site.docroot().beside().path().join(mode);
        let query = format!("/?w=leave&how=session&hang=1&file={}", file.display());
        let request = Request::get(&query).header("Host", &format!("{mode}.test"));
        site.client().send(&request).expect(504);
        let pid = std::fs::read_to_string(&file).expect("it has started");
        let pid = pid.trim().parse().expect("a process id");
        eventually("it has ended", || !is_there(pid));
    }
}

/// Whether a process has this in its command line.
fn is_named(text: &str) -> bool {
    let names = std::fs::read_dir("/proc").expect("it is mounted").flatten();
    let commands = names.filter_map(|name| std::fs::read(name.path().join("cmdline")).ok());
    commands.into_iter().any(|command| String::from_utf8_lossy(&command).contains(text))
}

#[test]
fn a_chain_of_programs_does_not_outrun_the_end_of_its_request() {
    let site = serving(1, "");
    for mode in ["rewind", "fork"] {
        leave(&site, mode, "chain");
        let script = site.docroot().beside().path().join(format!("{mode}-chain.sh"));
        let script = script.display().to_string();
        // A process that starts a program has no name for a moment.
        eventually("it has ended", || !(0..50).any(|_| is_named(&script)));
        next(&site, mode, 1);
    }
}

#[test]
fn programs_go_on_where_that_is_configured_or_nothing_is_isolated() {
    let site = serving(1, "php.background_programs = true");
    for mode in MODES {
        let pid = leave(&site, mode, "session");
        assert!(next(&site, mode, pid).1, "{mode}");
        kill(pid);
    }
    let site = serving(1, "");
    for mode in ["classic", "reset"] {
        let pid = leave(&site, mode, "session");
        assert!(next(&site, mode, pid).1, "{mode}");
        kill(pid);
    }
}

#[test]
fn children_that_no_script_has_waited_for_are_collected() {
    let site = serving(1, "php.ini.\"ffi.enable\" = true");
    for mode in MODES {
        for how in ["fork", "native"] {
            for visit in 0..4 {
                let count = get(&site, mode, &format!("w=zombies&how={how}"));
                assert_eq!(count, json!(0), "{mode}, {how}, visit {visit}");
            }
        }
    }
    // What a script still waits for is its own to collect.
    for how in ["popen", "proc_open"] {
        let codes = [(); 2].map(|()| get(&site, "reset", &format!("w=opened&how={how}")));
        assert_eq!(codes, [json!(-2), json!(7)], "{how}");
    }
}

/// The mappings of a process that have this text, of those whose names have `name`.
fn mappings_with(pid: u64, name: &str, text: &[u8]) -> BTreeSet<String> {
    let memory = File::open(format!("/proc/{pid}/mem")).expect("php.dumpable");
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let mut found = BTreeSet::new();
    for line in maps.lines().filter(|line| line.contains(" rw") && line.contains(name)) {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let (start, end) = columns[0].split_once('-').expect("a range");
        let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).expect("an address"));
        let mut content = vec![0; usize::try_from(end - start).expect("64 bits")];
        let is_readable = memory.read_exact_at(&mut content, start).is_ok();
        if is_readable && memchr::memmem::find(&content, text).is_some() {
            found.insert(columns.get(5).unwrap_or(&"no name").to_string());
        }
    }
    found
}

#[test]
fn data_of_a_request_that_has_ended_is_in_no_buffer() {
    let backend = Backend::start();
    let site = serving(1, "php.dumpable = true\nsandbox = \"off\"");
    let back = |text: &str| text.chars().rev().collect::<String>();
    for (mode, number) in MODES.iter().filter(|mode| **mode != "fork").zip(1..) {
        for body_bytes in [100, 10_000, 200_000] {
            let secret = format!("secret-{number}-{body_bytes}-of-a-visitor");
            let body = format!("{secret}.").repeat(body_bytes / 30);
            let query = format!("/?w=secrets&url={}/echo&q={secret}", backend.url());
            let request = Request::post(&query, "text/plain", body)
                .header("Host", &format!("{mode}.test"))
                .header("Cookie", &format!("sid={secret}"))
                .header("X-Secret", &secret);
            let found = site.client().send(&request).expect(200).text();
            let found: Value = serde_json::from_str(&found).expect("JSON");
            let worker = found[0].as_u64().expect("a process id");
            next(&site, mode, 1);
            // What the engine has freed is overwritten by its next requests, as in php-fpm.
            let name = if *mode == "rewind" { "" } else { "outboard-ring" };
            for text in [secret.clone(), back(&secret)] {
                let places = mappings_with(worker, name, text.as_bytes());
                assert!(places.is_empty(), "{mode}, {body_bytes} bytes, {text}: {places:?}");
            }
        }
    }
}
