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

use crate::pool_starter::PoolStarter;
use outboard_admin_api::status as api;
use outboard_log::{ErrorLog, Event, Level};
use outboard_php_pool::freshness::Snapshots;
use outboard_php_pool::pool::{Pool, PoolSettings, Shard};
use outboard_php_pool::renewal::seat::{PoolList, PoolSeat};
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
    /// The list that the pools join.
    lists: RefCell<Option<PoolList>>,
}

/// What it needs beside the settings.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) starter: Rc<PoolStarter>,
    pub(crate) log: Rc<ErrorLog>,
    /// All snapshots of the app, for retirements.
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) drain_timeout_ms: u64,
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
            lists: RefCell::default(),
        });
        if let Some(receiver) = receiver {
            spawn(follow(Rc::downgrade(&snapshots), receiver));
        }
        snapshots
    }

    /// The snapshot for a request with this frame. `classic`, the app's pool, knows which scripts take one.
    pub(crate) fn seat_for(self: &Rc<Self>, classic: &Pool, frame: &[u8]) -> Option<Rc<PoolSeat>> {
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
            Choice::Snapshot(seat) => Some(seat),
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
        let starter = around.starter.clone();
        let start = move |shard: Shard| starter.start(settings.clone(), shard);
        let pool = start(shared.shards.place(around.index));
        let (renewal, drain_ms) = (shared.renewal.clone(), around.drain_timeout_ms);
        if around.index == LEAD {
            around.snapshots.add(renewal.freshness());
        }
        let seat = PoolSeat::renewed(pool.clone(), around.index, renewal, drain_ms, start);
        self.lists.borrow().iter().for_each(|pools| {
            seat.list_pools_in(pools);
            pools.borrow_mut().push(pool.clone());
        });
        let script = scripts.entry(boot.script.clone()).or_default();
        script.add(shared.clone(), seat.clone());
        if self.is_retired.get() {
            seat.retire(0);
        }
        spawn(self.clone().watch(shared, seat));
    }

    /// Ends this thread's part of a snapshot, once its requests are finished.
    fn end(&self, scripts: &mut HashMap<Box<[u8]>, Script>, shared: &Arc<SharedSnapshot>) {
        let script = scripts.get_mut(&shared.boot.script);
        if let Some(snapshot) = script.and_then(|script| script.take(shared)) {
            snapshot.seat.retire(self.surroundings.drain_timeout_ms);
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
    async fn watch(self: Rc<Self>, shared: Arc<SharedSnapshot>, seat: Rc<PoolSeat>) {
        let pool = seat.pool();
        let why = match pool.ready().await {
            Err(error) => Some(error.message),
            Ok(()) if !pool.is_rewinding() => {
                Some("this system does not permit workers to be rewound".to_owned())
            }
            Ok(()) => None,
        };
        let mut scripts = self.scripts.borrow_mut();
        let Some(script) = scripts.get_mut(&shared.boot.script) else { return };
        let useless = || script.booted(&shared).map(|read| useless_because(&read));
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
        if !self.is_retired.get() {
            self.log(Level::Warn, &format!("{title} is not booted once: {why}"));
        }
        script.refuse(&shared, why, now_ms());
        seat.retire(0);
    }

    /// Of all threads one says it.
    fn log(&self, level: Level, text: &str) {
        if self.surroundings.index != LEAD {
            return;
        }
        let event = Event { app: Some(&self.settings.app), text, ..Event::default() };
        self.surroundings.log.write(level, event);
    }

    /// Sets the list that its pools join.
    pub(crate) fn list_pools_in(&self, pools: &PoolList) {
        self.lists.replace(Some(pools.clone()));
    }

    /// The app is retired: there are no new snapshots, and those that there are end once their requests are
    /// finished, or this time has passed.
    pub(crate) fn retire(&self, drain_timeout_ms: u64) {
        self.is_retired.set(true);
        let scripts = self.scripts.borrow();
        let all = scripts.values().flat_map(|script| &script.snapshots);
        all.for_each(|snapshot| snapshot.seat.retire(drain_timeout_ms));
        self.surroundings.threads.send(self.surroundings.index, Message::Close);
    }

    /// The scripts, for `outboard status` and `outboard doctor`; on the lead, which has them all.
    pub(crate) fn status(&self) -> Vec<api::SnapshotScript> {
        let scripts = self.scripts.borrow();
        let mut all: Vec<_> = scripts
            .iter()
            .map(|(name, script)| api::SnapshotScript {
                app: self.settings.app.clone(),
                script: String::from_utf8_lossy(name).into_owned(),
                snapshots: script.snapshots.iter().filter(|one| one.is_used()).count(),
                refused_because: script.refusal.as_ref().map(|refusal| refusal.why.clone()),
                reads: api_reads(&script.reads()),
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

/// For the admin API.
pub(crate) fn api_reads(reads: &[RequestRead]) -> Vec<api::RequestRead> {
    let read = |read: &RequestRead| api::RequestRead {
        name: read.name.clone(),
        file: read.file.clone(),
        line: read.line,
    };
    reads.iter().map(read).collect()
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
