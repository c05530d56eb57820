//! [`Development`]: changes of files, and the reloads that requests wait for.
//!
//! Created by the gateway's server, which acts on the changes; its dispatch calls
//! [`Development::settle`] before each request. Invariants: a request
//! that arrives after a file was written is handled with that file, and waits for the reload that
//! the change requires, but for no later one, so that files that change all the time block requests
//! only briefly; if the code does not start, every response reports that until it does.
//!
//! ```text
//! tree ─▶ check ─▶ changed ─▶ server: reload in worker mode ─▶ settled: requests continue
//!                                  └─▶ feed: browsers reload, and wait with the others
//! ```

use crate::feed::ChangeFeed;
use crate::tree::{Change, Tree};
use outboard_config as config;
use outboard_log::Wall;
use outboard_reactor::{
    Event, TaskId, current_task, now_ms, sleep, wake, with_deadline, yield_now,
};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::path::Path;
use std::rc::Rc;
use std::task::Poll;

/// A series of changes ends with such a pause.
const PAUSE_MS: u64 = 15;
/// A series that does not end is acted on after so many pauses.
const MAX_PAUSES: u32 = 10;
/// The interval of checks if the kernel does not report changes.
const POLL_MS: u64 = 150;

/// See the module.
#[derive(Debug)]
pub struct Development {
    config: config::Development,
    tree: RefCell<Tree>,
    /// Changes that were not acted on yet.
    changes: RefCell<Vec<Change>>,
    /// Set with them.
    changed: Event,
    /// How often changes that require a reload were found, and how many of those were acted on.
    found: Cell<u64>,
    settled: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
    /// Why the code does not start.
    failure: RefCell<Option<String>>,
    feed: ChangeFeed,
    has_resident_code: Cell<bool>,
    /// A successor has taken over.
    replaced: Cell<bool>,
}

impl Development {
    /// Watches the files of a configuration. A predecessor passes on its feed.
    pub fn watch(
        config: &config::Development,
        configuration_file: &Path,
        predecessor: Option<&Self>,
    ) -> (Rc<Self>, Option<String>) {
        let (tree, warning) = Tree::watch(config, configuration_file);
        let development = Rc::new(Self {
            config: config.clone(),
            tree: RefCell::new(tree),
            changes: RefCell::default(),
            changed: Event::default(),
            found: Cell::new(0),
            settled: Cell::new(0),
            waiting: RefCell::default(),
            failure: RefCell::default(),
            feed: match predecessor {
                Some(predecessor) => predecessor.feed.clone(),
                None => ChangeFeed::after_number(Wall::now().unix_s()),
            },
            has_resident_code: Cell::new(false),
            replaced: Cell::new(false),
        });
        (development, warning)
    }

    /// The configuration that it was created from.
    pub fn config(&self) -> &config::Development {
        &self.config
    }

    /// Sets whether workers keep code in memory, so that they restart when it changes.
    pub fn set_resident_code(&self, has_resident_code: bool) {
        self.has_resident_code.set(has_resident_code);
    }

    /// A successor takes over.
    pub fn replace(&self) {
        self.replaced.set(true);
        self.changed.set();
    }

    /// Whether a successor has taken over.
    pub fn is_replaced(&self) -> bool {
        self.replaced.get()
    }

    /// Sets why the code does not start, or that it does.
    pub fn set_failure(&self, failure: Option<String>) {
        self.failure.replace(failure);
    }

    /// How often changes were found that require a reload.
    pub fn found(&self) -> u64 {
        self.found.get()
    }

    /// Whether the changes require a reload. In classic mode opcache notices changed code
    /// automatically; a configuration is always reloaded; and code that failed to start may start
    /// now.
    pub fn requires_reload(&self, changes: &[Change]) -> bool {
        let has_failed = self.failure.borrow().is_some();
        changes.iter().any(|change| match change {
            Change::Configuration => true,
            Change::Code => self.has_resident_code.get() || has_failed,
            Change::Page | Change::Style => false,
        })
    }

    /// Waits for changes, and for the end of a series such as a checkout. Empty if it was replaced.
    pub async fn next_changes(&self) -> Vec<Change> {
        self.wait_for_change().await;
        let mut all = Vec::new();
        if self.is_replaced() {
            return all;
        }
        for _ in 0..MAX_PAUSES {
            all.append(&mut self.changes.borrow_mut());
            sleep(PAUSE_MS).await;
            self.check();
            if self.changes.borrow().is_empty() {
                break;
            }
        }
        all.append(&mut self.changes.borrow_mut());
        all
    }

    /// Checks for changes and waits until the reload that they require is complete.
    pub async fn settle(&self) {
        self.check();
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

    /// Why the code does not start.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// The changes for browsers with live reload.
    pub fn feed(&self) -> &ChangeFeed {
        &self.feed
    }

    /// Whether browsers reload automatically.
    pub fn is_live(&self) -> bool {
        self.config.live_reload
    }

    fn check(&self) {
        let found = self.tree.borrow_mut().changes();
        if found.is_empty() {
            return;
        }
        if self.requires_reload(&found) {
            self.found.set(self.found.get() + 1);
        }
        let mut changes = self.changes.borrow_mut();
        let new = found.into_iter().filter(|change| !changes.contains(change));
        let new: Vec<Change> = new.collect();
        changes.extend(new);
        self.changed.set();
    }

    async fn wait_for_change(&self) {
        loop {
            self.check();
            if self.replaced.get() || !self.changes.borrow().is_empty() {
                return;
            }
            // Ignored files can change all the time.
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
                // A delay matters little: each request checks for changes as well.
                None => drop(with_deadline(now_ms() + POLL_MS, self.changed.wait()).await),
            }
        }
    }

    /// Wakes requests that wait for the changes up to this one.
    pub fn settle_until(&self, found: u64) {
        self.settled.set(found);
        self.waiting.take().into_iter().for_each(wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_project::Project;
    use outboard_reactor::{spawn, testing::in_loop};

    fn watch(project: &Project) -> Rc<Development> {
        let config = config::Development { polling: true, ..project.config() };
        let (development, warning) = Development::watch(&config, &project.configuration(), None);
        assert_eq!(warning, None);
        development
    }

    #[test]
    fn resident_and_failed_code_requires_a_reload() {
        in_loop(async {
            let development = watch(&Project::new());
            assert!(development.requires_reload(&[Change::Style, Change::Configuration]));
            assert!(!development.requires_reload(&[Change::Code, Change::Page]));
            development.set_failure(Some("an error".to_owned()));
            assert!(development.requires_reload(&[Change::Code]));
            development.set_failure(None);
            development.set_resident_code(true);
            assert!(development.requires_reload(&[Change::Code]));
            assert!(!development.requires_reload(&[Change::Page]));
        });
    }

    #[test]
    fn a_request_waits_for_the_reload_of_its_change_only() {
        in_loop(async {
            let project = Project::new();
            let development = watch(&project);
            development.set_resident_code(true);
            development.settle().await;
            project.write("src/a.php", "<?php 1;");
            let has_settled = Rc::new(Cell::new(false));
            let (waiting, settled) = (development.clone(), has_settled.clone());
            spawn(async move {
                waiting.settle().await;
                settled.set(true);
            });
            assert_eq!(development.next_changes().await, [Change::Code]);
            assert!(!has_settled.get());
            development.settle_until(development.found());
            yield_now().await;
            yield_now().await;
            assert!(has_settled.get());
        });
    }

    #[test]
    fn a_replaced_one_has_no_more_changes() {
        in_loop(async {
            let development = watch(&Project::new());
            development.replace();
            assert!(development.is_replaced());
            assert_eq!(development.next_changes().await, []);
        });
    }

    #[test]
    fn a_series_of_changes_is_one_with_each_kind_once() {
        in_loop(async {
            let project = Project::new();
            let development = watch(&project);
            for number in 0..20 {
                project.write(&format!("src/{number}.php"), "<?php");
                project.write("public/style.css", &number.to_string());
            }
            let mut changes = development.next_changes().await;
            changes.sort_by_key(|change| *change == Change::Style);
            assert_eq!(changes, [Change::Code, Change::Style]);
        });
    }

    #[test]
    fn requests_do_not_wait_for_changes_without_a_reload() {
        in_loop(async {
            let project = Project::new();
            let development = watch(&project);
            development.set_resident_code(true);
            project.write("public/style.css", "p {}");
            development.settle().await;
            assert_eq!(development.found(), 0);
            assert_eq!(development.next_changes().await, [Change::Style]);
        });
    }

    #[test]
    fn a_successor_goes_on_with_the_feed() {
        in_loop(async {
            let project = Project::new();
            let before = watch(&project);
            before.feed().publish(&[Change::Page]);
            let config = config::Development { polling: true, ..project.config() };
            let file = project.configuration();
            let (after, _) = Development::watch(&config, &file, Some(&before));
            assert_eq!(after.feed().number(), before.feed().number());
            after.feed().publish(&[Change::Page]);
            assert_eq!(after.feed().number(), before.feed().number(), "browsers wait at either");
            assert!(after.is_live() && after.failure().is_none());
        });
    }
}
