//! Health checks: a request to each server at an interval.
//!
//! Started by [`super::watch`], a task for each server. Invariants: a check has a connection of its own, so
//! that a server that accepts no more connections is found out; a server has one check at a time.

use crate::gateway::Gateway;
use crate::upstreams::log_change;
use outboard_balancer::{Group, Server};
use outboard_config::{HealthCheck, SendProxy};
use outboard_http_server::proxy_protocol::write_without_client;
use outboard_reactor::{now_ms, sleep};
use outboard_upstream::{Error, Request, ScopedTask, Url};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How often servers that were resolved since are looked for.
const NEW_SERVERS_MS: u64 = 500;

/// Starts the checks of a group, if it has any.
pub(super) fn start(
    gateway: &Rc<Gateway>,
    group: &Arc<Group>,
    verifies: bool,
) -> Option<ScopedTask> {
    let rules = group.rules().health_check.clone()?;
    let checks =
        Rc::new(Checks { gateway: gateway.clone(), group: group.clone(), rules, verifies });
    Some(ScopedTask::spawn(checks.run()))
}

struct Checks {
    gateway: Rc<Gateway>,
    group: Arc<Group>,
    rules: HealthCheck,
    verifies: bool,
}

impl Checks {
    /// Has a task for each present server.
    async fn run(self: Rc<Self>) {
        let mut tasks: BTreeMap<String, ScopedTask> = BTreeMap::new();
        loop {
            let members = self.group.members();
            tasks.retain(|name, _| members.iter().any(|one| one.server.name() == name));
            for server in members.into_iter().map(|member| member.server) {
                let name = server.name().to_owned();
                let task = || ScopedTask::spawn(self.clone().check_regularly(server));
                tasks.entry(name).or_insert_with(task);
            }
            sleep(NEW_SERVERS_MS).await;
        }
    }

    async fn check_regularly(self: Rc<Self>, server: Arc<Server>) {
        loop {
            let next_ms = now_ms() + self.rules.interval_ms;
            let passed = self.check(&server).await.unwrap_or(false);
            if let Some(change) = server.checked(passed, &self.rules, now_ms()) {
                let log = &self.gateway.generation().logs.error;
                log_change(log, &self.group, &server, change);
            }
            sleep(next_ms.saturating_sub(now_ms()).max(1)).await;
        }
    }

    async fn check(&self, server: &Server) -> Result<bool, Error> {
        let url = [server.origin().as_bytes(), self.rules.path.as_bytes()].concat();
        let mut request = Request::get(Url::parse(&url)?);
        if let Some(host) = &self.rules.host {
            request.headers.add(b"Host", host.as_bytes())?;
        }
        request.endpoint = server.endpoint().cloned();
        request.is_alone = true;
        request.verify = self.verifies;
        request.retries = 0;
        request.timeout_ms = self.rules.timeout_ms;
        request.connect_timeout_ms = self.rules.timeout_ms;
        request.max_body_bytes = u64::MAX;
        match self.group.rules().proxy_protocol {
            SendProxy::Off => {}
            version => write_without_client(&mut request.preface, version == SendProxy::V2),
        }
        let client = self.gateway.generation().upstream.clone();
        let response = client.send_once(&request).await?;
        Ok(self.rules.status.contains(response.status))
    }
}
