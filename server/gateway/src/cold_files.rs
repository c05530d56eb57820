//! Files that are not in memory: another thread waits for the disk, and the request for the thread.
//!
//! Called by [`crate::dispatch`], and where a script or a composed page names a file. Invariants: the event
//! loop waits for no disk; a slow disk delays the requests for its files alone; a client that goes away
//! gives up its lookup.

use crate::app::App;
use crate::route::{self, Findings, Route};
use outboard_http_server::Client;
use outboard_log::Reason;
use outboard_reactor::{now_ms, on_lookup_thread};
use outboard_static_files::{ColdLookup, Lookup, Root};

/// Looks up a path that the configuration or a script names, so that no rule for clients holds.
pub(crate) async fn lookup(root: &Root, path: &[u8]) -> Lookup {
    let found = match root.lookup_in_memory(path, now_ms()) {
        Ok(found) => found,
        Err(cold) => load(root, cold).await,
    };
    found.followed().0
}

/// Finds the route of a path whose search has come to a `cold` lookup, as [`route::find`].
///
/// # Errors
/// The client is gone.
pub(crate) async fn find_route(
    client: &Client,
    app: &App,
    target: (&[u8], Option<&[u8]>),
    mut cold: Box<ColdLookup>,
    findings: &Findings,
) -> Result<Route, Reason> {
    let mut looked = Vec::new();
    loop {
        let cold_path = cold.path().to_vec();
        let found = client.unless_gone(load(&app.files, cold)).await?;
        // Each of them is looked up once, however soon its result is outdated.
        looked.push((cold_path, found));
        cold = match route::find(app, target, now_ms(), (&looked, findings)) {
            Ok(route) => return Ok(route),
            Err(next) => next,
        };
    }
}

async fn load(root: &Root, cold: Box<ColdLookup>) -> Lookup {
    let loaded = on_lookup_thread(cold.root(), move || cold.run()).await;
    root.complete(loaded, now_ms())
}
