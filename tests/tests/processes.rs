//! Processes of an app: as many programs run as are configured, whatever ends them, and nothing of them survives the server.
//!
//! How soon a killed one runs again is printed: `cargo test -p outboard-e2e --test processes -- --nocapture killed`.

#![forbid(unsafe_code)]

#[path = "upgrade/installed.rs"]
#[allow(dead_code)]
mod installed;

use installed::{Installed, succeeded};
use outboard_e2e::{Configured, Docroot, Process, eventually, eventually_within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a broken server exceeds; a busy machine does not.
const SOON: Duration = Duration::from_secs(10);

/// With a child, and one that has left its parent and the session.
const FAMILY: &str = "sleep 600 & (setsid sleep 600 &) ; exec sleep 600";

/// What is in the environment of all programs of a server, and of everything that they start.
struct Mark(String);

impl Mark {
    fn new() -> Mark {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Mark(format!("MARK=m{}x{number}", std::process::id()))
    }

    fn table(&self) -> String {
        let (name, value) = self.0.split_once('=').expect("it has both");
        format!("[app.site.php.env]\n{name} = \"{value}\"\n")
    }

    /// The processes that have it, and are not PHP's.
    fn processes(&self) -> BTreeSet<u32> {
        let entries = fs::read_dir("/proc").expect("it is mounted").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| self.is_of(*pid)).collect()
    }

    fn is_of(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == self.0.as_bytes())
    }

    #[track_caller]
    fn is_gone(&self) {
        eventually_within(SOON, "nothing is left", || match self.processes() {
            left if left.is_empty() => Ok(()),
            left => Err(left.iter().map(|pid| line_of(*pid)).collect::<Vec<_>>()),
        });
    }
}

fn line_of(pid: u32) -> String {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} {}", line.replace('\0', " "))
}

fn shell(name: &str, script: &str, keys: &str) -> String {
    format!("[app.site.process.{name}]\ncommand = [\"sh\", \"-c\", '''{script}''']\n{keys}\n")
}

fn site(tables: &str) -> Configured {
    Configured::serving("reload", tables)
}

/// The instances, by their names: `queue/0`.
fn instances(site: &Configured) -> BTreeMap<String, Value> {
    let status = site.status();
    let all = status["processes"].as_array().expect("a list").iter();
    all.map(|one| (format!("{}/{}", one["name"].as_str().unwrap(), one["instance"]), one.clone()))
        .collect()
}

fn pid_of(instance: &Value) -> Option<u32> {
    let is_running = instance["state"] == "running";
    instance["pid"].as_u64().filter(|_| is_running).and_then(|pid| u32::try_from(pid).ok())
}

/// The pids of so many programs, once all of them run.
#[track_caller]
fn running(site: &Configured, count: usize) -> BTreeMap<String, u32> {
    eventually_within(SOON, "all programs run", || {
        let instances = instances(site);
        let pids = instances.iter().filter_map(|(name, one)| Some((name.clone(), pid_of(one)?)));
        let pids: BTreeMap<String, u32> = pids.collect();
        if (pids.len(), instances.len()) == (count, count) { Ok(pids) } else { Err(instances) }
    })
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn signal(pid: u32, signal: Signal) {
    // It may have ended.
    let _ = kill_process(Pid::from_raw(pid.cast_signed()).expect("a process"), signal);
}

#[test]
fn killed_at_random_a_hundred_times_all_run_again_soon() {
    const INSTANCES: usize = 4;
    let mark = Mark::new();
    let keys = format!("instances = {INSTANCES}\nstable_after = \"100ms\"");
    let site = site(&(shell("queue", FAMILY, &keys) + &mark.table()));
    running(&site, INSTANCES);
    let (mut random, mut longest) = (1_u32, Duration::ZERO);
    for round in 0..100 {
        // Each has two more processes.
        let before = eventually_within(SOON, "all have their families", || {
            let all = mark.processes();
            if all.len() == 3 * INSTANCES { Ok(all) } else { Err(all) }
        });
        let programs: Vec<u32> = running(&site, INSTANCES).into_values().collect();
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let program = programs[random as usize >> 16 & 3];
        let inner = parent(program).expect("a keeper");
        let victim = match round % 4 {
            0 | 1 => program,
            2 => inner,
            _ => parent(inner).expect("the outer one"),
        };
        // Long enough to be stable.
        eventually("it is stable", || {
            let instances = instances(&site);
            instances.values().all(|one| one["for_ms"].as_u64().unwrap() >= 100)
        });
        let killed = Instant::now();
        Process::of(victim).kill();
        eventually_within(SOON, "as many run as before", || {
            let now = mark.processes();
            let is_other = !now.contains(&program) && now.len() == before.len();
            if is_other { Ok(()) } else { Err(now) }
        });
        longest = longest.max(killed.elapsed());
    }
    println!("100 killed, all run again after {longest:?} at most");
    let starts: u64 = instances(&site).values().map(|one| one["starts"].as_u64().unwrap()).sum();
    assert_eq!(starts, INSTANCES as u64 + 100);
    assert!(!site.child().output().contains("it is started again in"), "a wait for a stable one");
    site.into_stopped();
    mark.is_gone();
}

#[test]
fn nothing_survives_the_server_that_is_stopped_or_killed() {
    for is_killed in [false, true] {
        let mark = Mark::new();
        let site = site(&(shell("queue", FAMILY, "instances = 3") + &mark.table()));
        running(&site, 3);
        eventually("all have their families", || mark.processes().len() == 9);
        drop(if is_killed { site.into_killed() } else { site.into_stopped() });
        mark.is_gone();
    }
}

#[test]
fn a_keeper_that_is_stopped_ends_with_the_server() {
    let mark = Mark::new();
    let site = site(&(shell("queue", FAMILY, "") + &mark.table()));
    let program = running(&site, 1)["queue/0"];
    let inner = parent(program).expect("a keeper");
    signal(inner, Signal::STOP);
    signal(program, Signal::STOP);
    drop(site.into_killed());
    mark.is_gone();
}

#[test]
fn a_reload_leaves_what_has_not_changed() {
    let mark = Mark::new();
    let text = |queue: &str, other: &str| {
        let all = shell("queue", FAMILY, queue) + &shell("other", FAMILY, other) + &mark.table();
        Configured::text(&all)
    };
    let site = Configured::start(Docroot::of("reload"), &text("instances = 2", ""));
    let first = running(&site, 3);
    let reload = || assert!(site.command("reload", &[]).status.success());
    site.rewrite(&format!(
        "{}[app.site.php.ini]\nprecision = 7\n",
        text("instances = 2\nmax_memory = \"1g\"", "")
    ));
    reload();
    assert_eq!(running(&site, 3), first);
    site.rewrite(
        &text("instances = 3", "").replace("exec sleep 600''']\n\n", "exec sleep 601''']\n\n"),
    );
    reload();
    let second = eventually("another program runs", || {
        let now = running(&site, 4);
        (now["other/0"] != first["other/0"]).then_some(now)
    });
    for name in ["queue/0", "queue/1"] {
        assert_eq!(second[name], first[name], "{name}");
    }
    site.rewrite(&text("instances = 1", "instances = 0"));
    reload();
    let third = running(&site, 1);
    assert_eq!(third["queue/0"], first["queue/0"]);
    eventually("the others have ended", || mark.processes().len() == 3);
}

#[test]
fn programs_are_restarted_on_request_and_end_gracefully() {
    let script = "trap 'sleep 0.2; echo ended well; exit 0' TERM; while :; do sleep 0.05; done";
    let tables = shell("queue", script, "instances = 2") + &shell("other", FAMILY, "");
    let site = site(&tables);
    let before = running(&site, 3);
    let output = site.command("process", &["restart", "site", "queue"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 instances end and begin again\n");
    let after = eventually("others run", || {
        let now = running(&site, 3);
        (["queue/0", "queue/1"].iter().all(|name| now[*name] != before[*name])).then_some(now)
    });
    assert_eq!(after["other/0"], before["other/0"]);
    site.logs(&["queue/0: ended well"]);
    site.logs(&["queue/1: exited with code 0 after ", " ms, as requested"]);
    let unknown = site.command("process", &["restart", "site", "none"]);
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("has no such process"),
        "{unknown:?}"
    );
}

#[test]
fn an_upgrade_runs_no_instance_twice() {
    let docroot = Docroot::of("reload");
    let log = docroot.writable("var").join("runs");
    let script = format!(
        "echo \"begin $OUTBOARD_INSTANCE\" >> {0}; \
         trap 'sleep 0.3; echo \"end $OUTBOARD_INSTANCE\" >> {0}; exit 0' TERM; \
         while :; do sleep 0.05; done",
        log.display()
    );
    let mark = Mark::new();
    let tables = shell("queue", &script, "instances = 3") + &mark.table();
    let server = Installed::with(docroot, installed::text(&tables));
    running(&server.site, 3);
    for _ in 0..3 {
        succeeded(&server.upgrade(), &server.site);
        running(&server.site, 3);
    }
    let runs = fs::read_to_string(&log).expect("they have written");
    for number in 0..3 {
        let of = |line: &&str| line.ends_with(&format!(" {number}"));
        let words: Vec<&str> =
            runs.lines().filter(of).map(|line| &line[..line.len() - 2]).collect();
        assert_eq!(words, ["begin", "end", "begin", "end", "begin", "end", "begin"], "{runs}");
    }
    // An old server that is killed leaves nothing to wait for.
    let before = running(&server.site, 3);
    let old = server.pid();
    succeeded(&server.upgrade(), &server.site);
    signal(u32::try_from(old).expect("a process"), Signal::KILL);
    eventually("the new server has its own", || {
        let now = running(&server.site, 3);
        now.iter().all(|(name, pid)| before[name] != *pid)
    });
    drop(server);
    mark.is_gone();
}

#[test]
fn a_program_has_what_the_workers_have_and_no_descriptor() {
    let script = "echo \"user $(id -u) in $(pwd) with $GREETING $OUTBOARD_INSTANCE\"; \
                  for fd in /proc/self/fd/*; do echo \"fd $(basename $fd) $(readlink $fd)\"; done; \
                  cat /etc/shadow; ls /root; exec sleep 600";
    let site = site(&(shell("show", script, "") + "[app.site.php.env]\nGREETING = \"hello\"\n"));
    let folder = site.docroot().beside().path().join("www").display().to_string();
    let line = site.logs(&["show/0: user ", &folder, " with hello 0"]);
    assert!(!rustix::process::geteuid().is_root() || !line.contains("user 0 "), "{line}");
    site.logs(&["show/0: cat: /etc/shadow: Permission denied"]);
    let output = site.child().output();
    let descriptors: Vec<&str> =
        output.lines().filter_map(|line| Some(line.split_once("show/0: fd ")?.1)).collect();
    // The last one is that of the listing itself.
    assert!(descriptors.iter().any(|fd| fd.starts_with("0 /dev/null")), "{descriptors:?}");
    let other =
        |fd: &&&str| !["0 ", "1 pipe:", "2 pipe:"].iter().any(|known| fd.starts_with(known));
    let others: Vec<_> = descriptors.iter().filter(other).collect();
    assert!(others.iter().all(|fd| !fd.contains("socket:") && !fd.contains("anon")), "{others:?}");
}

#[test]
fn what_cannot_be_started_is_refused_or_logged() {
    let site = site(&shell("fine", FAMILY, ""));
    let folder = site.docroot().beside();
    let check = |command: &str| {
        let text = Configured::text(&format!("[app.site.process.p]\ncommand = {command}\n"));
        let file = folder.file("other.toml", text);
        let output = std::process::Command::new(outboard_e2e::Server::binary())
            .args(["check", "--config"])
            .arg(file)
            .output()
            .expect("it runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(check("[\"sh\"]").0);
    let (is_valid, message) = check("[\"no-such-program\", \"x\"]");
    assert!(!is_valid && message.contains("other.toml:9:"), "{message}");
    assert!(message.contains("there is no program `no-such-program`"), "{message}");
    assert!(message.contains("hint"), "{message}");
    // What is known only when it is started.
    let program = folder.file("bin/program", "#!/no/such/interpreter\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let private = folder.path().join("private");
    fs::create_dir(&private).expect("a new one");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let tables = format!(
        "{}[app.site.process.gone]\ncommand = [\"{}\"]\n{}",
        shell("fine", FAMILY, ""),
        program.display(),
        shell("private", "exit 0", "directory = \"private\"")
    );
    let before = running(&site, 1);
    site.rewrite(&Configured::text(&tables));
    assert!(site.command("reload", &[]).status.success());
    site.logs(&[
        "gone/0: cannot be started: cannot start ",
        "No such file or directory",
        "again in 200 ms",
    ]);
    if rustix::process::geteuid().is_root() {
        site.logs(&[
            "private/0: cannot be started: cannot enter the directory ",
            "Permission denied",
        ]);
    }
    let instances = instances(&site);
    assert_eq!(pid_of(&instances["fine/0"]), Some(before["fine/0"]));
    assert!(instances["gone/0"]["last_end"].as_str().unwrap().contains("cannot start"));
}

#[test]
fn hostile_programs_are_bounded() {
    let mark = Mark::new();
    let stubborn =
        "trap '' TERM; (trap '' TERM; sleep 600) & echo deaf; while :; do sleep 0.1; done";
    let eater = "exec awk 'BEGIN { s = \"x\"; while (1) s = s s }'";
    let bomb = "while :; do setsid sleep 600 & done";
    let tables = [
        shell("exits", "exit 0", "max_backoff = \"400ms\""),
        shell("floods", "exec yes 0123456789", ""),
        shell("stubborn", stubborn, "stop_timeout = \"300ms\""),
        shell("eats", eater, "max_memory = \"64 MiB\"\nbackoff = \"10s\""),
        shell("forks", bomb, "max_children = 50\nbackoff = \"10s\""),
        shell("fine", FAMILY, ""),
        mark.table(),
        "[log.error]\nlines_per_second = 20\n".to_owned(),
    ];
    let site = site(&tables.concat());
    site.logs(&["exits/0: exited with code 0 after ", "it is started again in 400 ms"]);
    site.logs(&["floods/0: ", "lines (", "were dropped here"]);
    site.logs(&["eats/0: it uses ", "more than "]);
    site.logs(&["eats/0: was killed after "]);
    site.logs(&["forks/0: it has more than 50 children and is killed"]);
    site.logs(&["forks/0: was killed after "]);
    site.logs(&["stubborn/0: deaf"]);
    // What floods, eats and forks costs nothing else.
    for _ in 0..20 {
        site.client().get("/hello.php").expect(200);
    }
    let lines = |site: &Configured| site.child().output().matches("floods/0: 0123456789").count();
    println!("{} lines of `yes` logged", lines(&site));
    let before = running_of(&site, "stubborn/0");
    assert!(site.command("process", &["restart", "site", "stubborn"]).status.success());
    site.logs(&["stubborn/0: it did not end in time and is killed"]);
    eventually("it runs again", || running_of(&site, "stubborn/0") != before);
    site.into_stopped();
    mark.is_gone();
}

fn running_of(site: &Configured, name: &str) -> u32 {
    eventually("it runs", || pid_of(&instances(site)[name]))
}

#[test]
fn what_a_program_has_started_gets_the_signal_and_may_end_well() {
    // A shell ends at once, and the worker in it completes its job.
    let worker =
        "trap 'sleep 0.3; echo job done; exit 0' TERM; echo working; while :; do sleep 0.05; done";
    let script = format!("cat > w.sh <<'END'\n{worker}\nEND\nsh w.sh & wait");
    let site = site(&shell("queue", &script, "directory = \"www\""));
    site.docroot().writable(".");
    running(&site, 1);
    site.logs(&["queue/0: working"]);
    assert!(site.command("process", &["restart"]).status.success());
    site.logs(&["queue/0: job done"]);
}

#[test]
fn changes_of_watched_files_restart_a_program_in_development() {
    let tables = shell("render", FAMILY, "watch = [\"www/src\"]") + &shell("other", FAMILY, "");
    let docroot = Docroot::of("reload");
    docroot.put("src/a.js", "1");
    let text = format!("environment = \"development\"\n{}", Configured::text(&tables));
    let site = Configured::start(docroot, &text);
    let before = running(&site, 2);
    site.docroot().put("src/a.js", "2");
    let after = eventually("another program runs", || {
        let now = running(&site, 2);
        (now["render/0"] != before["render/0"]).then_some(now)
    });
    assert_eq!(after["other/0"], before["other/0"]);
}

#[test]
fn processes_are_in_the_status_and_in_the_metrics() {
    let eater = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 600; echo $x";
    let site = site(&(shell("queue", eater, "instances = 2") + &shell("crash", "exit 7", "")));
    let instances = eventually("memory and an end are known", || {
        let now = instances(&site);
        let is_known = now["queue/1"]["memory_bytes"].as_u64() > Some(20_000_000)
            && now["crash/0"]["last_end"]
                .as_str()
                .is_some_and(|end| end.starts_with("exited with code 7"))
            && now["crash/0"]["state"] == "waiting";
        if is_known { Ok(now) } else { Err(now) }
    });
    assert!(instances["crash/0"]["starts"].as_u64() >= Some(1));
    let page = site.command("status", &[]);
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    assert!(page.contains("site queue/0") && page.contains("exited with code 7"), "{page}");
    let metrics = std::process::Command::new("curl")
        .arg("-s")
        .arg("--unix-socket")
        .arg(site.admin_socket())
        .arg("http://admin/metrics")
        .output()
        .expect("curl is there");
    let metrics = String::from_utf8_lossy(&metrics.stdout).into_owned();
    let running = "outboard_process_running{app=\"site\",process=\"queue\",instance=\"1\"} 1";
    assert!(metrics.contains(running), "{metrics}");
}
