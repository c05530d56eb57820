//! The metrics of the servers of upstreams.

use super::page::Page;
use outboard_admin_api::status::{UpstreamGroup, UpstreamServer};

/// The states of a server.
const STATES: [&str; 4] = ["up", "ejected", "down", "drained"];

pub(super) fn write(page: &mut Page, groups: &[UpstreamGroup]) {
    if groups.is_empty() {
        return;
    }
    let servers = groups.iter().flat_map(|group| {
        let labels = |server: &UpstreamServer| {
            [("upstream", group.name.clone()), ("server", server.server.clone())]
        };
        group.servers.iter().map(move |server| (labels(server), server))
    });
    let servers: Vec<_> = servers.collect();
    page.each(
        &servers,
        &[
            ("outboard_upstream_server_requests_total", "Attempts at a server.", |one| {
                one.requests
            }),
            ("outboard_upstream_server_failures_total", "Failed attempts.", |one| one.failures),
            ("outboard_upstream_server_under_way", "Requests in progress.", |one| {
                one.under_way as u64
            }),
            (
                "outboard_upstream_server_response_microseconds_total",
                "Time to the heads of responses.",
                |one| one.total_us,
            ),
        ],
    );
    page.metric("outboard_upstream_server_state", "The state of a server, which is 1.");
    for (labels, server) in &servers {
        for state in STATES {
            let [upstream, name] = labels.each_ref().map(|(key, value)| (*key, value.as_str()));
            let is_it = u64::from(server.state == state);
            page.sample(&[upstream, name, ("state", state)], is_it);
        }
    }
    page.metric("outboard_upstream_breaker_open", "Whether the circuit breaker refuses requests.");
    for group in groups {
        page.sample(&[("upstream", &group.name)], u64::from(group.open));
    }
}
