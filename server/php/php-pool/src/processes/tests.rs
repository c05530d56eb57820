//! Tests of the set of instances, whose hosts do not exist: they cannot be started, and wait.

use super::*;
use crate::pool::PoolSettings;
use outboard_config::Config;
use outboard_log::{Level, Opener, Sink, Target};
use outboard_reactor::{run, yield_now};
use std::cell::RefCell;
use std::path::Path;

/// The instances of an app with these keys of its process `queue`.
fn wanted(keys: &str) -> Vec<Wanted> {
    let text = format!(
        "[app.a]\nroot = \"/tmp\"\n[app.a.process.queue]\ncommand = [\"/bin/sh\"]\nbackoff = \"1m\"\n\
         max_backoff = \"1m\"\n{keys}\n"
    );
    let config = Config::parse(&text, Path::new("/outboard.toml")).unwrap();
    let app = &config.apps[0];
    let pool = PoolSettings::of(app, Path::new("/no/such/host"), None).unwrap();
    let process = &app.processes["queue"];
    let sink = Rc::new(Sink::open(Target::Off, Opener::default()).unwrap());
    let one = |number| Wanted {
        app: "a".to_owned(),
        name: "queue".to_owned(),
        number,
        settings: ProcessSettings::of(&pool, "queue", number, process),
        log: Rc::new(ErrorLog::new(sink.clone(), Level::Error)),
    };
    (0..process.instances).map(one).collect()
}

/// The states, once these are they.
async fn reach(processes: &Processes, states: &[&str]) {
    loop {
        let now = processes.status();
        if now.iter().map(|one| one.state.as_str()).eq(states.iter().copied()) {
            return;
        }
        yield_now().await;
    }
}

#[test]
fn as_many_instances_exist_as_are_configured() {
    run(async {
        let processes = Rc::<Processes>::default();
        processes.apply(wanted("instances = 3"));
        reach(&processes, &["waiting"; 3]).await;
        let status = processes.status();
        assert_eq!((status[2].instance, status[2].starts, status[2].pid), (2, 0, None));
        assert!(status[0].last_end.as_ref().unwrap().starts_with("cannot be started: "));
        processes.apply(wanted("instances = 1"));
        reach(&processes, &["waiting"]).await;
        processes.apply(Vec::new());
        reach(&processes, &[]).await;
        assert!(processes.is_empty());
    })
    .unwrap();
}

#[test]
fn a_restart_ends_the_wait_of_those_that_are_meant() {
    run(async {
        let processes = Rc::<Processes>::default();
        processes.apply(wanted("instances = 2"));
        reach(&processes, &["waiting"; 2]).await;
        for (app, name, count) in [
            (None, None, 2),
            (Some("a"), None, 2),
            (Some("a"), Some("queue"), 2),
            (Some("b"), None, 0),
            (Some("a"), Some("other"), 0),
        ] {
            assert_eq!(processes.restart(app, name), count);
        }
        yield_now().await;
        reach(&processes, &["waiting"; 2]).await;
        processes.stop();
        reach(&processes, &[]).await;
    })
    .unwrap();
}

#[test]
fn an_instance_of_the_old_server_is_held_until_it_has_ended() {
    run(async {
        let processes = Rc::<Processes>::default();
        processes.hold(&["a/queue/0".to_owned(), "a/queue/1".to_owned()]);
        processes.apply(wanted("instances = 3"));
        reach(&processes, &["held", "held", "waiting"]).await;
        processes.release(Some("a/queue/1"));
        reach(&processes, &["held", "waiting", "waiting"]).await;
        processes.release(Some("a/other/0"));
        assert_eq!(processes.status()[0].state, "held");
        processes.release(None);
        reach(&processes, &["waiting"; 3]).await;
        processes.stop();
        reach(&processes, &[]).await;
    })
    .unwrap();
}

#[derive(Debug, Default)]
struct Ended(RefCell<Vec<String>>);

impl ProcessSuccessor for Ended {
    fn begin(&self, key: &str) {
        self.0.borrow_mut().push(key.to_owned());
    }
}

#[test]
fn the_old_server_reports_each_that_has_ended() {
    run(async {
        let processes = Rc::<Processes>::default();
        processes.apply(wanted("instances = 2\nstop_timeout = \"2s\""));
        assert_eq!(processes.keys(), ["a/queue/0", "a/queue/1"]);
        assert_eq!(processes.stop_ms(), 2_000 + run::END_MS);
        let ended = Rc::<Ended>::default();
        processes.leave_to(ended.clone());
        reach(&processes, &[]).await;
        assert_eq!(*ended.0.borrow(), ["a/queue/0", "a/queue/1"]);
    })
    .unwrap();
}
