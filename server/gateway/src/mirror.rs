//! [`Mirror`]: copies of a route's requests, sent to another server whose responses are discarded.
//!
//! One per route and thread, called by [`crate::proxy`]. Invariants: the request itself never waits for its copy; the number of copies in
//! progress is bounded, and so is their time.

use outboard_config as config;
use outboard_reactor::spawn_in_background;
use outboard_upstream::{Client, Request, Url};
use std::cell::Cell;
use std::rc::Rc;

/// The part of a response that is read, so that its connection can be used again.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Mirror {
    config: config::Mirror,
    /// Percent of requests since the last copy.
    due_percent: Cell<u32>,
    under_way: Rc<Cell<u32>>,
}

/// A copy in progress.
struct Copy(Rc<Cell<u32>>);

impl Drop for Copy {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Mirror {
    pub(crate) fn new(config: &config::Mirror) -> Self {
        Self { config: config.clone(), due_percent: Cell::new(0), under_way: Rc::default() }
    }

    /// Whether the next request is copied.
    fn takes(&self) -> Option<Copy> {
        let due_percent = self.due_percent.get() + self.config.percent;
        self.due_percent.set(due_percent % 100);
        if due_percent < 100 || self.under_way.get() >= self.config.max_requests {
            return None;
        }
        self.under_way.set(self.under_way.get() + 1);
        Some(Copy(self.under_way.clone()))
    }

    /// Sends a copy of a request, if it is its turn.
    pub(crate) fn copy(&self, client: &Rc<Client>, request: &Request) {
        let Some(copy) = self.takes() else { return };
        let url = [self.config.upstream.as_bytes(), request.url.target().as_bytes()].concat();
        let Ok(url) = Url::parse(&url) else { return };
        let mut request = request.clone();
        request.url = url;
        (request.endpoint, request.interims) = (None, None);
        request.preface.clear();
        request.retries = 0;
        request.timeout_ms = self.config.timeout_ms;
        request.connect_timeout_ms = self.config.timeout_ms;
        let client = client.clone();
        spawn_in_background(async move {
            let mut discarded = Vec::new();
            if let Ok(mut response) = client.send_once(&request).await {
                while discarded.len() < MAX_RESPONSE_BYTES
                    && matches!(response.read(&mut discarded).await, Ok(true))
                {}
            }
            drop(copy);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror(percent: u32, max_requests: u32) -> Mirror {
        let upstream = "http://127.0.0.1:1".to_owned();
        Mirror::new(&config::Mirror { upstream, percent, max_requests, timeout_ms: 1 })
    }

    #[test]
    fn a_share_of_requests_is_copied() {
        for (percent, expected) in [(100, 100), (25, 25), (1, 1), (33, 33)] {
            let mirror = mirror(percent, 1_000);
            let copies: Vec<_> = (0..100).filter_map(|_| mirror.takes()).collect();
            assert_eq!(copies.len(), expected);
        }
    }

    #[test]
    fn copies_in_progress_are_bounded() {
        let mirror = mirror(100, 2);
        let held: Vec<_> = (0..5).filter_map(|_| mirror.takes()).collect();
        assert_eq!(held.len(), 2);
        drop(held);
        assert!(mirror.takes().is_some());
    }
}
