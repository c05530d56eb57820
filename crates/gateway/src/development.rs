//! Development: a change of a file is in the next answer, and in the browser by itself.
//!
//! Made by the server for a configuration that says `environment = "development"`; asked by the
//! turn before each request. Invariants: a request that comes after a file was written finds
//! PHP with that file ([`Development::settle`] looks for changes first and waits for the reload that
//! they call for, and for no later one: files that change all the time hold nobody for ever);
//! code that does not start is told to every visitor until it does, instead of being hidden behind
//! the last that did.
//!
//! ```text
//! tree ─▶ look ─▶ changed ─▶ attend: reload in worker mode ─▶ settled: requests go on
//!                                 └─▶ news: browsers reload, and wait with the rest
//! ```

pub(crate) mod failure;
pub(crate) mod live;
pub(crate) mod tree;

use crate::gateway::Gateway;
use outboard_config as config;
use outboard_log::{Level, Wall};
use outboard_reactor::{
    Event, TaskId, current_task, now_ms, sleep, spawn, wake, with_deadline, yield_now,
};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use tree::{Change, Tree};

/// After the last of a series of changes, such as those of a checkout.
const QUIET_MS: u64 = 15;
/// A series that does not end is acted on after so many of these.
const MOST_QUIETS: u32 = 10;
/// How often files are looked at when the kernel does not tell.
const POLL_MS: u64 = 150;

/// What is special about a server in development.
#[derive(Debug)]
pub(crate) struct Development {
    config: config::Development,
    tree: RefCell<Tree>,
    /// Changes that nobody has acted on.
    changes: RefCell<Vec<Change>>,
    /// Set with them.
    changed: Event,
    /// Looks that have found some that call for a reload, and how many of them were acted on.
    found: Cell<u64>,
    settled: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
    /// Why the present code does not start.
    failure: RefCell<Option<String>>,
    pub(crate) news: live::News,
    /// Another has taken its place.
    replaced: Cell<bool>,
}

/// Makes the gateway's part of development what the present configuration says.
pub(crate) fn follow(gateway: &Rc<Gateway>) {
    let generation = gateway.generation();
    let wanted = generation.config.development.as_ref();
    let present = gateway.development();
    if present.as_ref().map(|present| &present.config) == wanted {
        return;
    }
    let next = wanted.map(|wanted| Development::begin(gateway, wanted, present.as_deref()));
    if let Some(present) = present {
        present.replaced.set(true);
        present.changed.set();
    }
    gateway.set_development(next);
}

impl Development {
    fn begin(
        gateway: &Rc<Gateway>,
        config: &config::Development,
        predecessor: Option<&Self>,
    ) -> Rc<Self> {
        let (tree, trouble) = Tree::watch(config, &gateway.generation().config.file);
        if let Some(trouble) = trouble {
            gateway.note(Level::Warn, &trouble);
        }
        let development = Rc::new(Self {
            config: config.clone(),
            tree: RefCell::new(tree),
            changes: RefCell::default(),
            changed: Event::default(),
            found: Cell::new(0),
            settled: Cell::new(0),
            waiting: RefCell::default(),
            failure: RefCell::default(),
            news: match predecessor {
                Some(predecessor) => predecessor.news.clone(),
                None => live::News::after_number(Wall::now().unix_s()),
            },
            replaced: Cell::new(false),
        });
        spawn(attend(gateway.clone(), development.clone()));
        development
    }

    /// Looks for changes and waits until what they call for is done.
    pub(crate) async fn settle(&self, gateway: &Gateway) {
        self.look(gateway);
        let found = self.found.get();
        poll_fn(|_| {
            if self.settled.get() >= found {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(current_task());
            Poll::Pending
        })
        .await;
    }

    /// Why the present code does not start.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.config.live_reload
    }

    fn look(&self, gateway: &Gateway) {
        let found = self.tree.borrow_mut().look();
        if found.is_empty() {
            return;
        }
        if calls_for_reload(gateway, self, &found) {
            self.found.set(self.found.get() + 1);
        }
        let mut changes = self.changes.borrow_mut();
        let new = found.into_iter().filter(|change| !changes.contains(change));
        let new: Vec<Change> = new.collect();
        changes.extend(new);
        self.changed.set();
    }

    /// Waits for changes.
    async fn listen(&self, gateway: &Gateway) {
        loop {
            self.look(gateway);
            if self.replaced.get() || !self.changes.borrow().is_empty() {
                return;
            }
            // What is passed over can come without end.
            yield_now().await;
            let signal = self.tree.borrow().signal();
            match signal {
                Some(signal) => {
                    poll_fn(|_| match (self.changed.poll(), signal.poll_readable()) {
                        (Poll::Pending, Poll::Pending) => Poll::Pending,
                        _ => Poll::Ready(()),
                    })
                    .await;
                }
                // Late is fine: a request looks for itself.
                None => drop(with_deadline(now_ms() + POLL_MS, self.changed.wait()).await),
            }
        }
    }

    /// Lets those go on that waited for so many looks.
    fn settle_until(&self, found: u64) {
        self.settled.set(found);
        self.waiting.take().into_iter().for_each(wake);
    }
}

/// Acts on changes until it is replaced.
async fn attend(gateway: Rc<Gateway>, development: Rc<Development>) {
    loop {
        development.listen(&gateway).await;
        if development.replaced.get() {
            return development.settle_until(u64::MAX);
        }
        let mut all = Vec::new();
        for _ in 0..MOST_QUIETS {
            all.append(&mut development.changes.borrow_mut());
            sleep(QUIET_MS).await;
            development.look(&gateway);
            if development.changes.borrow().is_empty() {
                break;
            }
        }
        all.append(&mut development.changes.borrow_mut());
        let found = development.found.get();
        // Browsers leave their pages and connect while PHP starts; what they ask for waits for it.
        development.news.tell(&all);
        if calls_for_reload(&gateway, &development, &all) {
            let outcome = gateway.wishes.reload_and_hear().await;
            development.failure.replace(outcome.err());
        }
        // What has changed meanwhile is next; who came after that waits for it.
        development.settle_until(found);
    }
}

/// Scripts that stay have to be started anew. In classic mode opcache sees the change by itself,
/// but a configuration is always read again; and what failed to start may start now.
fn calls_for_reload(gateway: &Gateway, development: &Development, changes: &[Change]) -> bool {
    let generation = gateway.generation();
    let mut apps = generation.apps.iter().map(|app| &app.config);
    let has_resident = apps.any(|app| app.mode != config::Mode::Classic || app.tasks.is_some());
    let has_failed = development.failure.borrow().is_some();
    changes.iter().any(|change| match change {
        Change::Configuration => true,
        Change::Code => has_resident || has_failed,
        Change::Page | Change::Style => false,
    })
}
