//! One order at an authority: it is placed or found again, the name is verified, and the certificate is
//! requested and stored.
//!
//! Called for one attempt. Invariants: an order is recorded before it is placed, and its key is stored
//! before the certificate is requested, so that a process that ends at any point continues with the same
//! order; a certificate is used only if it is for the name and its key.

use crate::acme::Failure;
use crate::acme::{Authorization, Client, Order, OrderStatus};
use crate::authority::Account;
use crate::keys;
use crate::name::Name;
use crate::plan::{OpenOrder, Time};
use crate::responder::protocol_name;
use crate::worker::{Worker, now_s};
use outboard_config::{Acme, Challenge};
use outboard_reactor::{now_ms, sleep};
use outboard_tls::Credential;
use std::sync::Arc;

/// The longest check of a name, and the longest issuance.
const WAIT_MAX_MS: u64 = 180_000;
/// Pauses between two looks, unless the authority sets one.
const PAUSE_FIRST_MS: u64 = 150;
const PAUSE_MAX_MS: u64 = 5_000;
/// The longest pause that an authority can set.
const RETRY_AFTER_MAX_S: u64 = 30;

/// Obtains a certificate for a name.
pub(crate) async fn obtain(
    worker: &Worker,
    config: &Acme,
    name: &Name,
    account: &Account,
) -> Result<Arc<Credential>, Failure> {
    let ordering = Ordering { worker, config, name, account };
    let client = account.client(&worker.http(), &worker.storage, config).await?;
    match ordering.complete(&client).await {
        Err(Failure::Refused(problem)) if problem.is("accountDoesNotExist") => {
            account.forget(&worker.storage).map_err(Failure::Own)?;
            let client = account.client(&worker.http(), &worker.storage, config).await?;
            ordering.complete(&client).await
        }
        outcome => outcome,
    }
}

struct Ordering<'a> {
    worker: &'a Worker,
    config: &'a Acme,
    name: &'a Name,
    account: &'a Account,
}

impl Ordering<'_> {
    async fn complete(&self, client: &Client) -> Result<Arc<Credential>, Failure> {
        let (order, key) = match self.open_order(client).await? {
            Some(found) => found,
            None => self.place(client).await?,
        };
        let outcome = self.finish(client, order, &key).await;
        // What the authority has rejected is not continued; what it cannot do now is.
        if let Err(failure @ (Failure::NotVerified(_) | Failure::Refused(_))) = &outcome
            && !failure.is_of_authority()
            && failure.pause_s().is_none()
        {
            self.change(|record| record.order = None)?;
        }
        outcome
    }

    /// The order that an earlier attempt has placed, if it can be completed.
    async fn open_order(&self, client: &Client) -> Result<Option<(Order, String)>, Failure> {
        let open = self.name.record.borrow().order.clone();
        let Some(open) = open.filter(|open| open.authority == self.account.url) else {
            return Ok(None);
        };
        match client.find_order(&open.url).await {
            Ok(order) if order.object.status != OrderStatus::Invalid => Ok(Some((order, open.key))),
            Ok(_) => Ok(None),
            Err(Failure::Refused(problem)) if problem.status < 500 => {
                if problem.is("accountDoesNotExist") || problem.is("rateLimited") {
                    return Err(Failure::Refused(problem));
                }
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn place(&self, client: &Client) -> Result<(Order, String), Failure> {
        let key = keys::generate().map_err(Failure::Own)?;
        let order = match self.place_one(client, self.replaced().as_deref()).await {
            // The authority does not know the certificate, or another order has replaced it.
            Err(Failure::Refused(problem))
                if self.replaced().is_some()
                    && (400..500).contains(&problem.status)
                    && !problem.is("rateLimited")
                    && !problem.is("accountDoesNotExist") =>
            {
                self.place_one(client, None).await?
            }
            order => order?,
        };
        let open = OpenOrder {
            authority: self.account.url.clone(),
            url: order.url.clone(),
            key: key.clone(),
        };
        self.change(|record| record.order = Some(open))?;
        Ok((order, key))
    }

    async fn place_one(&self, client: &Client, replaces: Option<&str>) -> Result<Order, Failure> {
        let (now_s, limits) = (now_s(), self.worker.limits());
        if !self.name.record.borrow().may_order(now_s, limits) {
            return Err(Failure::Limit(
                "the most orders for this name in a week are placed".into(),
            ));
        }
        if self.account.usable_s(limits) > now_s {
            return Err(Failure::Limit(
                "the most orders at this authority in 3 hours are placed".into(),
            ));
        }
        let storage = &self.worker.storage;
        self.account.change(storage, |record| record.ordered(now_s)).map_err(Failure::Own)?;
        self.change(|record| record.ordered(now_s))?;
        if let Some(commons) = self.worker.commons() {
            let record = self.name.record.borrow().clone();
            commons.set_record(&self.name.text, &record).await.map_err(Failure::Own)?;
        }
        client.order(&self.name.text, self.config.profile.as_deref(), replaces).await
    }

    /// The certificate that is renewed, if this authority has issued it.
    fn replaced(&self) -> Option<String> {
        let is_own = self.name.record.borrow().authority.as_ref() == Some(&self.account.url);
        let credential = self.name.credential().filter(|_| is_own)?;
        keys::identifier(credential.facts())
    }

    async fn finish(
        &self,
        client: &Client,
        mut order: Order,
        key: &str,
    ) -> Result<Arc<Credential>, Failure> {
        let mut wait = Wait::new();
        loop {
            match order.object.status {
                OrderStatus::Pending => {
                    for url in &order.object.authorizations {
                        self.verify(client, url).await?;
                    }
                }
                OrderStatus::Ready => {
                    let request =
                        keys::signing_request(&self.name.text, key).map_err(Failure::Own)?;
                    order = client.finalize(&order, &request).await?;
                    continue;
                }
                OrderStatus::Processing => {}
                OrderStatus::Valid => break,
                OrderStatus::Invalid => {
                    return Err(Failure::NotVerified(order.object.error.unwrap_or_default()));
                }
            }
            wait.pause(order.retry_after_s).await?;
            order = client.find_order(&order.url).await?;
        }
        let url = order.object.certificate.as_deref();
        let url = url.ok_or_else(|| Failure::Unreachable("the order has no certificate".into()))?;
        let chain = client.certificate(url).await?;
        self.accept(&chain, key)
    }

    fn accept(&self, chain: &str, key: &str) -> Result<Arc<Credential>, Failure> {
        let unusable = |why: String| {
            // The order is complete: another look would find the same.
            let _ = self.change(|record| record.order = None);
            Failure::Own(format!("the certificate cannot be used: {why}"))
        };
        let pem = format!("{key}\n{chain}");
        let credential = Credential::from_pem(pem.as_bytes()).map_err(unusable)?;
        if !credential.covers(&self.name.text) {
            return Err(unusable(format!("it is not for {}", self.name.text)));
        }
        self.worker.storage.set_certificate(&self.name.text, &pem).map_err(Failure::Own)?;
        self.change(|record| record.issued(&self.account.url))?;
        Ok(Arc::new(credential))
    }

    /// Has the authority verify the name, unless it has done so before.
    async fn verify(&self, client: &Client, url: &str) -> Result<(), Failure> {
        let (authorization, _) = client.authorization(url).await?;
        if authorization.is_valid() {
            return Ok(());
        }
        if !authorization.is_pending() {
            return Err(self.not_verified(&authorization));
        }
        let (kind, challenge) = self.choose(&authorization).ok_or_else(|| {
            Failure::Own("the authority can check this name in none of the configured ways".into())
        })?;
        let proof = client.key.authorization(&challenge.token);
        let responder = self.worker.responder(self.config);
        let response = responder.respond(kind, &self.name.text, &challenge.token, &proof).await;
        let response = response.map_err(Failure::Own)?;
        let outcome = async {
            match client.start_check(&challenge.url).await {
                // An earlier process has started it already.
                Err(Failure::Refused(problem)) if problem.is("malformed") => {}
                started => started?,
            }
            self.wait_for_check(client, url).await
        };
        let outcome = outcome.await;
        if let Err(why) = response.withdraw().await {
            self.worker.warn(&format!("certificate for {}: {why}", self.name.text));
        }
        outcome
    }

    async fn wait_for_check(&self, client: &Client, url: &str) -> Result<(), Failure> {
        let mut wait = Wait::new();
        let mut retry_after_s = None;
        loop {
            wait.pause(retry_after_s).await?;
            let (authorization, next_s) = client.authorization(url).await?;
            match () {
                () if authorization.is_valid() => return Ok(()),
                () if !authorization.is_pending() => return Err(self.not_verified(&authorization)),
                () => retry_after_s = next_s,
            }
        }
    }

    /// The preferred way; after each failure the next one.
    fn choose(&self, authorization: &Authorization) -> Option<(Challenge, crate::acme::Challenge)> {
        let is_wildcard = self.name.text.starts_with("*.");
        let ways = self.config.challenges.iter().copied();
        let ways = ways.filter(|way| !is_wildcard || *way == Challenge::Dns01);
        let possible: Vec<_> = ways
            .filter_map(|way| {
                let offered = authorization.challenges.iter();
                let found = offered.clone().find(|one| one.kind == protocol_name(way))?;
                Some((way, found.clone()))
            })
            .collect();
        let failures = self.name.record.borrow().failures as usize;
        possible.get(failures.checked_rem(possible.len())?).cloned()
    }

    fn not_verified(&self, authorization: &Authorization) -> Failure {
        let now_s: Time = now_s();
        // If it cannot be stored, the next attempt reports it.
        let _ = self.change(|record| record.check_failed(now_s));
        Failure::NotVerified(authorization.problem())
    }

    fn change(&self, change: impl FnOnce(&mut crate::plan::NameRecord)) -> Result<(), Failure> {
        self.name.change(&self.worker.storage, change).map_err(Failure::Own)
    }
}

/// Pauses between looks, for [`WAIT_MAX_MS`] altogether.
struct Wait {
    until_ms: u64,
    next_ms: u64,
}

impl Wait {
    fn new() -> Self {
        Self { until_ms: now_ms() + WAIT_MAX_MS, next_ms: PAUSE_FIRST_MS }
    }

    async fn pause(&mut self, retry_after_s: Option<u64>) -> Result<(), Failure> {
        if now_ms() >= self.until_ms {
            let seconds = WAIT_MAX_MS / 1000;
            return Err(Failure::Unreachable(format!("no result within {seconds} s")));
        }
        let own_ms = self.next_ms;
        self.next_ms = (own_ms * 2).min(PAUSE_MAX_MS);
        let pause_ms =
            retry_after_s.map_or(own_ms, |seconds| seconds.min(RETRY_AFTER_MAX_S) * 1000);
        sleep(pause_ms.max(PAUSE_FIRST_MS)).await;
        Ok(())
    }
}
