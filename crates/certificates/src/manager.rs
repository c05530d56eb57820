//! [`Manager`]: the thread that obtains certificates, as the gateway sees it.
//!
//! Started with the first configuration that needs it, and configured by each reload. Invariant: the
//! certificates that are stored are in use when [`Manager::start`] returns.

use crate::name::Name;
use crate::storage::Storage;
use crate::worker::{Shared, work};
use outboard_admin_api::certificates::{Certificate, Certificates};
use outboard_config::Acme;
use outboard_log::Level;
use outboard_reactor::{MailboxSender, mailbox, run, unbound};
use outboard_tls::Issued;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

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

/// See the module.
#[derive(Debug)]
pub struct Manager {
    messages: MailboxSender<Message>,
    statuses: Arc<Statuses>,
}

/// Missing names that are reported at a time: clients choose them.
const MAX_MISSING: usize = 64;

impl Manager {
    /// Starts the thread. Its certificates are in `issued`; `log` receives its log lines.
    ///
    /// # Errors
    /// The directory or file that cannot be used.
    pub fn start(
        config: Acme,
        directory: &Path,
        issued: &Arc<Issued>,
        log: MailboxSender<LogLine>,
    ) -> Result<Self, String> {
        let storage = Storage::open(directory)?;
        for text in &config.names {
            if let (Name { .. }, Some(fault)) = use_stored(text, &storage, issued) {
                let _ = log.send(LogLine { level: Level::Error, text: fault });
            }
        }
        let (messages, receiver) = mailbox();
        let statuses = Arc::new(Statuses::default());
        let (reported, sender) = (statuses.clone(), messages.clone());
        issued.report_missing(move |name| {
            if reported.add_missing(name) {
                let _ = sender.send(Message::Missing);
            }
        });
        let shared = Shared {
            issued: issued.clone(),
            statuses: statuses.clone(),
            log,
            messages: messages.clone(),
        };
        let body = move || {
            if let Err(error) = run(work(config, storage, shared, receiver)) {
                eprintln!("outboard: the thread of certificates has failed: {error}");
            }
        };
        let thread = thread::Builder::new().name("certificates".to_owned());
        unbound(|| thread.spawn(body))
            .map_err(|error| format!("no thread for certificates: {error}"))?;
        Ok(Self { messages, statuses })
    }

    /// Uses another configuration from now on. The directory remains.
    pub fn configure(&self, config: Acme) {
        // A thread that has failed has reported it.
        let _ = self.messages.send(Message::Configure(Box::new(config)));
    }

    /// The certificates and their state.
    pub fn status(&self) -> Certificates {
        Certificates { certificates: lock(&self.statuses.certificates).values().cloned().collect() }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
    }
}

fn use_stored(text: &str, storage: &Storage, issued: &Issued) -> (Name, Option<String>) {
    let (name, fault) = Name::load(text, storage);
    if let Some(credential) = name.credential() {
        issued.insert(text, credential);
    }
    (name, fault)
}

/// What other threads read of the worker, and what they report to it.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    certificates: Mutex<BTreeMap<String, Certificate>>,
    missing: Mutex<BTreeSet<String>>,
}

impl Statuses {
    pub(crate) fn set(&self, certificates: BTreeMap<String, Certificate>) {
        *lock(&self.certificates) = certificates;
    }

    /// Whether the worker has to be woken for it.
    fn add_missing(&self, name: &str) -> bool {
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
