//! The processes of the apps: which ones a generation has, and restarts of those whose files change.
//!
//! Called on the lead at start, at each reload and by upgrades. Invariant: with a predecessor nothing begins that it
//! still runs.

use super::generation_builder::GenerationBuilder;
use crate::gateway::Gateway;
use outboard_config::{Config, Development as Settings};
use outboard_development::{Change, Development};
use outboard_log::Level;
use outboard_php_pool::pool::PoolSettings;
use outboard_php_pool::processes::{ProcessSettings, Processes, Wanted};
use outboard_reactor::spawn;
use std::rc::Rc;

/// Starts, changes and ends processes as the active generation requires.
pub(super) fn configure(gateway: &Rc<Gateway>, builder: &GenerationBuilder) {
    let generation = gateway.generation();
    let mut wanted = Vec::new();
    for app in generation.apps.iter().filter(|app| !app.config.processes.is_empty()) {
        let spawner = builder.privileges.spawner.as_ref();
        let pool = match PoolSettings::of(&app.config, &builder.host_binary, spawner) {
            Ok(pool) => pool,
            // Its workers would not have started.
            Err(error) => return gateway.server.log(Level::Error, &error),
        };
        for (name, process) in &app.config.processes {
            wanted.extend((0..process.instances).map(|number| Wanted {
                app: app.config.name.clone(),
                name: name.clone(),
                number,
                settings: ProcessSettings::of(&pool, name, number, process),
                log: app.logs.error.clone(),
            }));
        }
    }
    gateway.processes.apply(wanted);
    watch_files(gateway, &generation.config);
}

/// In development: replaces the watches of the generation before.
fn watch_files(gateway: &Rc<Gateway>, config: &Config) {
    let mut watches = Vec::new();
    let general = config.development.clone().unwrap_or_default();
    for app in config.development.iter().flat_map(|_| &config.apps) {
        for (name, process) in app.processes.iter().filter(|(_, one)| !one.watch.is_empty()) {
            let settings = Settings { watch: process.watch.clone(), ..general.clone() };
            let (watch, warning) = Development::watch(&settings, &config.file, None);
            warning.iter().for_each(|warning| gateway.server.log(Level::Warn, warning));
            watches.push(watch.clone());
            let (app, name) = (app.name.clone(), name.clone());
            spawn(restart_after_changes(watch, gateway.processes.clone(), app, name));
        }
    }
    let before = gateway.process_watches.replace(watches);
    before.iter().for_each(|watch| watch.replace());
}

async fn restart_after_changes(
    watch: Rc<Development>,
    processes: Rc<Processes>,
    app: String,
    name: String,
) {
    loop {
        let changes = watch.next_changes().await;
        if watch.is_replaced() {
            return;
        }
        // Another watch has the configuration, and its reload decides.
        if changes.iter().any(|change| *change != Change::Configuration) {
            processes.restart(Some(&app), Some(&name));
        }
    }
}
