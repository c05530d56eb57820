//! [`Account`]: the account at an authority, and when it accepts orders.
//!
//! Owned by the worker, one for each authority. Invariant: the key is stored before the account is created,
//! so that an interrupted start finds its account again.

use crate::acme::Failure;
use crate::acme::{AccountKey, Client};
use crate::plan::{AuthorityRecord, Limits, Time};
use crate::storage::Storage;
use outboard_config::{Acme, Authority};
use outboard_reactor::sleep;
use outboard_upstream::Client as HttpClient;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) url: String,
    stored: RefCell<Stored>,
    client: RefCell<Option<Rc<Client>>>,
    is_opening: Cell<bool>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Stored {
    directory: String,
    /// PKCS #8 in base64url.
    key: String,
    account: Option<String>,
    record: AuthorityRecord,
}

/// The pause between two looks whether another task has opened the account.
const LOOK_MS: u64 = 50;

impl Account {
    /// Reads what is stored.
    pub(crate) fn load(url: &str, storage: &Storage) -> Result<Self, String> {
        let stored = storage.authority(url)?.unwrap_or_default();
        Ok(Self {
            url: url.to_owned(),
            stored: RefCell::new(stored),
            client: RefCell::default(),
            is_opening: Cell::new(false),
        })
    }

    /// The time from which it accepts an order.
    pub(crate) fn usable_s(&self, limits: Limits) -> Time {
        self.stored.borrow().record.usable_s(&self.url, limits)
    }

    /// The time from which it is expected to respond.
    pub(crate) fn responding_s(&self) -> Time {
        self.stored.borrow().record.responding_s(&self.url)
    }

    /// Changes the record, on the disk too.
    pub(crate) fn change(
        &self,
        storage: &Storage,
        change: impl FnOnce(&mut AuthorityRecord),
    ) -> Result<(), String> {
        change(&mut self.stored.borrow_mut().record);
        self.store(storage)
    }

    /// Corrects times after a change of the clock.
    pub(crate) fn correct(&self, now_s: Time) {
        self.stored.borrow_mut().record.correct(now_s);
    }

    /// The account, which is created if there is none.
    pub(crate) async fn client(
        &self,
        http: &Rc<HttpClient>,
        storage: &Storage,
        config: &Acme,
    ) -> Result<Rc<Client>, Failure> {
        // Several names need it at the same time.
        while self.is_opening.replace(true) {
            sleep(LOOK_MS).await;
        }
        let client = self.open(http, storage, config).await;
        self.is_opening.set(false);
        client
    }

    /// The authority does not know the account any more.
    pub(crate) fn forget(&self, storage: &Storage) -> Result<(), String> {
        self.client.replace(None);
        self.stored.borrow_mut().account = None;
        self.store(storage)
    }

    async fn open(
        &self,
        http: &Rc<HttpClient>,
        storage: &Storage,
        config: &Acme,
    ) -> Result<Rc<Client>, Failure> {
        if let Some(client) = self.client.borrow().clone() {
            return Ok(client);
        }
        let key = self.key(storage).map_err(Failure::Own)?;
        let known = self.stored.borrow().account.clone();
        let client = Client::open(http.clone(), &self.url, key, known.clone()).await?;
        if known.is_none() {
            let is_first = config.authorities.first() == Some(&Authority::Acme(self.url.clone()));
            let external = config.external_account.as_ref().filter(|_| is_first);
            let account = client.register(config.email.as_deref(), external).await?;
            self.stored.borrow_mut().account = Some(account);
            self.store(storage).map_err(Failure::Own)?;
        }
        let client = Rc::new(client);
        self.client.replace(Some(client.clone()));
        Ok(client)
    }

    fn key(&self, storage: &Storage) -> Result<AccountKey, String> {
        if self.stored.borrow().key.is_empty() {
            let key = AccountKey::generate()?;
            self.stored.borrow_mut().key = key;
            self.stored.borrow_mut().directory = self.url.clone();
            self.store(storage)?;
        }
        AccountKey::read(&self.stored.borrow().key)
    }

    fn store(&self, storage: &Storage) -> Result<(), String> {
        storage.set_authority(&self.url, &*self.stored.borrow())
    }
}
