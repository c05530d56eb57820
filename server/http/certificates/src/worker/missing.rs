//! Names that clients have requested and that have no certificate.

use super::{Worker, now_s};
use crate::approval;
use crate::message::Message;
use crate::name::Name;
use crate::plan::Step;
use outboard_reactor::spawn;
use std::rc::Rc;

/// Names, with those that clients have requested.
const MAX_NAMES: usize = 20_000;

impl Worker {
    pub(crate) fn report_missing(self: &Rc<Self>) {
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
            self.warn_of(&text, &why);
        }
    }

    /// Clients choose the names and how often they connect: one line for a name and minute.
    fn warn_of(&self, name: &str, why: &str) {
        if self.logged.insert(name, now_s()) {
            self.warn(&format!("no TLS for {}: {why}", name.escape_debug()));
        }
    }

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
            return self.warn_of(text, &why);
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
