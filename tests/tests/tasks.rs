//! Tasks: what workers queue is done by task workers, whatever becomes of these.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Fifo, Process, Request, eventually_within, repeating};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Thousands of tasks take a while where other tests run as well.
const PATIENCE: Duration = Duration::from_secs(300);

/// A worker, and task workers as these lines of `[app.site.tasks]` have them.
fn serving(tasks: &str) -> Configured {
    let docroot = Docroot::of("tasks");
    docroot.writable("var");
    Configured::start(docroot, &text(tasks))
}

fn text(tasks: &str) -> String {
    Configured::text(&format!(
        "[pool]\nmin = 1\nmax = 1\nmin_idle = 0\n\
         [app.site.worker]\nscript = \"www/worker.php\"\nconcurrency = 50\n\
         [app.site.tasks]\n{tasks}\n"
    ))
    .replace("root = \"www\"\n", "root = \"www\"\nmode = \"worker\"\n")
}

#[track_caller]
fn json(site: &Configured, target: &str, status: u16) -> Value {
    let text = site.client().get(target).expect(status).text();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{target} is answered by {text}"))
}

/// The lines of a file, once there are so many.
#[track_caller]
fn lines(site: &Configured, name: &str, count: usize) -> Vec<String> {
    let mut client = site.client();
    eventually_within(PATIENCE, &format!("{count} lines in {name}"), || {
        let text = client.get(&format!("/lines?name={name}")).expect(200).text();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count { Ok(lines) } else { Err(lines.len()) }
    })
}

/// A task with this pipe for its data does not end before it is opened.
fn gate(site: &Configured) -> Fifo {
    Fifo::at(site.docroot().beside().path().join("gate"))
}

fn tasks_of(site: &Configured) -> Value {
    site.status()["tasks"][0].clone()
}

#[test]
fn a_result_is_returned_to_the_waiting_request() {
    let site = serving("workers = 2");
    assert_eq!(json(&site, "/await?name=shout&data=hello", 200)["result"], "HELLO");
    let line = &lines(&site, "shouted", 1)[0];
    assert!(line.starts_with("shout ") && line.ends_with(" 1"), "{line}");
    site.client().get("/large?data=3000000").expect(200).saying("6000000");
    assert_eq!(json(&site, "/where", 200)["task_worker"], false);
}

#[test]
fn dispatch_answers_before_the_task_has_begun() {
    let site = serving("workers = 1");
    let mut fifo = gate(&site);
    let target = format!("/dispatch?name=gate&data={}", fifo.path().display());
    json(&site, &target, 200);
    let id = json(&site, "/dispatch?name=shout&data=x", 200)["id"].clone();
    assert_eq!((&tasks_of(&site)["running"], &tasks_of(&site)["waiting"]), (&1.into(), &1.into()));
    fifo.open();
    let line = lines(&site, "shouted", 1).remove(0);
    assert_eq!(line, format!("shout {} 1", id.as_str().expect("an id")));
}

#[test]
fn a_failing_task_is_retried_and_fails_with_its_last_reason() {
    let site = serving("workers = 1\nmax_retries = 2\nbackoff = \"10ms\"");
    let refused = json(&site, "/await?name=fail", 500);
    assert_eq!(refused["reason"], "task");
    assert_eq!(refused["message"], "the task fail: DomainException: not at attempt 3");
    assert_eq!(lines(&site, "failed", 3), ["1", "2", "3"]);
    json(&site, "/await?name=exit", 500);
    assert_eq!(lines(&site, "exited", 3), ["1", "2", "3"]);
    json(&site, "/await?name=unknown", 500);
    site.logs(&["task fail ", "given up at attempt 3: DomainException: not at attempt 3"]);
    site.logs(&["task exit ", "given up at attempt 3: half"]);
    site.logs(&["task unknown ", "no handler is registered for the task unknown"]);
    let tasks = tasks_of(&site);
    assert_eq!((&tasks["retried"], &tasks["given_up"]), (&6.into(), &3.into()));
    assert_eq!(tasks["bytes"], 0);
}

#[test]
fn a_full_queue_refuses_at_once() {
    let site = serving("workers = 1\nqueue_length = 3");
    let mut fifo = gate(&site);
    json(&site, &format!("/dispatch?name=gate&data={}", fifo.path().display()), 200);
    site.client().get("/count?from=0&to=10").expect(200).saying("2");
    let refused = json(&site, "/dispatch?name=shout", 500);
    assert_eq!(refused["reason"], "busy");
    assert_eq!(refused["message"], "the task shout: the queue of tasks is full");
    fifo.open();
    lines(&site, "counted", 2);
}

#[test]
fn an_app_without_task_workers_says_so() {
    let site = serving("workers = 0");
    let refused = json(&site, "/dispatch?name=shout", 500);
    let message = refused["message"].as_str().expect("a sentence");
    assert!(message.ends_with("the app has no task workers: set workers in its [tasks]"));
}

#[test]
fn waiting_tasks_move_to_the_new_generation_at_a_reload() {
    let site = serving("workers = 1");
    let mut fifo = gate(&site);
    json(&site, &format!("/dispatch?name=gate&data={}", fifo.path().display()), 200);
    site.client().get("/count?from=0&to=5").expect(200).saying("5");
    let output = site.command("reload", &[]);
    assert!(output.status.success(), "{output:?}");
    let counted: HashSet<String> = lines(&site, "counted", 5).into_iter().collect();
    assert_eq!(counted.len(), 5);
    fifo.open();
}

#[test]
fn the_clock_queues_tasks_also_for_an_app_in_classic_mode() {
    let docroot = Docroot::of("tasks");
    docroot.writable("var");
    let tables = "[app.site.tasks]\nworkers = 1\nscript = \"www/cron.php\"\n\
                  cron = { tick = \"every 100ms\" }\n";
    let site = Configured::start(docroot, &Configured::text(tables));
    let mut client = site.client();
    // There may be more of them at each look.
    eventually_within(PATIENCE, "the clock has queued two tasks", || {
        client.get("/index.php?name=ticked").expect(200).text().starts_with("NULL\nNULL\n")
    });
}

const CLASSIC: &str = "[app.site.tasks]\nworkers = 1\nscript = \"www/cron.php\"\n";

/// Asks until the answer is this one.
#[track_caller]
fn comes_to_say(site: &Configured, target: &str, text: &str) {
    let mut client = site.client();
    eventually_within(PATIENCE, &format!("{target} is answered by {text:?}"), || {
        client.get(target).expect(200).text() == text
    });
}

#[test]
fn a_script_per_request_hands_tasks_over() {
    let docroot = Docroot::of("tasks");
    docroot.writable("var");
    let site = Configured::start(docroot, &Configured::text(CLASSIC));
    let id = json(&site, "/index.php?dispatch=a", 200)["id"].clone();
    assert_eq!(id.as_str().map(str::len), Some(16));
    // More than fits into the ring at once.
    site.client().get("/index.php?large=3000000").expect(200);
    json(&site, "/index.php?dispatch=b", 200);
    comes_to_say(&site, "/index.php?name=ticked", "'a'\n'b'\n");
    comes_to_say(&site, "/index.php?name=lengths", "3000000\n");
    site.client().get("/index.php?await=1").expect(200).saying("this needs worker mode");
}

#[test]
fn a_classic_script_learns_which_tasks_are_rejected() {
    let site = Configured::serving("tasks", "");
    let refused = json(&site, "/index.php?dispatch=a", 200);
    assert_eq!(refused["reason"], "busy");
    let message = refused["message"].as_str().expect("a sentence");
    assert!(message.ends_with("the app has no task workers: set workers in its [tasks]"));
}

/// Tasks that are written down in this folder.
fn kept_in(folder: &Path, tasks: &str) -> String {
    let folder = format!("[kv]\ndata_dir = {folder:?}\n[kv.namespace.tasks]\n");
    text(&format!("{tasks}\nkv_namespace = \"tasks\"\n{folder}"))
}

/// A gateway that dies does so with its processes, but not at once with all of them.
fn kill(site: Configured) -> Docroot {
    let processes: Vec<Process> = site.processes().into_iter().filter_map(Process::find).collect();
    let docroot = site.into_killed();
    processes.iter().for_each(Process::wait_until_gone);
    docroot
}

#[test]
fn journaled_tasks_survive_a_killed_gateway() {
    let docroot = Docroot::of("tasks");
    docroot.writable("var");
    let folder = docroot.beside().folder("entities");
    let site = Configured::start(docroot, &kept_in(&folder, "workers = 1"));
    let mut fifo = gate(&site);
    json(&site, &format!("/dispatch?name=gate&data={}", fifo.path().display()), 200);
    site.client().get("/count?from=0&to=20").expect(200).saying("20");
    json(&site, "/dispatch?name=shout&data=late&delay=0.01", 200);
    let docroot = kill(site);
    let site = Configured::start(docroot, &kept_in(&folder, "workers = 1"));
    site.logs(&["22 tasks of the last gateway were recovered"]);
    fifo.open();
    assert_eq!(lines(&site, "counted", 20), (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    lines(&site, "shouted", 1);
    // Nothing is left of what is over.
    until_done(&site, 22);
    let docroot = site.into_stopped();
    let site = Configured::start(docroot, &kept_in(&folder, "workers = 1"));
    json(&site, "/await?name=shout&data=x", 200);
    assert_eq!(tasks_of(&site)["done"], 1);
}

#[test]
fn waiting_tasks_run_after_a_restart() {
    let docroot = Docroot::of("tasks");
    docroot.writable("var");
    let folder = docroot.beside().folder("entities");
    let site = Configured::start(docroot, &kept_in(&folder, "workers = 1"));
    json(&site, "/dispatch?name=shout&data=late&delay=1000000", 200);
    let output = site.command("reload", &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(tasks_of(&site)["waiting"], 1, "a reload takes up nothing twice");
    let docroot = site.into_stopped();
    let site = Configured::start(docroot, &kept_in(&folder, "workers = 1"));
    site.logs(&["1 tasks of the last gateway were recovered"]);
    assert_eq!(tasks_of(&site)["waiting"], 1);
}

#[track_caller]
fn until_done(site: &Configured, count: u64) {
    eventually_within(PATIENCE, &format!("{count} tasks are done"), || {
        let tasks = tasks_of(site);
        if tasks["done"].as_u64() >= Some(count) { Ok(()) } else { Err(tasks) }
    });
}

/// The process of one of the task workers that have a task.
fn busy_worker(status: &Value, number: usize) -> Option<Process> {
    let pools = status["pools"].as_array().expect("a list");
    let tasks = pools.iter().find(|pool| pool["app"] == "site:tasks").expect("there is one");
    let workers = tasks["workers"].as_array().expect("a list").iter();
    let mut busy = workers.filter(|worker| worker["in_flight"].as_u64() > Some(0)).cycle();
    busy.nth(number).and_then(|worker| Process::find(worker["pid"].as_u64()? as u32))
}

/// Otherwise most of the time goes into starting anew.
const DONE_BETWEEN_KILLS: u64 = 100;

/// Queues tasks up to this number, however often the queue is full.
fn queue_numbers(site: &Configured, count: usize, is_over: &dyn Fn() -> bool) {
    let (mut client, mut queued) = (site.client(), 0);
    while queued < count && !is_over() {
        let target = format!("/count?from={queued}&to={}", count.min(queued + 500));
        let taken = client.send(&Request::get(&target)).expect(200).text();
        queued += taken.parse::<usize>().expect("how many it took");
    }
}

/// Kills a busy task worker from time to time until all are done; how many, and the most bytes of tasks.
fn kill_until_done(site: &Configured, count: usize) -> (usize, u64) {
    let (mut killed, mut most_bytes, mut next_kill) = (0, 0, DONE_BETWEEN_KILLS);
    let begun = Instant::now();
    let mut seed = 7_usize;
    loop {
        let status = site.status();
        let tasks = &status["tasks"][0];
        most_bytes = most_bytes.max(tasks["bytes"].as_u64().expect("a number"));
        let done = tasks["done"].as_u64().expect("a number");
        if done == count as u64 {
            return (killed, most_bytes);
        }
        // A linear congruential generator (Knuth's MMIX).
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if done >= next_kill
            && let Some(worker) = busy_worker(&status, seed >> 33 & 1)
        {
            worker.kill();
            killed += 1;
            next_kill = done + DONE_BETWEEN_KILLS;
        }
        assert!(begun.elapsed() < PATIENCE, "{tasks}");
    }
}

/// Kills task workers while they work through so many tasks; each must have been done.
fn each_is_done_though_workers_are_killed(count: usize) {
    let site = serving("workers = 2\nconcurrency = 10\nqueue_length = 2000\nbackoff = \"10ms\"");
    // Workers may do tasks faster than one client queues them, so it does not wait for the kills.
    let queue = |is_over: &dyn Fn() -> bool| queue_numbers(&site, count, is_over);
    let (killed, most_bytes) = repeating(1, queue, || kill_until_done(&site, count));
    let all = lines(&site, "counted", count);
    let counted: HashSet<&str> = all.iter().map(String::as_str).collect();
    let missing: Vec<_> = (0..count).filter(|n| !counted.contains(&*n.to_string())).collect();
    assert_eq!(missing, Vec::<usize>::new(), "{killed} killed");
    let tasks = tasks_of(&site);
    assert!(tasks["lost"].as_u64() > Some(0), "{tasks}");
    assert_eq!((&tasks["given_up"], &tasks["bytes"]), (&0.into(), &0.into()));
    // 2,000 tasks of about 300 bytes.
    assert!(most_bytes < 1 << 20, "{most_bytes} bytes");
    let (twice, memory) = (all.len() - count, most_bytes >> 10);
    println!("{count} tasks, {killed} workers killed, {twice} done twice, {memory} KiB: {tasks}");
}

#[test]
fn each_of_3000_tasks_is_done_though_workers_are_killed() {
    each_is_done_though_workers_are_killed(3_000);
}

/// `cargo test --release -p outboard-e2e --test tasks -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes: 100,000 tasks"]
fn each_of_100000_tasks_is_done_though_workers_are_killed() {
    each_is_done_though_workers_are_killed(100_000);
}
