//! The processes of a pool: the start of PHP by the zygote, and the exits of the zygote and its workers.
//!
//! Called by the manager, and by the server that waits for a pool. Invariants: a start ends with
//! a serving pool or with a failure that says why; the death of a worker fails exactly the requests that it had
//! started.

use super::lending::shards::Shard;
use super::lending::siblings::Siblings;
use super::lifecycle::Phase;
use super::members::Members;
use super::php_start::BootReport;
use super::settings::PoolSettings;
use super::worker::Worker;
use super::worker_output::OutputReader;
use super::{Pool, StartError, exits, manager, threads};
use crate::budget::{Budget, Share};
use crate::output_lines;
use crate::rings::Rings;
use outboard_log::{ErrorLog, Level, Reason};
use outboard_reactor::{Interest, Source, Threads, now_ms, spawn, unbound, with_deadline};
use outboard_supervisor::worker::lifecycle::ExitKind;
use outboard_supervisor::zygote::Zygote;
use rustix::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::pin::pin;
use std::process::ExitStatus;
use std::rc::Rc;

/// The spawner does one thing at a time, and may be stopped or slow.
pub(crate) static SPAWNER: Threads = Threads::new(1);
/// The interval of ticks while the spawner is waited for.
const WAITING_TICK_MS: u64 = 20;

impl Pool {
    /// A pool whose manager starts PHP at once; see [`Pool::ready`].
    pub fn start(
        settings: PoolSettings,
        shard: Shard,
        error_log: Rc<ErrorLog>,
        slow_log: Rc<ErrorLog>,
        rings: Rc<Rings>,
    ) -> Rc<Self> {
        let pool = Self::new(settings, shard, error_log, slow_log, rings);
        spawn(manager::run(pool.clone()));
        if pool.core.shard.count() > 1
            && let Some(messages) = pool.core.shard.receiver()
        {
            spawn(threads::follow(pool.clone(), messages));
        }
        pool
    }

    /// Waits until the minimum number of workers is ready, or the pool sleeps.
    ///
    /// # Errors
    /// PHP does not start, or not in time.
    pub async fn ready(&self) -> Result<(), StartError> {
        let core = &self.core;
        let failed = |message: String| StartError { app: core.settings.app.clone(), message };
        let until_ms = now_ms() + core.settings.start_timeout_ms;
        let ready = with_deadline(until_ms, async {
            loop {
                if let Some(failure) = &core.php.borrow().failure {
                    return Err(failed(failure.clone()));
                }
                let is_ready = core.lifecycle.is_serving() && self.has_minimum();
                if is_ready || core.lifecycle.is_asleep() {
                    return Ok(());
                }
                core.lifecycle.changed().wait().await;
            }
        });
        let timed_out = |_| {
            let message = exits::explain_start(core, &self.start_timeout_message());
            Err(failed(message))
        };
        ready.await.unwrap_or_else(timed_out)
    }

    fn has_minimum(&self) -> bool {
        let members = self.core.members.borrow();
        let ready = members.roster.all().filter(|worker| worker.is_ready()).count();
        ready + members.lent.len() >= self.dispatcher.sizing.borrow().bounds.min()
    }

    /// Starts the zygote; returns its control socket, or `None` if the pool needs none any more.
    pub(super) async fn start_zygote(self: &Rc<Self>) -> Result<Option<Source>, String> {
        let core = &self.core;
        if !core.shard.is_lead() {
            return self.adopt(Siblings::request(&core.shard)?).map(Some);
        }
        let (program, host) = (&core.settings.host_binary, core.settings.host.clone());
        let spawned = match &core.settings.as_user {
            None => Some(unbound(|| Zygote::spawn(program, host))),
            Some(user) => {
                let (user, program) = (user.clone(), program.clone());
                let spawn = move || Zygote::spawn_as(&user, &program, host);
                self.while_needed(SPAWNER.run(0, spawn)).await?
            }
        };
        let Some(spawned) = spawned else { return Ok(None) };
        self.adopt(spawned.map_err(|error| error.to_string())?).map(Some)
    }

    /// Waits for `work` and for nothing longer than a start may take. Queued requests time out meanwhile.
    async fn while_needed<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>, String> {
        let mut work = pin!(work);
        let until_ms = now_ms().saturating_add(self.core.settings.start_timeout_ms);
        loop {
            if let Ok(done) = with_deadline(now_ms() + WAITING_TICK_MS, work.as_mut()).await {
                return Ok(Some(done));
            }
            self.core.expire_queue(now_ms());
            self.continue_retiring();
            if self.is_done() {
                return Ok(None);
            }
            if until_ms <= now_ms() {
                return Err(self.start_timeout_message());
            }
        }
    }

    /// Takes over a zygote that was started, and its output.
    pub(super) fn adopt(&self, (zygote, output): (Zygote, OwnedFd)) -> Result<Source, String> {
        let core = &self.core;
        let reader = OutputReader::of_zygote(core.clone());
        let by_ms = now_ms().saturating_add(core.settings.start_timeout_ms);
        core.php.borrow_mut().begin(by_ms, output.try_clone().ok());
        spawn(output_lines::relay(reader.clone(), output));
        let control = zygote.control_fd().try_clone_to_owned();
        let source = control.and_then(|fd| Source::new(fd, Interest::Read));
        core.zygote.replace(Some(zygote));
        source.map_err(|error| error.to_string())
    }

    pub(super) fn start_timeout_message(&self) -> String {
        format!("it was not ready after {} ms", self.core.settings.start_timeout_ms)
    }

    /// The zygote has started PHP.
    pub(super) fn started(self: &Rc<Self>, boot: BootReport, opcache: bool, ini: Option<&Path>) {
        let core = &self.core;
        let ini = ini.map_or("no php.ini".into(), |path| path.display().to_string());
        let opcache = if opcache { "opcache on" } else { "opcache off" };
        // It started once, for all threads.
        if core.shard.is_lead() {
            let text = format!("PHP {} started ({ini}, {opcache})", boot.php_version);
            // One that sleeps starts again and again.
            let level = if core.settings.sleeps() { Level::Debug } else { Level::Info };
            core.log.log(level, &text);
        }
        core.php.borrow_mut().succeeded(boot);
        self.split_waiting();
        if core.lifecycle.is_starting() {
            core.lifecycle.enter(Phase::Serving);
            // One thread's part of a small pool may have no worker.
            core.lifecycle.changed().set();
        }
        self.tick();
    }

    pub(super) fn start_failed(&self, message: &str) {
        let message = exits::explain_start(&self.core, message);
        self.log_error(&format!("PHP did not start: {message}"));
        self.core.php.borrow_mut().failed(message);
        self.core.lifecycle.changed().set();
        self.core.fail_queue(Reason::AppDown);
    }

    /// The zygote has reported what the start of the script has read.
    pub(super) fn boot_read(&self, keys: Vec<String>, is_complete: bool, max_age_s: u64) {
        if !self.snapshots.is_renewed() {
            return;
        }
        let zygote = self.core.zygote.borrow();
        let descriptors = zygote.as_ref().map(|zygote| zygote.take_descriptors());
        drop(zygote);
        if !is_complete {
            let text = "the start of the script reads more files than can be watched: changes of some are \
                        not noticed";
            self.core.log.log(Level::Warn, text);
        }
        let list = descriptors.and_then(|mut descriptors| descriptors.pop());
        self.snapshots.booted(self.core.id, keys, list, is_complete, max_age_s);
    }

    /// The zygote has exited, and by `PR_SET_PDEATHSIG` all of its workers with it. Returns the phase that it was
    /// in.
    pub(super) fn zygote_exited(&self) -> Phase {
        let core = &self.core;
        let mut members = core.members.borrow_mut();
        for slot in 0..members.roster.slots() {
            let Some(worker) = members.roster.get_mut(slot) else { continue };
            if !worker.is_own {
                continue;
            }
            worker.has_exited = true;
            self.poll_worker(&mut members, slot, Share::FINAL, &mut Budget::default());
            let Some(mut worker) = self.remove_dead(&mut members, slot) else { continue };
            let unstarted = worker.withdraw_unstarted(now_ms());
            members.queue.requeue(unstarted);
            worker.fail();
        }
        debug_assert!(members.roster.own().next().is_none(), "a worker outlives its zygote");
        drop(members);
        self.dispatcher.placement.forget();
        self.lent_workers_died();
        let phase = core.lifecycle.phase();
        if phase == Phase::Serving {
            core.lifecycle.enter(Phase::Starting);
        }
        phase
    }

    /// Reports how the zygote has exited, which was in this phase.
    pub(super) fn report_zygote_exit(&self, phase: Phase, status: Option<ExitStatus>) {
        let how = status.map_or_else(
            || "has exited".to_owned(),
            |status| exits::describe_exit(status.code(), status.signal()),
        );
        match phase {
            // Otherwise its failure is reported.
            Phase::Starting if self.core.php.borrow().is_under_way() => {
                let host = self.core.settings.host_binary.display();
                self.start_failed(&format!("{host} {how} while starting"));
            }
            Phase::Serving => {
                let text = format!("the zygote {how}; starting PHP again");
                self.log_error(&text);
                self.core.php.borrow_mut().failure.get_or_insert(text);
                self.core.lifecycle.changed().set();
            }
            _ => {}
        }
    }

    /// Handles the exit of a worker; `how` describes it for the log. Its remaining output and frames are
    /// processed; requests that it had started fail, all others are given to other workers.
    pub(super) fn reap(&self, number: u64, code: Option<i32>, how: &str) {
        let core = &self.core;
        exits::log_last_output(core, number);
        let mut members = core.members.borrow_mut();
        let Some(slot) = members.roster.slot_of(number) else { return };
        self.poll_worker(&mut members, slot, Share::FINAL, &mut Budget::default());
        let Some(mut worker) = self.remove_dead(&mut members, slot) else { return };
        core.lifecycle.changed().set();
        core.publish(&members);
        self.dispatcher.use_reserve(&mut members);
        let unstarted = worker.withdraw_unstarted(now_ms());
        self.dispatcher.reassign(&mut members, unstarted);
        drop(members);
        let failed = worker.fail();
        // A worker script may return.
        let has_returned = core.settings.is_resident() && code == Some(0) && failed.is_empty();
        let activity = match worker.process.lifecycle.exited() {
            ExitKind::Expected | ExitKind::ExpectedWithRequests | ExitKind::Again => return,
            ExitKind::WhileStarting => "starting".to_owned(),
            ExitKind::WhileIdle | ExitKind::WhileServing if has_returned => return,
            ExitKind::WhileIdle | ExitKind::WhileServing => exits::describe_activity(&failed),
        };
        let request = failed.first().map(|exchange| exchange.request_id);
        exits::worker_crashed(core, &worker, format!("a worker {how} while {activity}"), request);
        if !failed.is_empty() {
            core.record_crash();
        }
    }

    /// Removes a worker that has exited, and collects its last counts.
    pub(super) fn remove_dead(&self, members: &mut Members, slot: usize) -> Option<Worker> {
        let core = &self.core;
        let worker = members.roster.remove(slot)?;
        self.dispatcher.operations.forget(worker.id);
        core.log.log_last_dropped(&worker);
        core.shard.remove_pid(worker.process.pid);
        core.counters.borrow_mut().add_exited(&worker);
        Some(worker)
    }
}
