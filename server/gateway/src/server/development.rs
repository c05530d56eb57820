//! Acts on the changes that development mode finds: reloads, and notifies browsers.
//!
//! Called at start and after each reload.

use crate::gateway::Gateway;
use outboard_config::Mode;
use outboard_development::Development;
use outboard_log::Level;
use outboard_reactor::spawn;
use std::rc::Rc;

/// Starts, replaces or ends development mode as the configuration requires.
pub(super) fn configure(gateway: &Rc<Gateway>) {
    let generation = gateway.generation();
    let (configured, present) = (generation.config.development.as_ref(), gateway.development());
    if present.as_deref().map(Development::config) != configured {
        let next = configured.map(|configured| {
            let file = &generation.config.file;
            let (next, warning) = Development::watch(configured, file, present.as_deref());
            if let Some(warning) = warning {
                gateway.server.log(Level::Warn, &warning);
            }
            spawn(follow_changes(gateway.clone(), next.clone()));
            next
        });
        if let Some(present) = present {
            present.replace();
        }
        gateway.set_development(next);
    }
    if let Some(development) = gateway.development() {
        let mut apps = generation.apps.iter().map(|app| &app.config);
        let is_resident =
            |app: &outboard_config::App| app.mode != Mode::Classic || app.tasks.is_some();
        development.set_resident_code(apps.any(|app| is_resident(app)));
    }
}

async fn follow_changes(gateway: Rc<Gateway>, development: Rc<Development>) {
    loop {
        let changes = development.next_changes().await;
        if development.is_replaced() {
            return development.settle_until(u64::MAX);
        }
        let found = development.found();
        // Browsers leave their pages and connect while PHP starts; their requests wait for it.
        development.feed().publish(&changes);
        if development.requires_reload(&changes) {
            let outcome = gateway.control.reload_and_wait().await;
            development.set_failure(outcome.err());
        }
        // Later changes are next; requests that came after them wait for the next reload.
        development.settle_until(found);
    }
}
