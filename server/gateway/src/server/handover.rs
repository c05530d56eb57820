//! [`Handover`]: what only one process can have (the entity store, tasks) moves to the new server.
//!
//! Used by the upgrade of the old server; [`take_over`] is the part of the new one. Invariants: the files of
//! the store are closed here before they are opened there; unless the upgrade succeeds, this server has
//! everything again, as soon as the new process has ended; requests wait meanwhile.

use super::control_signals::ControlSignals;
use super::lead::Lead;
use super::unless_stopped;
use crate::gateway::Gateway;
use crate::server_error::ServerError;
use crate::server_link::ServerLink;
use crate::upgrade_link::{self, UpgradeLink};
use outboard_entity_store::{OpenError, Store, StoreError};
use outboard_log::Level;
use outboard_operations::Entities;
use outboard_reactor::{Event, now_ms, sleep, spawn};
use outboard_upgrade::{Handed, Link, LinkFacts, Predecessor};
use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// A process that is killed has the lock of the store for a moment.
const LOCKED_MS: u64 = 10_000;
const LOCKED_PAUSE_MS: u64 = 10;
const RETRY_PAUSE_MS: u64 = 1_000;

/// See the module. Dropped before [`Handover::complete`], it takes everything back.
pub(super) struct Handover {
    gateway: Rc<Gateway>,
    link: Rc<UpgradeLink>,
    release: Rc<Release>,
    is_complete: bool,
}

/// How far the store is closed.
#[derive(Default)]
struct Release {
    is_running: Cell<bool>,
    is_done: Cell<bool>,
    ended: Event,
    /// When calls began to wait.
    begun_ms: Cell<u64>,
}

impl Handover {
    /// The hand-over, and the end of its link for the new process. `None`: the server has nothing that needs
    /// it.
    ///
    /// # Errors
    /// The system has no room for a link.
    pub(super) fn begin(gateway: &Rc<Gateway>) -> io::Result<Option<(Self, (OwnedFd, LinkFacts))>> {
        let generation = gateway.generation();
        let store = generation.entities.as_ref().and_then(|entities| entities.store());
        let folder = store.and_then(|store| store.folder());
        let has_pages = generation.apps.iter().any(|app| app.page_cache.is_some());
        let processes = gateway.processes.keys();
        let has_none = folder.is_none() && generation.tasks().next().is_none();
        if has_none && !has_pages && processes.is_empty() {
            return Ok(None);
        }
        let names = store.into_iter().flat_map(|store| store.namespaces());
        let namespaces = names.map(|namespace| namespace.name().to_owned()).collect();
        let facts = LinkFacts { store: folder.map(Into::into), namespaces, processes };
        let (own, of_successor) = Link::pair()?;
        let link = UpgradeLink::open(own, facts.clone())?;
        link.join(gateway);
        upgrade_link::share_purges(gateway);
        let (gateway, release) = (gateway.clone(), Rc::default());
        Ok(Some((Self { gateway, link, release, is_complete: false }, (of_successor, facts))))
    }

    /// Closes the store and starts no more tasks; requests that need the store wait.
    ///
    /// # Errors
    /// The disk fails.
    pub(super) async fn release(&self) -> Result<(), StoreError> {
        let store = store(&self.gateway);
        if let Some(store) = &store {
            store.flush().await?;
        }
        self.gateway.generation().tasks().for_each(|tasks| tasks.hold());
        let Some(store) = store else { return Ok(()) };
        self.release.is_running.set(true);
        self.release.begun_ms.set(now_ms());
        let release = self.release.clone();
        // In a task of its own, since it may not stop in the middle.
        spawn(async move {
            store.release().await;
            release.is_running.set(false);
            release.is_done.set(true);
            release.ended.set();
        });
        while !self.release.is_done.get() {
            self.release.ended.wait().await;
        }
        Ok(())
    }

    /// Sends what was in memory. The new server has opened the store.
    ///
    /// # Errors
    /// The new server has ended.
    pub(super) async fn send_memory(&self) -> Result<(), StoreError> {
        match store(&self.gateway) {
            Some(store) => store.copy_memory_to(self.link.remote()).await,
            None => Ok(()),
        }
    }

    /// The new server accepts connections: it has everything.
    pub(super) fn complete(mut self) {
        self.is_complete = true;
        if let Some(store) = store(&self.gateway) {
            store.leave_to(self.link.remote());
            let waited_ms = now_ms() - self.release.begun_ms.get();
            let text =
                format!("the entity store has moved; requests for records waited {waited_ms} ms");
            self.gateway.server.log(Level::Info, &text);
        }
        self.link.leave_tasks(&self.gateway);
        self.link.leave_processes(&self.gateway);
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if !self.is_complete {
            self.link.close();
            upgrade_link::leave(&self.gateway, &self.link);
            spawn(take_back(self.gateway.clone(), self.release.clone()));
        }
    }
}

/// Opens the store again, once the new process has ended.
async fn take_back(gateway: Rc<Gateway>, release: Rc<Release>) {
    while release.is_running.get() {
        sleep(1).await;
    }
    if release.is_done.get() {
        let (began_ms, mut is_logged) = (now_ms(), false);
        while let Some(Err(error)) =
            entities(&gateway).map(|entities| acquire_here(&gateway, &entities))
        {
            let is_patient =
                matches!(error, OpenError::Locked { .. }) && now_ms() < began_ms + LOCKED_MS;
            if !is_patient && !std::mem::replace(&mut is_logged, true) {
                gateway.server.log(Level::Error, &format!("the entity store is closed: {error}"));
            }
            sleep(if is_patient { LOCKED_PAUSE_MS } else { RETRY_PAUSE_MS }).await;
        }
    }
    let left_at_ms = 0;
    gateway.generation().tasks().for_each(|tasks| tasks.begin(left_at_ms));
}

fn entities(gateway: &Gateway) -> Option<Rc<Entities>> {
    gateway.generation().entities.clone()
}

fn acquire_here(gateway: &Gateway, entities: &Entities) -> Result<(), OpenError> {
    entities.acquire(&gateway.generation().logs.error)
}

/// The store, if one process only can have it open.
fn store(gateway: &Gateway) -> Option<Rc<Store>> {
    let store = entities(gateway)?.store().cloned()?;
    store.folder().is_some().then_some(store)
}

/// Takes over what only one process can have. False: this server ends.
pub(super) async fn take_over(
    lead: &Lead,
    predecessor: Option<&Predecessor>,
    signals: &ControlSignals,
) -> Result<bool, ServerError> {
    let (Some(predecessor), Some(link)) = (predecessor, &lead.builder.link) else {
        return Ok(true);
    };
    link.join(&lead.gateway);
    link.hold_processes(&lead.gateway);
    upgrade_link::share_purges(&lead.gateway);
    let acquired = acquire(&lead.gateway, predecessor, link);
    match unless_stopped(&lead.gateway, signals, acquired).await {
        Some(acquired) => acquired.map_err(ServerError::setup),
        None => Ok(false),
    }
}

/// As the new server, whose PHP has started: takes over the store, and waits for what was in memory. False:
/// the old server goes on.
///
/// # Errors
/// The store cannot be opened.
async fn acquire(
    gateway: &Rc<Gateway>,
    predecessor: &Predecessor,
    link: &Rc<UpgradeLink>,
) -> Result<bool, String> {
    if predecessor.prepared().await.map_err(|error| error.to_string())? == Handed::GivenUp {
        return Ok(false);
    }
    let until_ms = now_ms() + LOCKED_MS;
    let elsewhere = link.elsewhere();
    if let Some(entities) = entities(gateway).filter(|_| elsewhere.folder.is_some()) {
        loop {
            match acquire_here(gateway, &entities) {
                Ok(()) => break,
                // A predecessor that was killed.
                Err(OpenError::Locked { .. }) if now_ms() < until_ms => {
                    sleep(LOCKED_PAUSE_MS).await
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    let acquired = predecessor.acquired().await.map_err(|error| error.to_string())?;
    Ok(acquired == Handed::Over)
}
