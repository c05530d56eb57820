//! [`UpgradeLink`]: the way to the other server of an upgrade, for the entity store, tasks, processes and purges.
//!
//! On the lead of both servers, from the start of the new one to the end of the old one. Each process carries
//! out the calls of the other for records, queues the tasks that the other leaves, and purges the pages that the
//! other purges. Invariants: a purge is sent to each process once; tasks of
//! the old server begin here after it has left them, or has ended; what it has not finished then is recovered
//! from the journal.

use crate::gateway::Gateway;
use crate::server_link::ServerLink;
use outboard_entity_store::Remote;
use outboard_log::{Level, Wall};
use outboard_operations::Elsewhere;
use outboard_page_cache::Selector;
use outboard_php_pool::processes::ProcessSuccessor;
use outboard_php_pool::tasks::TaskSuccessor;
use outboard_reactor::spawn;
use outboard_upgrade::{Link, LinkFacts};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};

/// The kinds of frames: their first byte.
mod kind {
    /// A call for records.
    pub(super) const CALL: u8 = 0;
    pub(super) const REPLY: u8 = 1;
    /// The length of the app's name in one byte, the name, the task.
    pub(super) const TASK: u8 = 2;
    /// All tasks were left, at a time in Unix ms.
    pub(super) const LEFT: u8 = 3;
    /// A purge: the app as above, 1 for a soft one, the selector.
    pub(super) const PURGE: u8 = 4;
    /// An instance of a process has ended: its key.
    pub(super) const PROCESS: u8 = 5;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct UpgradeLink {
    link: Rc<Link>,
    remote: Rc<Remote>,
    facts: LinkFacts,
    gateway: RefCell<Weak<Gateway>>,
    /// Whether this is the new server, and the old one accepts no more connections.
    is_successor: Cell<bool>,
    /// When the old server left its tasks, in Unix ms.
    left_at_ms: Cell<Option<u64>>,
    is_ended: Cell<bool>,
}

impl UpgradeLink {
    /// The end of a link. `facts` are those of the old server.
    ///
    /// # Errors
    /// The system has no room for it.
    pub(crate) fn open(end: OwnedFd, facts: LinkFacts) -> io::Result<Rc<Self>> {
        let link = Link::new(end)?;
        let way = link.clone();
        let remote = Remote::new(move |frame| way.send(framed(kind::CALL, &[&frame])));
        let this = Rc::new(Self {
            link,
            remote: Rc::new(remote),
            facts,
            gateway: RefCell::default(),
            is_successor: Cell::default(),
            left_at_ms: Cell::default(),
            is_ended: Cell::default(),
        });
        spawn(this.clone().receive());
        Ok(this)
    }

    /// What arrives is for this gateway.
    pub(crate) fn join(self: &Rc<Self>, gateway: &Rc<Gateway>) {
        self.gateway.replace(Rc::downgrade(gateway));
        gateway.links.borrow_mut().push(self.clone());
    }

    /// The store of the other server.
    pub(crate) fn remote(&self) -> &Rc<Remote> {
        &self.remote
    }

    /// The same for a generation that is opened.
    pub(crate) fn elsewhere(&self) -> Elsewhere<'_> {
        let LinkFacts { store, namespaces, .. } = &self.facts;
        Elsewhere { folder: store.as_deref(), namespaces, remote: &self.remote }
    }

    /// As the old server, which accepts no more connections: the new one has all tasks.
    pub(crate) fn leave_tasks(self: &Rc<Self>, gateway: &Gateway) {
        let left_at_ms = Wall::now().unix_us / 1000;
        gateway.generation().tasks().for_each(|tasks| tasks.leave_to(self.clone(), left_at_ms));
        self.link.send(framed(kind::LEFT, &[&left_at_ms.to_le_bytes()]));
    }

    /// As the old server, which accepts no more connections: its processes end, and the new one starts each that has.
    pub(crate) fn leave_processes(self: &Rc<Self>, gateway: &Gateway) {
        gateway.processes.leave_to(self.clone());
    }

    /// As the new server: the old one accepts no more connections.
    pub(crate) fn succeed(&self) {
        self.is_successor.set(true);
        self.begin_tasks();
    }

    /// Begins what the old server has left, and recovers what it has not finished.
    fn begin_tasks(&self) {
        let Some(gateway) = self.gateway.borrow().upgrade() else { return };
        if !self.is_successor.get() {
            return;
        }
        let (left_at_ms, is_ended) = (self.left_at_ms.get(), self.is_ended.get());
        if left_at_ms.is_none() && !is_ended {
            return;
        }
        for tasks in gateway.generation().tasks() {
            tasks.begin(left_at_ms.unwrap_or(0));
            if is_ended {
                tasks.recover();
            }
        }
    }

    async fn receive(self: Rc<Self>) {
        while let Some(frame) = self.link.receive().await {
            let Some((kind, content)) = frame.split_first() else { continue };
            match *kind {
                kind::CALL => spawn(self.clone().carry_out(content.to_vec())),
                kind::REPLY => self.remote.receive(content),
                kind::TASK => self.inherit(content),
                kind::PURGE => self.purge(content),
                kind::PROCESS => self.begin_processes(Some(&String::from_utf8_lossy(content))),
                kind::LEFT => {
                    let at_ms = content.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                    self.left_at_ms.set(Some(at_ms.unwrap_or(0)));
                    self.begin_tasks();
                }
                _ => {}
            }
        }
        self.is_ended.set(true);
        self.close();
        self.begin_tasks();
        self.begin_processes(None);
        if let Some(gateway) = self.gateway.borrow().upgrade() {
            leave(&gateway, &self);
        }
    }

    /// As the new server: what the old one runs begins when it has ended there.
    pub(crate) fn hold_processes(&self, gateway: &Gateway) {
        if !self.is_ended.get() {
            gateway.processes.hold(&self.facts.processes);
        }
    }

    /// Begins one that the old server has ended, or all.
    fn begin_processes(&self, key: Option<&str>) {
        if let Some(gateway) = self.gateway.borrow().upgrade() {
            gateway.processes.release(key);
        }
    }

    async fn carry_out(self: Rc<Self>, call: Vec<u8>) {
        let gateway = self.gateway.borrow().upgrade();
        let entities = gateway.and_then(|gateway| gateway.generation().entities.clone());
        let Some(store) = entities.and_then(|entities| entities.store().cloned()) else { return };
        if let Some(reply) = store.serve(&call).await {
            self.link.send(framed(kind::REPLY, &[&reply]));
        }
    }

    /// Purges, and passes it on to others.
    fn purge(&self, content: &[u8]) {
        let Some(gateway) = self.gateway.borrow().upgrade() else { return };
        let Some((app, [is_soft, selector @ ..])) = of_app(content) else { return };
        let Some((selector, _)) = Selector::decoded(selector) else { return };
        let generation = gateway.generation();
        let mut all = generation.apps.iter();
        let found = all.find(|one| one.config.name.as_bytes() == app);
        if let Some(cache) = found.and_then(|app| app.page_cache.as_ref()) {
            cache.purge_from_outside(&selector, *is_soft == 1);
        }
        for link in gateway.links.borrow().iter().filter(|link| !is_same(link, self)) {
            link.send(framed(kind::PURGE, &[content]));
        }
    }

    fn inherit(&self, content: &[u8]) {
        let Some(gateway) = self.gateway.borrow().upgrade() else { return };
        let Some((app, task)) = of_app(content) else { return };
        let generation = gateway.generation();
        let mut all = generation.tasks();
        let found = all.find(|tasks| tasks.app().as_bytes() == app);
        if !found.is_some_and(|tasks| tasks.inherit(task)) {
            let app = String::from_utf8_lossy(app);
            let text =
                format!("a task of the old server is not started: {app} has no task workers");
            gateway.server.log(Level::Warn, &text);
        }
    }
}

impl ServerLink for UpgradeLink {
    fn is_needed(&self) -> bool {
        self.is_successor.get() && !self.is_ended.get()
    }

    fn is_quiet(&self) -> bool {
        self.is_ended.get() || (self.link.is_flushed() && !self.remote.is_waiting())
    }

    fn close(&self) {
        self.link.close();
        self.remote.close();
    }

    fn send(&self, frame: Vec<u8>) {
        self.link.send(frame);
    }
}

impl TaskSuccessor for UpgradeLink {
    fn take(&self, app: &str, task: Vec<u8>) {
        self.link.send(framed(kind::TASK, &[&named(app), &task]));
    }
}

impl ProcessSuccessor for UpgradeLink {
    fn begin(&self, key: &str) {
        self.link.send(framed(kind::PROCESS, &[key.as_bytes()]));
    }
}

/// Sends the purges of this generation's pages to the other servers of upgrades, if there are any.
pub(crate) fn share_purges(gateway: &Rc<Gateway>) {
    let Some(lead) = gateway.shards.own().filter(|_| !gateway.links.borrow().is_empty()) else {
        return;
    };
    for app in &gateway.generation().apps {
        let Some(cache) = &app.page_cache else { continue };
        let (lead, name) = (lead.clone(), named(&app.config.name));
        cache.set_outside(move |selector, is_soft| {
            let frame = framed(kind::PURGE, &[&name, &[u8::from(is_soft)], &selector.encoded()]);
            // On the lead, where the links are. The purge does not wait for it.
            drop(lead.run(async move |gateway: Rc<Gateway>| {
                gateway.links.borrow().iter().for_each(|link| link.send(frame.clone()));
            }));
        });
    }
}

/// The gateway has this link no more.
pub(crate) fn leave(gateway: &Gateway, link: &UpgradeLink) {
    gateway.links.borrow_mut().retain(|one| !is_same(one, link));
}

fn is_same(one: &Rc<dyn ServerLink>, link: &UpgradeLink) -> bool {
    std::ptr::addr_eq(Rc::as_ptr(one), link)
}

/// The name of an app behind its length. The configuration allows no longer names.
fn named(app: &str) -> Vec<u8> {
    let length = u8::try_from(app.len()).unwrap_or(u8::MAX);
    [&[length], &app.as_bytes()[..length.into()]].concat()
}

/// The name of an app, and what follows.
fn of_app(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = content.split_first()?;
    rest.split_at_checked((*length).into())
}

fn framed(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(1 + length);
    frame.push(kind);
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

#[cfg(test)]
mod tests;
