//! Logs the `.htaccess` files below the apps' roots, once, when the server has started.
//!
//! The search runs on a thread, since a root may be large.

use crate::gateway::Gateway;
use outboard_config::HtaccessFiles;
use outboard_log::{Event, Level};
use outboard_reactor::blocking;
use std::rc::Rc;

pub(super) async fn report(gateway: Rc<Gateway>) {
    let generation = gateway.generation();
    for app in &generation.apps {
        let root = app.config.root.clone();
        let Some(found) = blocking(move || HtaccessFiles::below(&root)).await else { continue };
        let is_honored = app.config.static_files.htaccess;
        let mut text = found.summary(is_honored);
        if found.is_notable() {
            text.push_str("; `outboard check` names them");
        }
        let is_open = !is_honored && !found.restricting.is_empty();
        let level = match is_open || !found.not_applied.is_empty() {
            true => Level::Warn,
            false => Level::Info,
        };
        let event = Event { app: Some(&app.config.name), text: &text, ..Event::default() };
        app.logs.error.write(level, event);
    }
}
