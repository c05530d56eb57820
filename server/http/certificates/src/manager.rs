//! [`Manager`]: the thread that obtains certificates, as the gateway sees it.
//!
//! Started with the first configuration that needs it, and configured by each reload. Invariant: the
//! certificates that are stored are in use when [`Manager::start`] returns.

use crate::message::{LogLine, Message, Statuses};
use crate::name::Name;
use crate::schedule::work;
use crate::storage::Storage;
use crate::worker::Shared;
use outboard_admin_api::certificates::Certificates;
use outboard_config::Acme;
use outboard_log::Level;
use outboard_reactor::{MailboxSender, mailbox, run, unbound};
use outboard_tls::Issued;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// See the module.
#[derive(Debug)]
pub struct Manager {
    messages: MailboxSender<Message>,
    statuses: Arc<Statuses>,
}

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
        self.statuses.all()
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
