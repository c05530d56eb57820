//! [`ClientGroup`]: what the clients of several loops share, so that the limits hold for all together.
//!
//! Made by the owner of the loops, each of which has a [`crate::Client`] of the group with connections of
//! its own. Invariants: an origin has the same [`OriginLimits`] in every client; those that no client uses
//! are forgotten.

use crate::doorbell::Doorbell;
use crate::lookups::Lookups;
use crate::origin_limits::OriginLimits;
use crate::settings::Settings;
use crate::sockets::{Member, Sockets};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// See the module.
#[derive(Debug)]
pub struct ClientGroup {
    settings: Settings,
    sockets: Arc<Sockets>,
    lookups: Arc<Lookups>,
    origins: Mutex<HashMap<Box<str>, Weak<OriginLimits>>>,
}

impl ClientGroup {
    /// A group without clients.
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            sockets: Sockets::new(settings.connections),
            settings,
            lookups: Arc::default(),
            origins: Mutex::default(),
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn lookups(&self) -> &Arc<Lookups> {
        &self.lookups
    }

    /// Another client takes part in the limit of connections.
    pub(crate) fn join(&self, doorbell: &Arc<Doorbell>) -> Rc<Member> {
        self.sockets.join(doorbell)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Weak<OriginLimits>>> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limits of an origin.
    pub(crate) fn origin(&self, origin: &str) -> Arc<OriginLimits> {
        let mut origins = self.lock();
        if let Some(known) = origins.get(origin).and_then(Weak::upgrade) {
            return known;
        }
        let new = OriginLimits::new(origin, &self.settings);
        origins.insert(origin.into(), Arc::downgrade(&new));
        new
    }

    /// Forgets the origins that no client uses.
    pub(crate) fn forget_unused(&self) {
        self.lock().retain(|_, limits| limits.strong_count() > 0);
    }

    /// Whether no origin is known.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

#[cfg(test)]
mod tests;
