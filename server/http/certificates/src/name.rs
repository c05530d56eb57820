//! [`Name`]: a name, with its certificate and its record.
//!
//! Owned by the worker. Invariant: what is in memory is on disk, except that another process may have
//! obtained a newer certificate.

use crate::plan::{self, Limits, NameRecord, Step, Time, Validity};
use crate::storage::Storage;
use outboard_tls::Credential;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) record: RefCell<NameRecord>,
    credential: RefCell<Option<Arc<Credential>>>,
    /// Whether an attempt is under way.
    pub(crate) is_busy: Cell<bool>,
    /// Another process is at it until then.
    pub(crate) other_until_s: Cell<Time>,
}

impl Name {
    /// Reads what is stored about a name. The second value is why something cannot be used.
    pub(crate) fn load(text: &str, storage: &Storage) -> (Self, Option<String>) {
        let name = Self {
            text: text.to_owned(),
            record: RefCell::default(),
            credential: RefCell::default(),
            is_busy: Cell::new(false),
            other_until_s: Cell::new(0),
        };
        let fault = name.refresh(storage).err();
        (name, fault)
    }

    /// Reads what is stored, possibly by another process.
    pub(crate) fn refresh(&self, storage: &Storage) -> Result<(), String> {
        self.record.replace(storage.record(&self.text)?);
        let Some(pem) = storage.certificate(&self.text)? else { return Ok(()) };
        let credential = Credential::from_pem(&pem)
            .map_err(|why| format!("the stored certificate of {}: {why}", self.text))?;
        self.credential.replace(Some(Arc::new(credential)));
        Ok(())
    }

    /// The certificate, if there is one.
    pub(crate) fn credential(&self) -> Option<Arc<Credential>> {
        self.credential.borrow().clone()
    }

    /// Uses a certificate that is stored already.
    pub(crate) fn set_credential(&self, credential: Arc<Credential>) {
        self.credential.replace(Some(credential));
    }

    /// Changes the record, on the disk too.
    pub(crate) fn change(
        &self,
        storage: &Storage,
        change: impl FnOnce(&mut NameRecord),
    ) -> Result<(), String> {
        change(&mut self.record.borrow_mut());
        storage.set_record(&self.text, &*self.record.borrow())
    }

    /// The next step; `usable_s` are the times from which the authorities accept orders.
    pub(crate) fn next_step(
        &self,
        now_s: Time,
        usable_s: impl IntoIterator<Item = Time>,
        limits: Limits,
    ) -> Step {
        let validity = self.validity();
        let record = self.record.borrow();
        let certificate = validity.as_ref().map(|validity| (validity, record.window.as_ref()));
        match plan::next_step(now_s, &self.text, certificate, &record, usable_s, limits) {
            Step::Obtain if self.other_until_s.get() > now_s => {
                Step::Wait(self.other_until_s.get())
            }
            step => step,
        }
    }

    /// The validity of its certificate.
    pub(crate) fn validity(&self) -> Option<Validity> {
        let credential = self.credential.borrow();
        let facts = credential.as_ref()?.facts();
        Some(Validity { not_before_s: facts.not_before_s, not_after_s: facts.not_after_s })
    }
}
