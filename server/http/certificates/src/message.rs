//! What the manager and the worker send each other, and the state that other threads read.

use outboard_admin_api::certificates::{Certificate, Certificates};
use outboard_config::Acme;
use outboard_log::Level;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A line for the log of the server.
#[derive(Debug)]
pub struct LogLine {
    /// Its severity.
    pub level: Level,
    /// Its text.
    pub text: String,
}

/// What the worker is sent.
#[derive(Debug)]
pub(crate) enum Message {
    /// A reload has another configuration.
    Configure(Box<Acme>),
    /// Clients have requested names without a certificate.
    Missing,
    /// A name may be due.
    Look,
    /// The server ends.
    Stop,
}

/// Missing names that are reported at a time: clients choose them.
const MAX_MISSING: usize = 64;

/// What other threads read of the worker, and what they report to it.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    certificates: Mutex<BTreeMap<String, Certificate>>,
    missing: Mutex<BTreeSet<String>>,
}

impl Statuses {
    /// All of them.
    pub(crate) fn all(&self) -> Certificates {
        Certificates { certificates: lock(&self.certificates).values().cloned().collect() }
    }

    /// Replaces all of them.
    pub(crate) fn set(&self, certificates: BTreeMap<String, Certificate>) {
        *lock(&self.certificates) = certificates;
    }

    /// Whether the worker has to be woken for it.
    pub(crate) fn add_missing(&self, name: &str) -> bool {
        let mut missing = lock(&self.missing);
        missing.len() < MAX_MISSING && missing.insert(name.to_owned()) && missing.len() == 1
    }

    /// The names that were reported since the last call.
    pub(crate) fn take_missing(&self) -> BTreeSet<String> {
        std::mem::take(&mut *lock(&self.missing))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
