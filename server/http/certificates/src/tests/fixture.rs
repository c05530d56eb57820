//! [`Fixture`]: a worker with a directory of its own, and what it logs.

use super::authority::Authority;
use crate::attempt::attempt;
use crate::message::{LogLine, Message, Statuses};
use crate::name::Name;
use crate::storage::Storage;
use crate::worker::{Shared, Worker};
use outboard_config::{Acme, Authority as Configured, Challenge};
use outboard_reactor::{MailboxReceiver, mailbox};
use outboard_tls::Issued;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
pub(super) struct Fixture {
    pub(super) worker: Rc<Worker>,
    pub(super) directory: PathBuf,
    log: MailboxReceiver<LogLine>,
    _messages: MailboxReceiver<Message>,
}

/// A configuration of these names at these authorities.
pub(super) fn config(names: &[&str], authorities: &[&Authority]) -> Acme {
    Acme {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        email: None,
        authorities: authorities.iter().map(|one| Configured::Acme(one.url.clone())).collect(),
        storage: None,
        ca: None,
        external_account: None,
        challenges: vec![Challenge::Http01, Challenge::TlsAlpn01],
        dns_hook: None,
        ask: None,
        profile: None,
        max_orders: 300,
        max_orders_per_name: 5,
        shared: None,
    }
}

pub(super) fn directory(name: &str) -> PathBuf {
    let name = format!("outboard-certificates-{}-{name}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

impl Fixture {
    pub(super) fn new(name: &str, config: Acme) -> Self {
        Self::at(directory(name), config)
    }

    /// A process that starts in a directory that may be used already.
    pub(super) fn at(directory: PathBuf, config: Acme) -> Self {
        let ((log, lines), (messages, receiver)) = (mailbox(), mailbox());
        let (issued, statuses) = (Arc::<Issued>::default(), Arc::<Statuses>::default());
        let shared = Shared { issued, statuses, log, messages };
        let worker = Worker::new(config, Storage::open(&directory).unwrap(), shared);
        worker.load_names();
        Self { worker, directory, log: lines, _messages: receiver }
    }

    pub(super) fn name(&self, text: &str) -> Rc<Name> {
        self.worker.names.borrow()[text].clone()
    }

    pub(super) async fn attempt(&self, text: &str) -> Rc<Name> {
        let name = self.name(text);
        attempt(&self.worker, &name).await;
        name
    }

    /// The error of a name after an attempt.
    pub(super) async fn error(&self, text: &str) -> String {
        let name = self.attempt(text).await;
        let error = name.record.borrow().error.clone();
        error.expect("the attempt fails")
    }

    /// Ends the process, and returns what it has logged.
    pub(super) fn end(self) -> Vec<String> {
        std::fs::remove_dir_all(&self.directory).unwrap();
        self.log
            .close()
            .into_iter()
            .map(|line| format!("{:?}: {}", line.level, line.text))
            .collect()
    }
}
