//! [`Attempt`]: a request at a server, from the choice to the end of its response.
//!
//! Made by the group, held by the gateway until the response has ended. Invariants: it counts as under way
//! while it exists; its outcome is recorded once, and one without an outcome counts as neither.

use super::Group;
use crate::health::Change;
use crate::server::Server;
use std::cell::Cell;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Attempt {
    group: Arc<Group>,
    server: Arc<Server>,
    sent_ms: u64,
    is_recorded: Cell<bool>,
    /// The value of the cookie that the client needs.
    new_cookie: Option<Box<[u8]>>,
}

impl Attempt {
    pub(crate) fn new(
        group: Arc<Group>,
        server: Arc<Server>,
        new_cookie: Option<Box<[u8]>>,
        sent_ms: u64,
    ) -> Self {
        server.begin();
        group.begin();
        Self { group, server, sent_ms, is_recorded: Cell::new(false), new_cookie }
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The value of the sticky cookie, if the client does not have it.
    pub fn new_cookie(&self) -> Option<&[u8]> {
        self.new_cookie.as_deref()
    }

    /// The head of a response that is no failure has arrived, after so long.
    pub fn succeeded(&self, us: u64, now_ms: u64) -> Option<Change> {
        self.server.took(us);
        if self.is_recorded.replace(true) {
            return None;
        }
        self.group.record(false, self.sent_ms, now_ms);
        self.server.health.succeeded(self.sent_ms, now_ms)
    }

    /// It has failed, also after the head of its response. The second result is whether the circuit breaker
    /// has opened.
    pub fn failed(&self, now_ms: u64) -> (Option<Change>, bool) {
        self.is_recorded.set(true);
        let opens = self.group.record(true, self.sent_ms, now_ms);
        (self.server.failed(self.group.rules(), now_ms), opens)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.server.end();
        self.group.end();
    }
}
