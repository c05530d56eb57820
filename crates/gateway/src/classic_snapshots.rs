//! [`ClassicSnapshots`]: the scripts of an app in classic mode that call `Outboard\snapshot()`, each booted once.
//!
//! Owned by the app, asked by [`crate::script`] for each request to PHP. A worker of classic mode reports that
//! a script has made the call. Then the script boots in a zygote of its own, with a neutral request, and its
//! workers get the requests that agree with everything that the boot has read. All others, and all while the
//! zygote boots or has failed, are handled as before. Invariants: the snapshots of an app are limited; what
//! boots does not depend on a request beyond the values that other requests are compared with.
//!
//! Design: docs/decisions/0037-snapshots-in-classic-mode.md.

mod boot_frame;
mod fact;
mod script;
#[cfg(test)]
mod testing;
mod threads;

use crate::logs::Logs;
use outboard_admin_api::status as api;
use outboard_buffer::Account;
use outboard_log::{Event, Level};
use outboard_php_pool::pool::operations::{ForwardedOperations, Operations};
use outboard_php_pool::pool::{Pool, PoolSettings};
use outboard_php_pool::{RecentSlow, Rings};
use outboard_reactor::{MailboxReceiver, now_ms, spawn};
use outboard_ring::control::RequestRead;
use outboard_ring::request::{Field, RequestView, peek};
use script::{Choice, Script};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use threads::{Boot, Message, SharedSnapshot};

pub(crate) use threads::SnapshotThreads;

/// The thread that decides what boots.
const LEAD: usize = 0;
/// The time between two boots of an app.
const BOOT_INTERVAL_MS: u64 = 2_000;
/// A snapshot that was not used for so long gives way to another one.
const UNUSED_MS: u64 = 60_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct ClassicSnapshots {
    /// Those of the pool of classic mode.
    settings: PoolSettings,
    /// `$_SERVER` entries of the configuration.
    constants: BTreeMap<String, String>,
    max: usize,
    surroundings: Surroundings,
    /// By `SCRIPT_NAME`.
    scripts: RefCell<HashMap<Box<[u8]>, Script>>,
    /// When the last boot, or wish for one, was.
    booted_ms: Cell<Option<u64>>,
    /// How many have booted, for their names.
    boots: Cell<u64>,
    is_retired: Cell<bool>,
}

/// What a pool needs beside its settings.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) rings: Rc<Rings>,
    pub(crate) logs: Rc<Logs>,
    pub(crate) slow: Rc<RecentSlow>,
    /// Those of this thread.
    pub(crate) operations: Rc<dyn Operations>,
    pub(crate) memory: Rc<Account>,
    pub(crate) threads: Arc<SnapshotThreads>,
    /// The place of this thread.
    pub(crate) index: usize,
}

impl ClassicSnapshots {
    /// At most `max`, with the settings of the app's pool of classic mode.
    pub(crate) fn open(
        settings: PoolSettings,
        constants: BTreeMap<String, String>,
        max: usize,
        surroundings: Surroundings,
    ) -> Rc<Self> {
        let receiver = surroundings.threads.receiver(surroundings.index);
        let snapshots = Rc::new(Self {
            settings,
            constants,
            max,
            surroundings,
            scripts: RefCell::default(),
            booted_ms: Cell::new(None),
            boots: Cell::new(0),
            is_retired: Cell::new(false),
        });
        if let Some(receiver) = receiver {
            spawn(follow(Rc::downgrade(&snapshots), receiver));
        }
        snapshots
    }

    /// The pool of a snapshot for a request with this frame. `classic`, the app's pool, knows which scripts
    /// take one.
    pub(crate) fn pool_for(self: &Rc<Self>, classic: &Pool, frame: &[u8]) -> Option<Rc<Pool>> {
        let mut scripts = self.scripts.borrow_mut();
        if scripts.is_empty() && !classic.knows_snapshots() {
            return None;
        }
        let name = peek(frame, Field::ScriptName)?;
        if !scripts.contains_key(name) {
            if !classic.takes_snapshot(name) {
                return None;
            }
            scripts.insert(name.into(), Script::default());
        }
        let request = RequestView::decode(frame).ok()?;
        match scripts.get_mut(name)?.choose(&request, &self.constants, now_ms()) {
            Choice::Snapshot(pool) => Some(pool),
            Choice::Classic => None,
            Choice::Boot(boot) => {
                let file = str::from_utf8(request.field(Field::ScriptFilename)).ok()?;
                let boot = Boot { script: name.into(), file: PathBuf::from(file), request: boot };
                self.wish(&mut scripts, boot);
                None
            }
        }
    }

    /// A snapshot would be worth its boot, if there is room for it.
    fn wish(self: &Rc<Self>, scripts: &mut HashMap<Box<[u8]>, Script>, boot: Boot) {
        let now_ms = now_ms();
        let is_soon = |at_ms: u64| now_ms < at_ms + BOOT_INTERVAL_MS;
        if self.is_retired.get() || self.booted_ms.get().is_some_and(is_soon) {
            return;
        }
        let threads = &self.surroundings.threads;
        if self.surroundings.index != LEAD {
            self.booted_ms.set(Some(now_ms));
            return threads.send(LEAD, Message::Wish(boot));
        }
        let script = scripts.entry(boot.script.clone()).or_default();
        if script.has(&boot.request) || !self.has_place(scripts, now_ms) {
            return;
        }
        self.booted_ms.set(Some(now_ms));
        self.boots.update(|boots| boots + 1);
        let name = String::from_utf8_lossy(&boot.script);
        let title = match self.boots.get() {
            1 => name.into_owned(),
            number => format!("{name}#{number}"),
        };
        let shared = SharedSnapshot::new(boot, title, threads.count(), now_ms);
        threads.send_to_others(|| Message::Begin(shared.clone()));
        self.begin(scripts, shared);
    }

    /// Whether there may be another snapshot; one that is not used gives way to it.
    fn has_place(&self, scripts: &mut HashMap<Box<[u8]>, Script>, now_ms: u64) -> bool {
        let all = || scripts.values().flat_map(|script| &script.snapshots);
        if all().count() < self.max {
            return true;
        }
        let oldest = all().map(|one| &one.shared).min_by_key(|shared| shared.used_ms());
        let unused = oldest.filter(|shared| shared.used_ms() + UNUSED_MS < now_ms).cloned();
        let Some(unused) = unused else { return false };
        self.surroundings.threads.send_to_others(|| Message::End(unused.clone()));
        self.end(scripts, &unused);
        true
    }

    /// Starts this thread's part of a snapshot.
    fn begin(
        self: &Rc<Self>,
        scripts: &mut HashMap<Box<[u8]>, Script>,
        shared: Arc<SharedSnapshot>,
    ) {
        let (around, boot) = (&self.surroundings, &shared.boot);
        let (file, request) = (boot.file.clone(), boot.request.clone());
        let settings = self.settings.of_snapshot(&shared.title, file, request);
        let (error, slow) = (around.logs.error.clone(), around.logs.slow.clone());
        let shard = shared.shards.place(around.index);
        let pool = Pool::start(settings, shard.clone(), error, slow, around.rings.clone());
        pool.set_recent_slow(around.slow.clone());
        pool.set_memory(around.memory.clone());
        let operations = around.operations.clone();
        pool.set_operations(match around.index {
            LEAD => operations,
            _ => ForwardedOperations::before(operations, shard),
        });
        let script = scripts.entry(boot.script.clone()).or_default();
        script.add(shared.clone(), pool.clone());
        if self.is_retired.get() {
            pool.retire(0);
        }
        spawn(self.clone().watch(shared, pool));
    }

    /// Ends this thread's part of a snapshot, once its requests are finished.
    fn end(&self, scripts: &mut HashMap<Box<[u8]>, Script>, shared: &Arc<SharedSnapshot>) {
        let script = scripts.get_mut(&shared.boot.script);
        if let Some(snapshot) = script.and_then(|script| script.take(shared)) {
            snapshot.pool.retire(self.settings.deadline_ms);
        }
    }

    fn receive(self: &Rc<Self>, message: Message) {
        let mut scripts = self.scripts.borrow_mut();
        match message {
            Message::Wish(boot) => self.wish(&mut scripts, boot),
            Message::Begin(shared) => self.begin(&mut scripts, shared),
            Message::End(shared) => self.end(&mut scripts, &shared),
            Message::Close => {}
        }
    }

    /// Waits until a snapshot can be used, or not.
    async fn watch(self: Rc<Self>, shared: Arc<SharedSnapshot>, pool: Rc<Pool>) {
        let why = match pool.ready().await {
            Err(error) => Some(error.message),
            Ok(()) if !pool.is_rewinding() => {
                Some("this system does not permit workers to be rewound".to_owned())
            }
            Ok(()) => None,
        };
        let mut scripts = self.scripts.borrow_mut();
        let Some(script) = scripts.get_mut(&shared.boot.script) else { return };
        let useless = || script.booted(&pool).map(|read| useless_because(&read));
        let title = &shared.title;
        let Some(why) = why.or_else(useless) else {
            let reads: Vec<_> = script.reads().iter().map(place).collect();
            let text = match &reads[..] {
                [] => format!("{title} is booted once from now on"),
                reads => format!(
                    "{title} is booted once from now on, for requests that agree with what it reads before \
                     Outboard\\snapshot(): {}",
                    reads.join(", ")
                ),
            };
            return self.log(Level::Info, &text);
        };
        if !pool.is_retired() {
            self.log(Level::Warn, &format!("{title} is not booted once: {why}"));
        }
        script.refuse(&pool, why, now_ms());
        pool.retire(0);
    }

    /// Of all threads one says it.
    fn log(&self, level: Level, text: &str) {
        if self.surroundings.index != LEAD {
            return;
        }
        let event = Event { app: Some(&self.settings.app), text, ..Event::default() };
        self.surroundings.logs.error.write(level, event);
    }

    /// The app is retired: there are no new snapshots, and those that there are end once their requests are
    /// finished, or this time has passed.
    pub(crate) fn retire(&self, drain_timeout_ms: u64) {
        self.is_retired.set(true);
        self.pools().iter().for_each(|pool| pool.retire(drain_timeout_ms));
        self.surroundings.threads.send(self.surroundings.index, Message::Close);
    }

    /// The pools of all snapshots.
    pub(crate) fn pools(&self) -> Vec<Rc<Pool>> {
        let scripts = self.scripts.borrow();
        let all = scripts.values().flat_map(|script| &script.snapshots);
        all.map(|snapshot| snapshot.pool.clone()).collect()
    }

    /// The scripts, for `outboard status` and `outboard doctor`; on the lead, which has them all.
    pub(crate) fn status(&self) -> Vec<api::SnapshotScript> {
        let scripts = self.scripts.borrow();
        let mut all: Vec<_> = scripts
            .iter()
            .map(|(name, script)| api::SnapshotScript {
                app: self.settings.app.clone(),
                script: String::from_utf8_lossy(name).into_owned(),
                snapshots: script.snapshots.iter().filter(|one| one.pool.is_serving()).count(),
                refused_because: script.refusal.as_ref().map(|refusal| refusal.why.clone()),
                reads: script.reads().into_iter().map(api_read).collect(),
            })
            .collect();
        all.sort_by(|a, b| a.script.cmp(&b.script));
        all
    }
}

/// Receives what other threads say until the app is retired.
async fn follow(snapshots: Weak<ClassicSnapshots>, receiver: MailboxReceiver<Message>) {
    loop {
        let message = receiver.next().await;
        let Some(snapshots) = snapshots.upgrade() else { return };
        if matches!(message, Message::Close) {
            return;
        }
        snapshots.receive(message);
    }
}

fn api_read(read: RequestRead) -> api::RequestRead {
    api::RequestRead { name: read.name, file: read.file, line: read.line }
}

/// `$_SERVER['HTTP_HOST'] (wp-config.php:12)`
fn place(read: &RequestRead) -> String {
    format!("{} ({}:{})", variable(&read.name), read.file, read.line)
}

/// As PHP has it.
fn variable(name: &str) -> String {
    match name.split_once('.') {
        Some((array, entry)) => format!("${array}['{entry}']"),
        None => format!("${name}"),
    }
}

fn useless_because(read: &RequestRead) -> String {
    format!(
        "before Outboard\\snapshot() it reads {}, which differs in each request; if the code below reads it \
         again, name it in Outboard\\snapshot(['{}'])",
        place(read),
        read.name
    )
}
