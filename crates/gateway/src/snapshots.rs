//! [`Snapshots`]: the scripts of an app in classic mode that call `Outboard\snapshot()`, each booted once.
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

use crate::gateway::Gateway;
use crate::logs::Logs;
use outboard_admin_api::status as api;
use outboard_buffer::Account;
use outboard_log::{Event, Level};
use outboard_php_pool::pool::operations::Operations;
use outboard_php_pool::pool::{Pool, PoolSettings, Shard};
use outboard_php_pool::{RecentSlow, Rings};
use outboard_reactor::{now_ms, spawn};
use outboard_ring::control::BootRead;
use outboard_ring::request::{Field, RequestView, peek};
use script::{Choice, Script};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::rc::Rc;

/// The time between two boots of an app.
const BOOT_INTERVAL_MS: u64 = 2_000;
/// A snapshot that was not used for so long gives way to another one.
const UNUSED_MS: u64 = 60_000;

/// See the module.
#[derive(Debug)]
pub(crate) struct Snapshots {
    /// Those of the pool of classic mode.
    settings: PoolSettings,
    /// `$_SERVER` entries of the configuration.
    constants: BTreeMap<String, String>,
    max: usize,
    surroundings: Surroundings,
    /// By `SCRIPT_NAME`.
    scripts: RefCell<HashMap<Box<[u8]>, Script>>,
    booted_ms: Cell<Option<u64>>,
}

/// What a pool needs beside its settings.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) rings: Rc<Rings>,
    pub(crate) logs: Rc<Logs>,
    pub(crate) slow: Rc<RecentSlow>,
    pub(crate) operations: Rc<dyn Operations>,
    pub(crate) memory: Rc<Account>,
}

impl Snapshots {
    /// At most `max`, with the settings of the app's pool of classic mode.
    pub(crate) fn new(
        settings: PoolSettings,
        constants: BTreeMap<String, String>,
        max: usize,
        surroundings: Surroundings,
    ) -> Rc<Self> {
        Rc::new(Self {
            settings,
            constants,
            max,
            surroundings,
            scripts: RefCell::default(),
            booted_ms: Cell::new(None),
        })
    }

    /// The pool of a snapshot for a request with this frame, if `classic`, the app's pool, knows that its
    /// script takes one. With `gateway` a snapshot may boot for later requests.
    pub(crate) fn pool_for(
        self: &Rc<Self>,
        classic: &Pool,
        gateway: Option<&Gateway>,
        frame: &[u8],
    ) -> Option<Rc<Pool>> {
        if !classic.knows_snapshots() {
            return None;
        }
        let name = peek(frame, Field::ScriptName)?;
        if !classic.takes_snapshot(name) {
            return None;
        }
        let request = RequestView::decode(frame).ok()?;
        let mut scripts = self.scripts.borrow_mut();
        if !scripts.contains_key(name) {
            scripts.insert(name.into(), Script::default());
        }
        let now_ms = now_ms();
        match scripts.get_mut(name)?.choose(&request, &self.constants, now_ms) {
            Choice::Snapshot(pool) => Some(pool),
            Choice::Classic => None,
            Choice::Boot(boot) => {
                if let Some(gateway) = gateway
                    && !classic.is_retired()
                    && self.has_place(&mut scripts, now_ms)
                {
                    self.boot(scripts.get_mut(name)?, name, &request, boot, gateway);
                }
                None
            }
        }
    }

    /// Whether another snapshot may boot now; one that is not used gives way to it.
    fn has_place(&self, scripts: &mut HashMap<Box<[u8]>, Script>, now_ms: u64) -> bool {
        if self.booted_ms.get().is_some_and(|at_ms| now_ms < at_ms + BOOT_INTERVAL_MS) {
            return false;
        }
        if scripts.values().map(|script| script.snapshots.len()).sum::<usize>() < self.max {
            return true;
        }
        let all = scripts.values_mut().flat_map(|script| {
            let oldest = script.snapshots.iter().map(|one| one.used_ms).min();
            oldest.map(|used_ms| (used_ms, script))
        });
        let Some((used_ms, script)) = all.min_by_key(|(used_ms, _)| *used_ms) else { return false };
        if now_ms < used_ms + UNUSED_MS {
            return false;
        }
        let (unused, kept) = script.snapshots.drain(..).partition(|one| one.used_ms == used_ms);
        script.snapshots = kept;
        Vec::into_iter(unused).for_each(|one| one.pool.retire(self.settings.deadline_ms));
        true
    }

    fn boot(
        self: &Rc<Self>,
        script: &mut Script,
        name: &[u8],
        request: &RequestView<'_>,
        boot: Vec<u8>,
        gateway: &Gateway,
    ) {
        let now_ms = now_ms();
        self.booted_ms.set(Some(now_ms));
        let Ok(file) = String::from_utf8(request.field(Field::ScriptFilename).to_vec()) else {
            return;
        };
        let title = String::from_utf8_lossy(name).into_owned();
        let settings = self.settings.of_snapshot(&title, PathBuf::from(file), boot.clone());
        let around = &self.surroundings;
        let (error, slow) = (around.logs.error.clone(), around.logs.slow.clone());
        let pool = Pool::start(settings, Shard::only(), error, slow, around.rings.clone());
        pool.set_recent_slow(around.slow.clone());
        pool.set_operations(around.operations.clone());
        pool.set_memory(around.memory.clone());
        gateway.pools.borrow_mut().retain(|pool| !pool.is_gone());
        gateway.pools.borrow_mut().push(pool.clone());
        script.add(boot, pool.clone(), now_ms);
        spawn(self.clone().watch(name.into(), pool));
    }

    /// Waits until a snapshot can be used, or not.
    async fn watch(self: Rc<Self>, name: Box<[u8]>, pool: Rc<Pool>) {
        let why = match pool.ready().await {
            Err(error) => Some(error.message),
            Ok(()) if !pool.is_rewinding() => {
                Some("this system does not permit workers to be rewound".to_owned())
            }
            Ok(()) => None,
        };
        let mut scripts = self.scripts.borrow_mut();
        let Some(script) = scripts.get_mut(&name) else { return };
        let useless = || script.booted(&pool).map(|read| useless_because(&read));
        let title = String::from_utf8_lossy(&name);
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

    fn log(&self, level: Level, text: &str) {
        let event = Event { app: Some(&self.settings.app), text, ..Event::default() };
        self.surroundings.logs.error.write(level, event);
    }

    /// The pools of all snapshots.
    pub(crate) fn pools(&self) -> Vec<Rc<Pool>> {
        let scripts = self.scripts.borrow();
        let all = scripts.values().flat_map(|script| &script.snapshots);
        all.map(|snapshot| snapshot.pool.clone()).collect()
    }

    /// The scripts, for `outboard status` and `outboard doctor`.
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

fn api_read(read: BootRead) -> api::BootRead {
    api::BootRead { name: read.name, file: read.file, line: read.line }
}

/// `$_SERVER['HTTP_HOST'] (wp-config.php:12)`
fn place(read: &BootRead) -> String {
    format!("{} ({}:{})", variable(&read.name), read.file, read.line)
}

/// As PHP has it.
fn variable(name: &str) -> String {
    match name.split_once('.') {
        Some((array, entry)) => format!("${array}['{entry}']"),
        None => format!("${name}"),
    }
}

fn useless_because(read: &BootRead) -> String {
    format!(
        "before Outboard\\snapshot() it reads {}, which differs in each request; if the code below reads it \
         again, name it in Outboard\\snapshot(['{}'])",
        place(read),
        read.name
    )
}
