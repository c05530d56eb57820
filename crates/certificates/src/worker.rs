//! [`Worker`]: the thread that obtains certificates: which name is due, and what is under way.
//!
//! Created by the manager, on its thread. Invariants: at most [`ATTEMPTS`] names are under way, each once;
//! the certificates that are stored are used before the first message is processed; the thread looks at the
//! clock at least every [`LOOK_S`], because it may jump.

use crate::approval::{self, Approvals};
use crate::attempt::{attempt, usable_times};
use crate::authority::Account;
use crate::keys;
use crate::manager::{LogLine, Message, Statuses};
use crate::name::Name;
use crate::plan::{Limits, Step, Time, Window};
use crate::responder::Responder;
use crate::storage::Storage;
use outboard_admin_api::certificates::Certificate;
use outboard_config::Acme;
use outboard_log::Level;
use outboard_reactor::{MailboxReceiver, MailboxSender, now_ms, spawn, with_deadline};
use outboard_tls::Issued;
use outboard_upstream::{Client as HttpClient, Settings};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

/// Names that are under way at a time.
const ATTEMPTS: usize = 8;
/// Names, with those that clients have requested.
const MAX_NAMES: usize = 20_000;
/// The longest time between two looks at the clock.
const LOOK_S: u64 = 60;

/// See the module.
pub(crate) struct Worker {
    config: RefCell<Rc<Acme>>,
    http: RefCell<Rc<HttpClient>>,
    pub(crate) storage: Storage,
    issued: Arc<Issued>,
    statuses: Arc<Statuses>,
    log: MailboxSender<LogLine>,
    messages: MailboxSender<Message>,
    names: RefCell<BTreeMap<String, Rc<Name>>>,
    accounts: RefCell<BTreeMap<String, Rc<Account>>>,
    under_way: Cell<usize>,
    approvals: Approvals,
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

/// Obtains certificates until the manager is dropped.
pub(crate) async fn work(
    config: Acme,
    storage: Storage,
    shared: Shared,
    receiver: MailboxReceiver<Message>,
) {
    let Shared { issued, statuses, log, messages } = shared;
    let worker = Rc::new(Worker {
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
    });
    worker.load_names();
    loop {
        let next_s = worker.start_due();
        let pause_s = next_s.saturating_sub(now_s()).clamp(1, LOOK_S);
        match with_deadline(now_ms() + pause_s * 1000, receiver.next()).await {
            Ok(Message::Stop) => return,
            Ok(Message::Configure(config)) => worker.configure(*config),
            Ok(Message::Missing) => worker.report_missing(),
            // An attempt has ended, or a name may be due.
            Ok(Message::Look) | Err(_) => {}
        }
    }
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
        Responder { issued: self.issued.clone(), dns_hook: config.dns_hook.clone() }
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

    fn configure(self: &Rc<Self>, config: Acme) {
        self.http.replace(http_client(&config));
        self.accounts.borrow_mut().clear();
        self.config.replace(Rc::new(config));
        self.load_names();
    }

    /// Reads what is stored about the configured names, and forgets all others.
    fn load_names(&self) {
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

    /// Starts attempts for the names that are due; returns when the next one is.
    fn start_due(self: &Rc<Self>) -> Time {
        let now_s = now_s();
        self.accounts.borrow().values().for_each(|account| account.correct(now_s));
        let names: Vec<Rc<Name>> = self.names.borrow().values().cloned().collect();
        let mut next_s = Time::MAX;
        let mut statuses = BTreeMap::new();
        for name in names {
            name.record.borrow_mut().correct(now_s);
            let step = self.next_step(&name, now_s);
            statuses.insert(name.text.clone(), status(&name, step, now_s));
            if name.is_busy.get() {
                continue;
            }
            match step {
                Step::Obtain if self.under_way.get() < ATTEMPTS => self.start(name, Task::Obtain),
                // It is started when another attempt has ended.
                Step::Obtain => {}
                Step::Wait(at_s) => {
                    next_s = next_s.min(at_s);
                    if self.wants_window(&name, now_s) && self.under_way.get() < ATTEMPTS {
                        self.start(name, Task::Window);
                    }
                }
            }
        }
        self.statuses.set(statuses);
        next_s
    }

    fn start(self: &Rc<Self>, name: Rc<Name>, task: Task) {
        let worker = self.clone();
        name.is_busy.set(true);
        self.under_way.set(self.under_way.get() + 1);
        spawn(async move {
            match task {
                Task::Obtain => attempt(&worker, &name).await,
                Task::Window => worker.request_window(&name).await,
            }
            name.is_busy.set(false);
            worker.issued.settle(&name.text);
            worker.under_way.set(worker.under_way.get() - 1);
            let _ = worker.messages.send(Message::Look);
        });
    }

    /// Whether the recommendation of the authority is to be requested (RFC 9773).
    fn wants_window(&self, name: &Name, now_s: Time) -> bool {
        let record = name.record.borrow();
        let is_listed = |url: &String| {
            let authority = outboard_config::Authority::Acme(url.clone());
            self.config.borrow().authorities.contains(&authority)
        };
        record.authority.as_ref().is_some_and(is_listed)
            && name.validity().is_some()
            && record.window.is_none_or(|window| window.is_old(now_s))
    }

    /// Requests when to renew the certificate.
    async fn request_window(&self, name: &Name) {
        let config = self.config();
        let Some(url) = name.record.borrow().authority.clone() else { return };
        let window = async {
            let account = self.account(&url)?;
            let identifier = name.credential().and_then(|one| keys::identifier(one.facts()));
            let Some(identifier) = identifier else { return Ok(None) };
            let client = account.client(&self.http(), &self.storage, &config).await;
            let client = client.map_err(|failure| failure.to_string())?;
            client.renewal_window(&identifier).await.map_err(|failure| failure.to_string())
        };
        let (now_s, window) = (now_s(), window.await);
        let window = match window {
            Ok(Some((window, retry_after_s))) => Window::new(now_s, window, retry_after_s),
            Ok(None) => Window::none(now_s),
            Err(why) => {
                let text = format!("no recommended time of renewal for {}: {why}", name.text);
                self.write(Level::Debug, &text);
                let before = name.record.borrow().window;
                before.map_or_else(|| Window::none(now_s), |before| before.again(now_s))
            }
        };
        if let Err(why) = name.change(&self.storage, |record| record.window = Some(window)) {
            self.error(&why);
        }
    }

    fn report_missing(self: &Rc<Self>) {
        let has_ask = self.config.borrow().ask.is_some();
        for text in self.statuses.take_missing() {
            if has_ask && !self.names.borrow().contains_key(&text) {
                let worker = self.clone();
                spawn(async move { worker.add_on_demand(&text).await });
                continue;
            }
            let name = self.names.borrow().get(&text).cloned();
            name.iter().for_each(|name| self.settle_unless_due(name));
            let error = name.as_ref().and_then(|name| name.record.borrow().error.clone());
            let why = match (name, error) {
                (Some(_), Some(error)) => format!("there is no certificate yet: {error}"),
                (Some(_), None) => "there is no certificate yet".to_owned(),
                (None, _) => "it is not a name of this server".to_owned(),
            };
            self.warn(&format!("no TLS for {}: {why}", text.escape_debug()));
        }
    }
}

impl Worker {
    /// Adds a name that a client has requested, if it is approved.
    async fn add_on_demand(self: Rc<Self>, text: &str) {
        let approved = match approval::is_possible(text) {
            false => Err("no certificate can be issued for it".to_owned()),
            true if self.names.borrow().len() >= MAX_NAMES => {
                Err("there are too many names".to_owned())
            }
            true => self.approve(text).await,
        };
        if let Err(why) = approved {
            self.issued.settle(text);
            return self.warn(&format!("no TLS for {}: {why}", text.escape_debug()));
        }
        let (name, fault) = Name::load(text, &self.storage);
        fault.iter().for_each(|fault| self.error(fault));
        self.use_certificate(&name);
        let name = Rc::new(name);
        self.settle_unless_due(&name);
        self.names.borrow_mut().insert(text.to_owned(), name);
        let _ = self.messages.send(Message::Look);
    }

    /// Handshakes do not wait for a name whose next attempt is later.
    fn settle_unless_due(&self, name: &Name) {
        if !name.is_busy.get() && self.next_step(name, now_s()) != Step::Obtain {
            self.issued.settle(&name.text);
        }
    }

    /// Whether a name may have a certificate: those that are configured may.
    pub(crate) async fn approve(&self, text: &str) -> Result<(), String> {
        let config = self.config();
        if config.names.iter().any(|name| name == text) {
            return Ok(());
        }
        let ask = config.ask.as_deref().ok_or("it is not a name of this server")?;
        self.approvals.request(&self.http(), ask, text, now_s()).await
    }
}

enum Task {
    Obtain,
    Window,
}

fn status(name: &Name, step: Step, now_s: Time) -> Certificate {
    let credential = name.credential();
    let facts = credential.as_ref().map(|credential| credential.facts());
    let state = match facts {
        None => "missing",
        Some(facts) if facts.not_after_s <= now_s => "expired",
        Some(_) => "valid",
    };
    Certificate {
        name: name.text.clone(),
        state: state.to_owned(),
        issuer: facts.map(|facts| facts.issuer.clone()),
        not_after_s: facts.map(|facts| facts.not_after_s),
        next_attempt_s: Some(match step {
            Step::Obtain => now_s,
            Step::Wait(at_s) => at_s,
        }),
        last_error: name.record.borrow().error.clone(),
    }
}
