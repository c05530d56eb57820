//! Metrics of the rate limits that gateways share.
//!
//! Invariant: without a server for them there are none.

use super::page::Page;
use crate::gateway::Gateway;
use std::sync::atomic::Ordering;

/// Writes them.
pub(super) fn write(page: &mut Page, gateway: &Gateway) {
    let generation = gateway.generation();
    if generation.rate_sharing.is_none() {
        return;
    }
    let state = &generation.access.sharing;
    let away = state.away.load(Ordering::Relaxed) as u64;
    let name = "outboard_rate_sharing_threads_away";
    page.single(name, "Threads that do not reach the server of shared rate limits.", away);
    for (name, help, count) in [
        (
            "outboard_rate_sharing_asked_total",
            "Requests that have waited for the server of shared rate limits.",
            &state.asked,
        ),
        (
            "outboard_rate_sharing_local_total",
            "Requests with shared limits that the gateway has decided by itself.",
            &state.local,
        ),
    ] {
        page.single(name, help, count.load(Ordering::Relaxed));
    }
}
