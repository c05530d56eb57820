//! [`Member`]: a server's place in a group: its weight, its limit, its cookie.
//!
//! Made by the group for each server of its configuration, and for each address of a server's name.

use crate::server::Server;
use crate::sticky;
use outboard_config::{UpstreamGroup, UpstreamServer};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See the module.
#[derive(Debug, Clone)]
pub struct Member {
    /// The server.
    pub server: Arc<Server>,
    /// Its share of the requests.
    pub weight: u32,
    /// Whether it gets requests only while no other server is up.
    pub is_backup: bool,
    pub(crate) max_connections: usize,
    /// The value of its cookie.
    pub(crate) cookie: Box<[u8]>,
}

impl Member {
    pub(crate) fn new(
        rules: &UpstreamGroup,
        config: &UpstreamServer,
        address: Option<IpAddr>,
        known: &[Self],
    ) -> Self {
        let server = Server::new(config, address);
        let known = known.iter().find(|member| member.server.name() == server.name());
        let server = known.map_or_else(|| Arc::new(server), |member| member.server.clone());
        let most = config.max_connections.map_or(usize::MAX, |most| most as usize);
        let cookie = rules.sticky.as_ref();
        Self {
            weight: config.weight,
            is_backup: config.is_backup,
            max_connections: most,
            cookie: cookie
                .map(|cookie| sticky::value(cookie, &rules.name, server.name()))
                .unwrap_or_default(),
            server,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.server.under_way.load(Ordering::Relaxed) < self.max_connections
    }

    /// Its weight now, in hundredths.
    pub(crate) fn weight_now(&self, slow_start_ms: u64, now_ms: u64) -> u64 {
        u64::from(self.weight) * self.server.health.share(slow_start_ms, now_ms)
    }
}
