//! [`RateLimits`]: the rate limits of an app, of its rules and of its scripts.
//!
//! Opened with a generation on each thread; a request takes a token of each limit that holds for it.
//! Invariant: a limit that gateways share counts here as well, so that when their server is away the
//! buckets are as full as this gateway's own requests leave them.

use super::client_key::ClientKey;
use super::{RateSharing, SharedAccess};
use outboard_access::{Answer, BucketId, KeyHash, LimitId, Rate, RateTable, Spending};
use outboard_config::{self as config, App, RateKey};
use outboard_reactor::now_ms;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct RateLimits {
    /// By the index of their rule.
    of_rules: Vec<Option<Limit>>,
    /// By name.
    of_scripts: HashMap<String, Limit>,
}

/// A rate limit.
#[derive(Debug)]
pub(crate) struct Limit {
    table: Arc<RateTable>,
    /// If gateways share it.
    shared: Option<(LimitId, Rc<RateSharing>)>,
}

/// The result of taking tokens.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is known.
    Known(Spending),
    /// The server has to be asked: [`Limit::ask`].
    Ask(BucketId),
}

impl RateLimits {
    /// Those of an app.
    pub(crate) fn open(
        app: &App,
        shared: &SharedAccess,
        sharing: Option<&Rc<RateSharing>>,
    ) -> Rc<Self> {
        let mut seen: HashMap<_, usize> = HashMap::new();
        let open = |path: &str, number: usize, limit: &config::RateLimit| Limit {
            table: shared.table((&app.name, path, number), limit),
            shared: sharing.filter(|_| limit.is_shared).map(|sharing| {
                let key = key_text(&limit.key);
                let number = number.to_le_bytes();
                let texts = [app.name.as_bytes(), path.as_bytes(), &number, key.as_bytes()];
                (LimitId::new(&limit.rate, &texts), sharing.clone())
            }),
        };
        let of_rules = app.access.rules.iter().map(|rule| {
            let limit = rule.rate_limit.as_ref()?;
            let path = rule.path.as_ref().map(|(path, _)| path.as_str());
            let number = seen.entry((path, limit)).or_default();
            *number += 1;
            Some(open(path.unwrap_or_default(), *number, limit))
        });
        let of_rules = of_rules.collect();
        let of_scripts = app.rate_limits.iter();
        let of_scripts = of_scripts.map(|(name, limit)| (name.clone(), open(name, 0, limit)));
        Rc::new(Self { of_rules, of_scripts: of_scripts.collect() })
    }

    /// That of a rule.
    pub(crate) fn of_rule(&self, rule: usize) -> Option<&Limit> {
        self.of_rules.get(rule)?.as_ref()
    }

    /// That of scripts with this name.
    pub(crate) fn of_scripts(&self, name: &str) -> Option<&Limit> {
        self.of_scripts.get(name)
    }
}

impl Limit {
    /// The rate.
    pub(crate) fn rate(&self) -> &Rate {
        self.table.rate()
    }

    /// Takes `cost` tokens of a client, whose hash is `hash`.
    pub(crate) fn take(&self, client: &ClientKey<'_>, hash: KeyHash, cost: u32) -> Taken {
        let now_ns = now_ms() * 1_000_000;
        let Some((limit, sharing)) = &self.shared else {
            return Taken::Known(self.table.spend_many(hash, cost, now_ns));
        };
        let id = client.bucket(limit);
        let key = KeyHash::of(id);
        // What this gateway alone has admitted is too much already.
        let own = self.table.look(key, cost, now_ns);
        if !own.is_admitted {
            return Taken::Known(own);
        }
        match sharing.spend(id, self.rate(), cost, now_ns) {
            None => Taken::Known(self.table.spend_many(key, cost, now_ns)),
            Some(Answer::Known(spending)) => {
                self.charge(key, cost, &spending);
                Taken::Known(spending)
            }
            Some(Answer::Ask) => Taken::Ask(id),
        }
    }

    /// Takes `cost` tokens of a bucket on the server, or of this gateway's if that is away.
    pub(crate) async fn ask(&self, id: BucketId, cost: u32) -> Spending {
        if let Some((_, sharing)) = &self.shared
            && let Some(spending) = sharing.ask(id, self.rate(), cost).await
        {
            self.charge(KeyHash::of(id), cost, &spending);
            return spending;
        }
        self.table.spend_many(KeyHash::of(id), cost, now_ms() * 1_000_000)
    }

    /// What taking tokens would result in, as far as this gateway knows.
    pub(crate) fn look(&self, client: &ClientKey<'_>, cost: u32) -> Spending {
        let now_ns = now_ms() * 1_000_000;
        let key = match &self.shared {
            None => KeyHash::of(client),
            Some((limit, _)) => KeyHash::of(client.bucket(limit)),
        };
        self.table.look(key, cost, now_ns)
    }

    fn charge(&self, key: KeyHash, cost: u32, spending: &Spending) {
        if spending.is_admitted {
            self.table.charge(key, cost, now_ms() * 1_000_000);
        }
    }
}

fn key_text(key: &RateKey) -> String {
    match key {
        RateKey::Address => "address".to_owned(),
        RateKey::Header(name) => format!("header:{}", name.to_ascii_lowercase()),
        RateKey::Cookie(name) => format!("cookie:{name}"),
        RateKey::Script => "script".to_owned(),
    }
}

#[cfg(test)]
mod tests;
