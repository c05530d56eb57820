//! The groups of servers as status and metrics report them.
//!
//! Called by [`crate::status`] on the lead's thread: the state is that of all threads.

use super::Upstreams;
use outboard_admin_api::status::{UpstreamGroup, UpstreamServer};
use outboard_reactor::now_ms;

/// All groups with their servers.
pub(crate) fn status(upstreams: &Upstreams) -> Vec<UpstreamGroup> {
    let now_ms = now_ms();
    let groups = upstreams.groups().map(|group| {
        let servers = group.members().into_iter().map(|member| {
            let figures = member.server.figures();
            UpstreamServer {
                server: member.server.name().to_owned(),
                state: member.server.state(now_ms).word().to_owned(),
                weight: member.weight,
                backup: member.is_backup,
                under_way: figures.under_way,
                requests: figures.requests,
                failures: figures.failures,
                recent_us: figures.recent_us,
                total_us: figures.total_us,
            }
        });
        UpstreamGroup {
            name: group.rules().name.clone(),
            open: group.is_open(),
            servers: servers.collect(),
        }
    });
    groups.collect()
}
