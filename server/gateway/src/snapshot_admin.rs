//! The command of the admin socket about snapshots of apps.

use crate::admin_reply::Refusal;
use crate::gateway::Gateway;
use outboard_admin_api::snapshot::{Retire, Retired};
use outboard_php_pool::freshness::Cause;
use std::collections::BTreeMap;

/// Retires the snapshots of an app, or of all.
pub(crate) fn retire(gateway: &Gateway, retire: &Retire) -> Result<Retired, Refusal> {
    let generation = gateway.generation();
    let is_meant = |app: &str| retire.app.as_deref().is_none_or(|meant| meant == app);
    let apps: Vec<_> = generation.apps.iter().filter(|app| is_meant(&app.config.name)).collect();
    if let (Some(app), true) = (&retire.app, apps.is_empty()) {
        return Err(Refusal::new(404, format!("there is no app {app}")));
    }
    let cause = match &retire.key {
        Some(key) => Cause::Key(key.clone()),
        None => Cause::Administrator,
    };
    let retired = apps.iter().map(|app| {
        let retired = app.snapshots.retire(retire.key.as_deref(), &cause);
        (app.config.name.clone(), retired)
    });
    Ok(Retired { apps: retired.collect::<BTreeMap<_, _>>() })
}
