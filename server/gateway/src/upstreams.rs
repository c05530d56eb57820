//! [`Upstreams`]: the groups of servers of a configuration.
//!
//! Made by the lead for each configuration and shared by all threads. Invariants: servers that the
//! predecessor has too keep their state; each change of a server's state is logged.

mod report;

use outboard_balancer::{Attempt, Change, Group, Server};
use outboard_config::Config;
use outboard_log::{ErrorLog, Level};
use outboard_reactor::now_ms;
pub(crate) use report::status;
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct Upstreams(BTreeMap<String, Arc<Group>>);

impl Upstreams {
    /// The groups of a configuration.
    pub(crate) fn new(config: &Config, predecessor: Option<&Self>) -> Arc<Self> {
        let groups = config.upstreams.iter().map(|rules| {
            let known = predecessor.and_then(|before| before.group(&rules.name));
            (rules.name.clone(), Group::new(rules.clone(), known.map(|known| &**known)))
        });
        Arc::new(Self(groups.collect()))
    }

    pub(crate) fn group(&self, name: &str) -> Option<&Arc<Group>> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Arc<Group>> {
        self.0.values()
    }
}

/// Reports that a server is up or not.
pub(crate) fn log_change(log: &ErrorLog, group: &Group, server: &Server, change: Change) {
    let rules = group.rules();
    let (name, server) = (&rules.name, server.name());
    let (level, text) = match change {
        Change::Up => (Level::Info, format!("upstream {name}: {server} is up")),
        Change::Down => {
            (Level::Error, format!("upstream {name}: {server} is down: its health checks fail"))
        }
        Change::Ejected => {
            let (fails, ms) = (rules.max_fails.unwrap_or(0), rules.fail_timeout_ms);
            let text = format!(
                "upstream {name}: {server} is ejected for {ms} ms: {fails} requests have failed"
            );
            (Level::Error, text)
        }
    };
    log.note(level, &text);
}

/// Counts a response for its server, `us` after the request.
pub(crate) fn succeeded(log: &ErrorLog, attempt: &Attempt, us: u64) {
    if let Some(change) = attempt.succeeded(us, now_ms()) {
        log_change(log, attempt.group(), attempt.server(), change);
    }
}

/// Counts a failure for its server.
pub(crate) fn failed(log: &ErrorLog, attempt: &Attempt) {
    let (change, has_opened) = attempt.failed(now_ms());
    if let Some(change) = change {
        log_change(log, attempt.group(), attempt.server(), change);
    }
    if has_opened {
        let name = &attempt.group().rules().name;
        let text = format!("upstream {name}: the circuit breaker is open: too many requests fail");
        log.note(Level::Error, &text);
    }
}
