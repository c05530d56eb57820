//! What the worker shares with those of other gateways.

use super::Worker;
use crate::commons::Commons;
use crate::message::Message;
use crate::plan::Validity;
use outboard_tls::{Credential, Issued};
use std::rc::Rc;
use std::sync::Arc;

impl Worker {
    /// What gateways share, if they do.
    pub(crate) fn commons(&self) -> Option<Rc<Commons>> {
        self.commons.borrow().clone()
    }

    /// Whether this is what gateways share.
    pub(crate) fn is_shared_by(&self, commons: &Rc<Commons>) -> bool {
        self.commons.borrow().as_ref().is_some_and(|present| Rc::ptr_eq(present, commons))
    }

    pub(crate) fn issued(&self) -> &Issued {
        &self.issued
    }

    pub(crate) fn all_names(&self) -> Vec<String> {
        self.names.borrow().keys().cloned().collect()
    }

    /// Uses the certificate that another gateway has stored for a name, if it is newer.
    pub(crate) async fn adopt(&self, commons: &Commons, text: &str) -> Result<(), String> {
        let Some(name) = self.names.borrow().get(text).cloned() else { return Ok(()) };
        let found = commons.find(text).await?;
        if let Some(record) = &found.record {
            name.change(&self.storage, |own| own.merge(record))?;
        }
        let Some(pem) = found.pem else { return Ok(()) };
        let credential = Credential::from_pem(&pem)?;
        let is_newer = |own: Validity| own.not_before_s < credential.facts().not_before_s;
        if !credential.covers(text) || !name.validity().is_none_or(is_newer) {
            return Ok(());
        }
        self.storage.set_certificate(text, &String::from_utf8_lossy(&pem))?;
        let authority = found.record.and_then(|record| record.authority).unwrap_or_default();
        name.change(&self.storage, |own| own.issued(&authority))?;
        name.set_credential(Arc::new(credential));
        self.use_certificate(&name);
        self.info(&format!("certificate for {text}: another gateway has obtained it"));
        let _ = self.messages.send(Message::Look);
        Ok(())
    }
}
