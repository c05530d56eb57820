//! The end of a thread of the server.
//!
//! Called on each thread when the server stops. Invariant: it takes no longer than the drain timeout, after an
//! upgrade that of WebSocket, the `stop_timeout` of a process, and the time to reap what was killed.

use super::control_signals::ControlSignals;
use crate::datagrams;
use crate::gateway::Gateway;
use crate::listeners;
use outboard_reactor::{self as reactor, now_ms, spawn};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Completes requests that have started, within the drain timeout. After an upgrade also those that are on
/// their way on open connections, and tunnels stay open; tasks are left to the new server, but for those that
/// run.
pub(super) async fn drain(gateway: &Rc<Gateway>, is_upgraded: bool) {
    listeners::stop(gateway);
    datagrams::stop(gateway);
    listeners::closed(gateway).await;
    match is_upgraded {
        false => gateway.server.drain(),
        true => {
            gateway.server.leave();
            spawn(end_idle(gateway.clone()));
            spawn(end_tunnels(gateway.clone()));
        }
    }
    let processes_until_ms = now_ms() + gateway.processes.stop_ms();
    gateway.processes.stop();
    let stop_tasks = || gateway.generation().tasks().for_each(|tasks| tasks.stop());
    if !is_upgraded {
        stop_tasks();
    }
    let drain_timeout_ms = gateway.generation().config.drain_timeout_ms;
    let (begun_ms, until_ms) = (now_ms(), now_ms() + drain_timeout_ms);
    let is_needed = || {
        gateway.server.shared.open_connections() > 0
            || (is_upgraded && (now_ms() < begun_ms + CRON_MS || is_needed_by_others(gateway)))
    };
    while is_needed() && now_ms() < until_ms {
        reactor::sleep(10).await;
    }
    if is_upgraded {
        stop_tasks();
    }
    gateway.generation().retire_pools(until_ms.saturating_sub(now_ms()));
    let pools = gateway.pools.borrow().clone();
    pools.iter().for_each(|pool| pool.retire(until_ms.saturating_sub(now_ms())));
    let is_busy = || {
        gateway.pools.borrow().iter().any(|pool| !pool.is_gone())
            || gateway.generation().tasks().any(|tasks| tasks.is_writing())
            || gateway.links.borrow().iter().any(|link| !link.is_quiet())
    };
    while is_busy() && now_ms() < until_ms + KILL_GRACE_MS {
        reactor::sleep(10).await;
    }
    // They may take longer than requests.
    while !gateway.processes.is_empty() && now_ms() < processes_until_ms {
        reactor::sleep(10).await;
    }
    // Nothing needs the new server any more, which can recover tasks that were not finished.
    gateway.links.borrow().iter().for_each(|link| link.close());
    let tunnels_until_ms = begun_ms + tunnels_ms(gateway) + CLOSE_MS;
    while is_upgraded && gateway.server.open_tunnels() > 0 && now_ms() < tunnels_until_ms {
        reactor::sleep(10).await;
    }
    let tracer = gateway.generation().tracer.clone();
    if let Some(tracer) = tracer {
        tracer.finish().await;
    }
    for sink in gateway.sinks.borrow().all() {
        sink.flush();
    }
}

/// Whether tasks run, or an older server reads and writes records by this one.
fn is_needed_by_others(gateway: &Gateway) -> bool {
    gateway.generation().tasks().any(|tasks| tasks.is_busy())
        || gateway.links.borrow().iter().any(|link| link.is_needed())
}

/// Closes the connections on which no request has arrived for a while, and only these: tunnels end with the
/// server.
async fn end_idle(gateway: Rc<Gateway>) {
    reactor::sleep(LAST_REQUEST_MS).await;
    gateway.server.close_idle();
}

/// Ends WebSocket connections once their time is over.
async fn end_tunnels(gateway: Rc<Gateway>) {
    reactor::sleep(tunnels_ms(&gateway)).await;
    gateway.server.end_tunnels();
}

/// As the old server of an upgrade: a stop ends WebSocket connections before their time is over.
pub(super) async fn end_tunnels_at_stop(gateway: Rc<Gateway>, signals: ControlSignals) {
    let is_stopped = || if signals.should_stop(&gateway) { Poll::Ready(()) } else { Poll::Pending };
    poll_fn(|_| is_stopped()).await;
    gateway.server.end_tunnels();
    gateway.shards.on_followers(async |follower| follower.server.end_tunnels()).await;
}

/// The time for WebSocket connections after an upgrade.
fn tunnels_ms(gateway: &Gateway) -> u64 {
    gateway.generation().config.websocket_drain_timeout_ms
}

/// The time for a last request on a connection of HTTP/1.1 after an upgrade.
const LAST_REQUEST_MS: u64 = 5_000;
/// The time in which tasks of `cron` are queued that were due before the upgrade.
const CRON_MS: u64 = 100;
/// The time for clients of WebSocket to respond to a close frame.
const CLOSE_MS: u64 = 2_500;
/// The time for killed workers to be reaped.
const KILL_GRACE_MS: u64 = 500;
