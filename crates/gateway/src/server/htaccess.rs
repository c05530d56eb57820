//! Logs the `.htaccess` files below the apps' roots, once, when the server has started.
//!
//! The gateway does not apply them, so paths that they deny are accessible. The search runs on a
//! thread, since a root may be large.

use crate::gateway::Gateway;
use outboard_config::Htaccess;
use outboard_log::{Event, Level};
use outboard_reactor::blocking;
use std::rc::Rc;

pub(super) async fn report(gateway: Rc<Gateway>) {
    let generation = gateway.generation();
    for app in &generation.apps {
        let root = app.config.root.clone();
        let Some(found) = blocking(move || Htaccess::below(&root)).await else { continue };
        let lines = found.lines_beside(&app.config.deny);
        let (level, text) = match (lines.is_empty(), found.look_at.is_empty()) {
            (true, true) => (Level::Info, found.summary()),
            (false, _) => {
                let lines = lines.join("; ");
                (
                    Level::Warn,
                    format!("{}; what they deny is accessible; write {lines}", found.summary()),
                )
            }
            (true, false) => (
                Level::Warn,
                format!(
                    "{}, and some restrict access; `outboard check` names them",
                    found.summary()
                ),
            ),
        };
        let event = Event { app: Some(&app.config.name), text: &text, ..Event::default() };
        app.logs.error.write(level, event);
    }
}
