//! The tasks of the lead that check the servers of upstreams and resolve their names.
//!
//! Called by the server when a configuration becomes active. Invariant: the tasks of the configuration before
//! have ended.

mod checks;
mod names;

use crate::gateway::Gateway;
use outboard_config::{Config, ProxyTarget};
use outboard_upstream::ScopedTask;
use std::rc::Rc;

/// Checks the servers of the active configuration and resolves their names, instead of those of the one
/// before. Called on the lead.
pub(crate) fn watch(gateway: &Rc<Gateway>) {
    let generation = gateway.generation();
    let mut tasks = Vec::new();
    for group in generation.upstreams.groups() {
        group.activate();
        let verifies = verifies(&generation.config, &group.rules().name);
        tasks.extend(checks::start(gateway, group, verifies));
        tasks.extend(names::start(gateway, group));
    }
    let _: Vec<ScopedTask> = gateway.upstream_tasks.replace(tasks);
}

/// Whether certificates are verified, which routes decide.
fn verifies(config: &Config, group: &str) -> bool {
    let routes = config.apps.iter().flat_map(|app| &app.proxies);
    let mut routes = routes.filter(
        |route| matches!(&route.upstream, ProxyTarget::Group { name, .. } if name == group),
    );
    routes.all(|route| route.verifies)
}
