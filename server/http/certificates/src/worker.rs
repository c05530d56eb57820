//! [`Worker`]: the thread that obtains certificates: which name is due, and what is under way.
//!
//! Created by the manager, on its thread. Invariants: at most [`ATTEMPTS`] names are under way, each once;
//! the certificates that are stored are used before the first message is processed; the thread looks at the
//! clock at least every [`LOOK_S`], because it may jump.

mod authorities;
mod missing;
mod shared;
mod status;
mod window;

use crate::approval::{Approvals, RecentNames};
use crate::authority::Account;
use crate::commons::Commons;
use crate::message::{LogLine, Message, Statuses};
use crate::name::Name;
use crate::plan::{Limits, Step, Time};
use crate::responder::Responder;
use crate::storage::Storage;
use outboard_config::Acme;
use outboard_log::Level;
use outboard_reactor::MailboxSender;
use outboard_tls::Issued;
use outboard_upstream::{Client as HttpClient, Settings};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) use authorities::{authorities, usable_s, usable_times};
pub(crate) use status::status;

/// See the module.
pub(crate) struct Worker {
    pub(crate) config: RefCell<Rc<Acme>>,
    pub(crate) http: RefCell<Rc<HttpClient>>,
    pub(crate) storage: Storage,
    pub(crate) issued: Arc<Issued>,
    pub(crate) statuses: Arc<Statuses>,
    pub(crate) log: MailboxSender<LogLine>,
    pub(crate) messages: MailboxSender<Message>,
    pub(crate) names: RefCell<BTreeMap<String, Rc<Name>>>,
    pub(crate) accounts: RefCell<BTreeMap<String, Rc<Account>>>,
    pub(crate) under_way: Cell<usize>,
    pub(crate) approvals: Approvals,
    /// Names without TLS that were logged.
    pub(crate) logged: RecentNames,
    pub(crate) commons: RefCell<Option<Rc<Commons>>>,
}

/// Seconds since 1970.
pub(crate) fn now_s() -> Time {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// What a worker shares with the rest of the server.
pub(crate) struct Shared {
    pub(crate) issued: Arc<Issued>,
    pub(crate) statuses: Arc<Statuses>,
    pub(crate) log: MailboxSender<LogLine>,
    pub(crate) messages: MailboxSender<Message>,
}

fn http_client(config: &Acme) -> Rc<HttpClient> {
    HttpClient::new(Settings {
        ca_file: config.ca.clone(),
        // An authority may close idle connections at any time.
        idle_timeout_ms: 2_000,
        ..Settings::default()
    })
}

impl Worker {
    pub(crate) fn new(config: Acme, storage: Storage, shared: Shared) -> Rc<Self> {
        let Shared { issued, statuses, log, messages } = shared;
        Rc::new(Self {
            http: RefCell::new(http_client(&config)),
            config: RefCell::new(Rc::new(config)),
            storage,
            issued,
            statuses,
            log,
            messages,
            names: RefCell::default(),
            accounts: RefCell::default(),
            under_way: Cell::new(0),
            approvals: Approvals::default(),
            logged: RecentNames::default(),
            commons: RefCell::default(),
        })
    }

    /// Uses another configuration.
    pub(crate) fn configure(&self, config: Acme) {
        self.http.replace(http_client(&config));
        self.accounts.borrow_mut().clear();
        self.config.replace(Rc::new(config));
        self.load_names();
    }

    pub(crate) fn config(&self) -> Rc<Acme> {
        self.config.borrow().clone()
    }

    pub(crate) fn http(&self) -> Rc<HttpClient> {
        self.http.borrow().clone()
    }

    pub(crate) fn limits(&self) -> Limits {
        let config = self.config.borrow();
        Limits {
            orders: config.max_orders as usize,
            orders_per_name: config.max_orders_per_name as usize,
        }
    }

    pub(crate) fn responder(&self, config: &Acme) -> Responder {
        let (issued, commons) = (self.issued.clone(), self.commons());
        Responder { issued, dns_hook: config.dns_hook.clone(), commons }
    }

    /// The account at an authority.
    pub(crate) fn account(&self, url: &str) -> Result<Rc<Account>, String> {
        if let Some(account) = self.accounts.borrow().get(url) {
            return Ok(account.clone());
        }
        let account = Rc::new(Account::load(url, &self.storage)?);
        self.accounts.borrow_mut().insert(url.to_owned(), account.clone());
        Ok(account)
    }

    /// The next step for a name.
    pub(crate) fn next_step(&self, name: &Name, now_s: Time) -> Step {
        let usable = usable_times(self, &self.config(), name);
        name.next_step(now_s, usable, self.limits())
    }

    /// Has handshakes use the certificate of a name.
    pub(crate) fn use_certificate(&self, name: &Name) {
        if let Some(credential) = name.credential() {
            self.issued.insert(&name.text, credential);
        }
    }

    pub(crate) fn info(&self, text: &str) {
        self.write(Level::Info, text);
    }

    pub(crate) fn warn(&self, text: &str) {
        self.write(Level::Warn, text);
    }

    pub(crate) fn error(&self, text: &str) {
        self.write(Level::Error, text);
    }

    fn write(&self, level: Level, text: &str) {
        // Without a receiver the server has ended.
        let _ = self.log.send(LogLine { level, text: text.to_owned() });
    }

    /// Reads what is stored about the configured names, and forgets all others.
    pub(crate) fn load_names(&self) {
        let config = self.config();
        let mut names = self.names.borrow_mut();
        let is_on_demand = config.ask.is_some();
        self.issued.set_on_demand(is_on_demand);
        names.retain(|text, _| config.names.contains(text) || is_on_demand);
        let stored = if is_on_demand { self.storage.names() } else { Vec::new() };
        for text in config.names.iter().chain(&stored) {
            if names.contains_key(text) {
                continue;
            }
            let (name, fault) = Name::load(text, &self.storage);
            if let Some(fault) = fault {
                self.error(&fault);
            }
            self.use_certificate(&name);
            names.insert(text.clone(), Rc::new(name));
        }
        self.issued.retain(|text| names.contains_key(text));
        self.issued.set_default_name(config.names.first().map(String::as_str));
    }
}
