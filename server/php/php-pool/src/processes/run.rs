//! The runs of an instance: its keepers, one after the other.
//!
//! Started by [`super::Processes`], as a task for each instance. Invariants: a run begins only when nothing of the one
//! before is left; a program that was requested to end is killed after `stop_timeout`; one that exceeds its limits ends.

use super::instance::{Instance, State};
use super::output::ProcessOutput;
use super::settings::ProcessSettings;
use crate::output_lines::relay;
use crate::pool::exits::describe_exit;
use crate::pool::processes::SPAWNER;
use outboard_log::Level;
use outboard_reactor::{
    Interest, Source, now_ms, on_disk_thread, sleep, spawn, unbound, with_deadline,
};
use outboard_supervisor::keeper::{Family, Keeper, KeeperEvent};
use outboard_supervisor::plan::restart::Restarts;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::Poll;

/// How often the memory of a program is read.
const MEASURE_MS: u64 = 500;
/// A keeper kills for at most twice two seconds.
pub(super) const END_MS: u64 = 6_000;
const END_PAUSE_MS: u64 = 5;

/// A keeper with its program.
struct Run {
    instance: Rc<Instance>,
    keeper: Keeper,
    control: Source,
    /// When the program began; `None`: it did not.
    began_ms: Option<u64>,
    /// It exceeds its memory.
    is_over: bool,
    /// It exceeds it by far, or has too many processes: its run counts as a short one.
    is_harmful: bool,
    /// When it is killed.
    kill_at_ms: Option<u64>,
    measure_at_ms: u64,
    /// How the program has ended.
    end: Option<String>,
}

/// Runs the program until it is not wanted any more.
pub(super) async fn follow(instance: Rc<Instance>) {
    let mut restarts = Restarts::default();
    loop {
        while instance.is_wanted() && instance.is_held() {
            instance.enter(State::Held);
            instance.changed.wait().await;
        }
        if !instance.is_wanted() {
            return;
        }
        let settings = instance.begin();
        let (end, ran_ms) = run_once(&instance, &settings).await;
        debug_assert!(instance.now.borrow().pid.is_none(), "a program is left behind");
        instance.now.borrow_mut().last_end = Some(end.clone());
        if instance.is_to_end() {
            instance.log(Level::Info, &format!("{end}, as requested"));
            restarts = Restarts::default();
            continue;
        }
        let wait_ms = restarts.ended(instance.settings().restart_times(), ran_ms);
        let next = match wait_ms {
            0 => "it is started again".to_owned(),
            _ => format!("it is started again in {wait_ms} ms"),
        };
        instance.log(Level::Warn, &format!("{end}; {next}"));
        let until_ms = now_ms() + wait_ms;
        while now_ms() < until_ms && !instance.is_to_end() {
            instance.enter(State::Waiting);
            // Both ends of the wait are handled alike.
            let _ = with_deadline(until_ms, instance.changed.wait()).await;
        }
    }
}

/// How the program has ended, and how long a run counts.
async fn run_once(instance: &Rc<Instance>, settings: &Rc<ProcessSettings>) -> (String, u64) {
    let failed = |why: String| (format!("cannot be started: {why}"), 0);
    let (keeper, output) = match start(settings).await {
        Ok(started) => started,
        Err(why) => return failed(why),
    };
    spawn(relay(ProcessOutput(instance.clone(), instance.allowance()), output));
    let control = keeper.control_fd().try_clone_to_owned();
    let control = match control.and_then(|fd| Source::new(fd, Interest::Read)) {
        Ok(control) => control,
        Err(error) => return failed(error.to_string()),
    };
    let run = Run {
        instance: instance.clone(),
        keeper,
        control,
        began_ms: None,
        is_over: false,
        is_harmful: false,
        kill_at_ms: None,
        measure_at_ms: now_ms() + MEASURE_MS,
        end: None,
    };
    run.until_end().await
}

/// Without the spawner by this thread, with which the keeper ends.
async fn start(settings: &ProcessSettings) -> Result<(Keeper, OwnedFd), String> {
    let (program, user) = (settings.host_binary.clone(), settings.as_user.clone());
    let (host, command) = (settings.host.clone(), settings.command.clone());
    let start = move || Keeper::spawn(user.as_ref(), &program, host, command);
    let started = match settings.as_user {
        None => unbound(start),
        Some(_) => SPAWNER.run(0, start).await,
    };
    started.map_err(|error| error.to_string())
}

impl Run {
    async fn until_end(mut self) -> (String, u64) {
        while !self.read_events() {
            self.stop_if_requested();
            let now_ms = now_ms();
            if self.kill_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
                self.kill("it did not end in time and is killed");
            }
            if self.measure_at_ms <= now_ms {
                self.measure().await;
                continue;
            }
            let until_ms =
                self.kill_at_ms.map_or(self.measure_at_ms, |at_ms| at_ms.min(self.measure_at_ms));
            let woken = poll_fn(|_| {
                let changed = self.instance.changed.poll();
                if self.control.poll_readable().is_ready() { Poll::Ready(()) } else { changed }
            });
            let _ = with_deadline(until_ms, woken).await;
        }
        let ran_ms = self.began_ms.map(|began_ms| now_ms() - began_ms);
        self.reap_keeper().await;
        let mut now = self.instance.now.borrow_mut();
        (now.pid, now.family) = (None, Family::default());
        let end = self.end.unwrap_or_else(|| "its keeper has ended".to_owned());
        let end = ran_ms.map_or(end.clone(), |ran_ms| format!("{end} after {ran_ms} ms"));
        (end, ran_ms.filter(|_| !self.is_harmful).unwrap_or(0))
    }

    /// Whether the keeper ends.
    fn read_events(&mut self) -> bool {
        while let Some(event) = self.keeper.receive() {
            match event {
                KeeperEvent::Started { pid } => self.began(pid),
                KeeperEvent::Failed { message } => {
                    self.end = Some(format!("cannot be started: {message}"));
                }
                KeeperEvent::Ended { code, signal } => {
                    self.end.get_or_insert_with(|| describe_exit(code, signal));
                }
                KeeperEvent::Closed => return true,
            }
        }
        self.control.clear_readable();
        false
    }

    fn began(&mut self, pid: i32) {
        self.began_ms = Some(now_ms());
        let mut now = self.instance.now.borrow_mut();
        now.pid = Some(pid);
        now.starts += 1;
        drop(now);
        self.instance.enter(State::Running);
        self.instance.log(Level::Info, &format!("runs as process {pid}"));
    }

    /// Sends the signal once.
    fn stop_if_requested(&mut self) {
        let is_to_end = self.instance.is_to_end() || self.is_over;
        if !is_to_end || self.kill_at_ms.is_some() {
            return;
        }
        self.instance.enter(State::Stopping);
        let config = &self.instance.settings().config;
        self.kill_at_ms = Some(now_ms() + config.stop_timeout_ms);
        // A program that is being started gets it then. It fails if the keeper has ended, which the next event reports.
        let _ = self.keeper.signal(config.stop_signal.number());
    }

    fn kill(&mut self, why: &str) {
        if self.end.is_none() {
            self.instance.log(Level::Warn, why);
            self.end = Some("was killed".to_owned());
            self.keeper.end();
        }
        self.kill_at_ms = Some(u64::MAX);
    }

    /// Reads what the program takes, and compares it with its limits.
    async fn measure(&mut self) {
        self.measure_at_ms = now_ms() + MEASURE_MS;
        let allowance = self.instance.allowance();
        if let Some(dropped) = allowance.take_dropped() {
            self.instance.log(Level::Warn, &allowance.describe_dropped(dropped));
        }
        let (Some(pid), Some(_)) = (self.keeper.pid(), self.began_ms) else { return };
        let family = on_disk_thread(move || Family::below(pid)).await;
        self.instance.now.borrow_mut().family = family;
        let settings = self.instance.settings();
        let (used, limit) =
            (family.memory_bytes, settings.config.max_memory_bytes.unwrap_or(u64::MAX));
        let most = settings.config.max_children as usize;
        // The program and the monitor of its sandbox are none of its children.
        let harm = match () {
            () if family.processes > most + 2 => Some(format!("has more than {most} children")),
            () if used / 2 > limit => Some("uses more than twice its max_memory".to_owned()),
            () => None,
        };
        if let Some(harm) = harm {
            self.is_harmful = true;
            self.kill(&format!("it {harm} and is killed"));
        } else if used > limit && !self.is_over {
            let text = format!("it uses {} MiB, more than its max_memory", used >> 20);
            self.instance.log(Level::Warn, &format!("{text}, and is stopped"));
            self.is_over = true;
        }
    }

    /// Waits until nothing is left of the program.
    async fn reap_keeper(&mut self) {
        self.keeper.end();
        let until_ms = now_ms() + END_MS;
        while !self.keeper.has_ended() && now_ms() < until_ms {
            sleep(END_PAUSE_MS).await;
        }
    }
}
