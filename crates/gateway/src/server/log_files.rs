//! The log files of a running server: written regularly, reopened on request.
//!
//! Spawned by each thread of the server. Invariant: a line is written within a quarter of a second.

use crate::gateway::Gateway;
use crate::logs;
use outboard_log::Level;
use outboard_reactor as reactor;
use std::rc::Rc;

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
    loop {
        reactor::activity().await;
        reactor::sleep(250).await;
        gateway.sinks.borrow().flush(&mut waiting);
        gateway.pools.borrow_mut().retain(|pool| !pool.is_gone());
    }
}
