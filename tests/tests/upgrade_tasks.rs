//! An upgrade of a server with tasks: each is done once, by the old server or the new one.

#![forbid(unsafe_code)]

#[path = "upgrade/installed.rs"]
#[allow(dead_code)]
mod installed;

use installed::{Installed, succeeded, text};
use outboard_e2e::{Docroot, Fifo, eventually, eventually_within, repeating};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);
const JOURNAL: &str = "kv_namespace = \"tasks\"\n[kv]\ndata_dir = \"kv\"\n\
                       [kv.namespace.tasks]\ndurability = \"always\"\n";

fn start(tasks: &str) -> Installed {
    let docroot = Docroot::of("tasks");
    docroot.writable("var");
    let text = text(&format!(
        "[pool]\nmin = 1\nmax = 1\nmin_idle = 0\n\
         [app.site.worker]\nscript = \"www/worker.php\"\nconcurrency = 50\n\
         [app.site.tasks]\n{tasks}\n"
    ));
    Installed::with(
        docroot,
        text.replace("root = \"www\"\n", "root = \"www\"\nmode = \"worker\"\n"),
    )
}

fn lines(server: &Installed, name: &str) -> Vec<String> {
    let text = server.site.client().get(&format!("/lines?name={name}")).expect(200).text();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn each_task_is_done_once(tasks: &str) {
    let server = start(&format!("workers = 2\nqueue_length = 100000\n{tasks}"));
    let queued = AtomicUsize::new(0);
    let client = |is_over: &dyn Fn() -> bool| {
        while !is_over() {
            let from = queued.fetch_add(10, Ordering::Relaxed);
            let target = format!("/count?from={from}&to={}", from + 10);
            server.site.client().get(&target).expect(200).saying("10");
        }
    };
    repeating(2, client, || {
        for _ in 0..3 {
            succeeded(&server.upgrade(), &server.site);
        }
    });
    let queued = queued.into_inner();
    let counted = eventually_within(PATIENCE, "all tasks are done", || {
        let lines = lines(&server, "counted");
        if lines.len() >= queued { Ok(lines) } else { Err(lines.len()) }
    });
    let distinct: HashSet<&String> = counted.iter().collect();
    println!("{queued} tasks, {} done, {} of them once", counted.len(), distinct.len());
    assert_eq!((counted.len(), distinct.len()), (queued, queued));
}

#[test]
fn tasks_in_memory_are_done_once() {
    each_task_is_done_once("");
}

#[test]
fn journaled_tasks_are_done_once() {
    each_task_is_done_once(JOURNAL);
}

#[test]
fn a_running_task_is_completed_by_the_old_server() {
    let server = start(&format!("workers = 1\n{JOURNAL}"));
    let mut fifo = Fifo::at(server.site.docroot().beside().path().join("gate"));
    let target = format!("/dispatch?name=gate&data={}", fifo.path().display());
    server.site.client().get(&target).expect(200);
    eventually("the task runs", || server.site.status()["tasks"][0]["running"] == 1);
    server.site.client().get("/dispatch?name=shout&data=x").expect(200);
    succeeded(&server.upgrade(), &server.site);
    eventually_within(PATIENCE, "the waiting task is done by the new server", || {
        lines(&server, "shouted").len() == 1
    });
    fifo.open();
    server.site.logs(&["info  stopped"]);
    let tasks = server.site.status()["tasks"][0].clone();
    assert_eq!((&tasks["running"], &tasks["waiting"]), (&0.into(), &0.into()), "{tasks}");
}

#[test]
fn the_clock_queues_each_task_once() {
    let docroot = Docroot::of("tasks");
    docroot.writable("var");
    let tasks = "[app.site.tasks]\nworkers = 1\nscript = \"www/cron.php\"\n\
                 cron = { tick = \"every 1s\" }\n";
    let server = Installed::with(docroot, text(tasks));
    let ticks = || {
        let text = server.site.client().get("/index.php?name=ticked").expect(200).text();
        text.lines().count()
    };
    eventually("the clock ticks", || ticks() > 0);
    let (first, began) = (ticks(), std::time::Instant::now());
    for _ in 0..3 {
        succeeded(&server.upgrade(), &server.site);
    }
    let until = first + began.elapsed().as_secs() as usize + 3;
    eventually_within(PATIENCE, "the clock ticks on", || ticks() >= until);
    let (last, seconds) = (ticks(), began.elapsed().as_secs_f64());
    let passed = (last - first) as f64;
    println!("{passed} ticks in {seconds:.1} s");
    assert!((passed - seconds).abs() < 2.5, "{passed} ticks in {seconds} s");
}
