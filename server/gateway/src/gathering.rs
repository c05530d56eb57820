//! Gathers connections on the threads that [`crate::spread`] has chosen.
//!
//! Called by dispatch for each response, and by the server when its listeners change. Invariant: a connection is sent to
//! a thread that serves, or stays.

use crate::gateway::Gateway;
use outboard_http_server::MovedConnection;
use outboard_log::Level;
use std::rc::Rc;

/// Looks whether the load needs another number of threads, and has new connections go there.
pub(crate) fn look(gateway: &Gateway) {
    if gateway.spread.look() {
        steer(gateway);
    }
}

/// The listeners are others than before.
pub(crate) fn steer_again(gateway: &Gateway) {
    gateway.spread.forget_steered();
    steer(gateway);
}

/// Tells the kernel among how many threads to distribute new connections, if it was told something else. Any thread can.
fn steer(gateway: &Gateway) {
    let Some(active) = gateway.spread.to_steer() else { return };
    for bound in gateway.listeners.borrow().iter() {
        if let Err(error) = bound.steer(active as u32, gateway.share.count as u32) {
            let text = format!("{}: connections are not steered: {error}", bound.name());
            gateway.server.log(Level::Debug, &text);
        }
    }
}

/// Sends a connection to another thread.
pub(crate) fn send(gateway: &Rc<Gateway>, shard: usize, connection: MovedConnection) {
    let Some(handle) = gateway.shards.other(shard) else {
        debug_assert!(false, "there is no thread {shard} beside {}", gateway.share.index);
        return;
    };
    // Nobody waits for it: if the thread has ended, so does the connection.
    drop(handle.run(|gateway| async move {
        if let Err(error) = connection.serve(&gateway) {
            gateway.server.log(Level::Error, &format!("cannot watch a connection: {error}"));
        }
    }));
}
