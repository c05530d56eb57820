//! Processes of apps: programs that run all the time next to PHP, such as `queue:work`.
//!
//! One set on the lead, for all generations. Each [`Instance`] has a keeper after the other ([`run`]). Invariants: a reload
//! that does not change what a process is started with leaves it alone; after an upgrade an instance begins when the old
//! server has ended its own; as many run as are configured, but for those that end too early.

mod instance;
mod output;
mod run;
mod settings;
#[cfg(test)]
mod tests;

use instance::{Instance, Place};
use outboard_admin_api::status as api;
use outboard_log::ErrorLog;
use outboard_reactor::spawn;
pub use settings::ProcessSettings;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

/// See the module.
#[derive(Debug, Default)]
pub struct Processes {
    instances: RefCell<Vec<Rc<Instance>>>,
    /// Those that the server has, which this one takes over from, by their keys.
    held: RefCell<HashSet<String>>,
    /// Takes over after an upgrade.
    successor: RefCell<Option<Rc<dyn ProcessSuccessor>>>,
}

/// The new server of an upgrade.
pub trait ProcessSuccessor: fmt::Debug {
    /// The instance with this key has ended.
    fn begin(&self, key: &str);
}

/// An instance that a configuration has.
#[derive(Debug)]
pub struct Wanted {
    /// Its app.
    pub app: String,
    /// The process.
    pub name: String,
    /// Its number among the instances of the process.
    pub number: u32,
    /// What it is run with.
    pub settings: ProcessSettings,
    /// The log of the app.
    pub log: Rc<ErrorLog>,
}

impl Processes {
    /// Starts, changes and ends instances, so that there are those of a configuration.
    pub fn apply(self: &Rc<Self>, wanted: Vec<Wanted>) {
        let present = self.instances.borrow().clone();
        let mut unwanted = present.clone();
        for Wanted { app, name, number, settings, log } in wanted {
            let place = Place { app, name, number };
            unwanted.retain(|instance| instance.place != place);
            match present.iter().find(|instance| instance.place == place) {
                Some(instance) => instance.configure(settings, log),
                None => self.start(place, settings, log),
            }
        }
        unwanted.iter().for_each(|instance| instance.retire());
    }

    fn start(self: &Rc<Self>, place: Place, settings: ProcessSettings, log: Rc<ErrorLog>) {
        let is_held = self.held.borrow().contains(&place.key());
        let is_other = |one: &Rc<Instance>| one.place != place;
        debug_assert!(self.instances.borrow().iter().all(is_other), "an instance runs twice");
        let instance = Instance::new(place, settings, log, is_held);
        self.instances.borrow_mut().push(instance.clone());
        let processes = self.clone();
        spawn(async move {
            run::follow(instance.clone()).await;
            processes.instances.borrow_mut().retain(|one| !Rc::ptr_eq(one, &instance));
            if let Some(successor) = &*processes.successor.borrow() {
                successor.begin(&instance.place.key());
            }
        });
    }

    /// Has the programs of an app end and begin again, or one of them, or all. Returns how many.
    pub fn restart(&self, app: Option<&str>, name: Option<&str>) -> usize {
        let instances = self.instances.borrow();
        let meant = instances.iter().filter(|instance| {
            let place = &instance.place;
            app.is_none_or(|app| app == place.app) && name.is_none_or(|name| name == place.name)
        });
        meant.inspect(|instance| instance.renew()).count()
    }

    /// Has all end for good.
    pub fn stop(&self) {
        self.instances.borrow().iter().for_each(|instance| instance.retire());
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.instances.borrow().is_empty()
    }

    /// The longest time until all have ended after [`Self::stop`].
    pub fn stop_ms(&self) -> u64 {
        let instances = self.instances.borrow();
        let times = instances.iter().map(|one| one.settings().config.stop_timeout_ms);
        times.max().map_or(0, |longest_ms| longest_ms + run::END_MS)
    }

    /// The present status, in the order of the configuration.
    pub fn status(&self) -> Vec<api::Process> {
        let mut all: Vec<_> = self.instances.borrow().iter().map(|one| one.status()).collect();
        let key = |one: &api::Process| (one.app.clone(), one.name.clone(), one.instance);
        all.sort_by_cached_key(key);
        all
    }

    /// The keys of all, for the server that takes over.
    pub fn keys(&self) -> Vec<String> {
        self.instances.borrow().iter().map(|instance| instance.place.key()).collect()
    }

    /// As the new server of an upgrade: these begin when the old one has ended its own.
    pub fn hold(&self, keys: &[String]) {
        self.held.borrow_mut().extend(keys.iter().cloned());
    }

    /// The old server has ended this one; `None`: all of them.
    pub fn release(&self, key: Option<&str>) {
        self.held.borrow_mut().retain(|held| key.is_some_and(|key| key != held));
        let instances = self.instances.borrow();
        let meant = |one: &&Rc<Instance>| key.is_none_or(|key| key == one.place.key());
        instances.iter().filter(meant).for_each(|instance| instance.release());
    }

    /// As the old server: ends all, and reports each that has ended.
    pub fn leave_to(&self, successor: Rc<dyn ProcessSuccessor>) {
        self.successor.replace(Some(successor));
        self.stop();
    }
}
