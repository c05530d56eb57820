//! The log files of a running server: written regularly, reopened on request.
//!
//! Spawned by each thread of the server. Invariant: a line is written within a quarter of a second.

use crate::gateway::Gateway;
use crate::logs;
use outboard_log::Level;
use outboard_reactor::{self as reactor, now_ms};
use std::rc::Rc;

/// Time after which a failed rotation is tried again.
const ROTATION_PAUSE_MS: u64 = 60_000;

/// Reopens the files of all threads after log rotation.
pub(super) async fn reopen_logs(gateway: Rc<Gateway>) {
    let sinks = gateway.sinks.borrow().all().cloned().collect();
    if let Err(error) = logs::reopen(sinks).await {
        gateway.server.log(Level::Error, &format!("cannot reopen a log: {error}"));
    }
}

/// Log lines are written in batches, after at most a quarter of a second.
pub(super) async fn flush_logs(gateway: Rc<Gateway>) {
    let mut waiting = gateway.server.memory.logs().hold(0);
    let mut rotates_from_ms = 0;
    loop {
        reactor::activity().await;
        reactor::sleep(250).await;
        gateway.sinks.borrow().flush(&mut waiting);
        // The lead's targets are those of all.
        if gateway.shards.lead().is_none() && now_ms() >= rotates_from_ms {
            let sinks = gateway.sinks.borrow().all().cloned().collect();
            if let Err(error) = logs::rotate(sinks).await {
                rotates_from_ms = now_ms() + ROTATION_PAUSE_MS;
                gateway.server.log(Level::Error, &format!("cannot rotate a log: {error}"));
            }
        }
        gateway.pools.borrow_mut().retain(|pool| !pool.is_gone());
    }
}
