//! [`RecentSlow`]: the latest requests that took long, for the dashboard.
//!
//! One per thread for those that were written to the slow log, which its pools of all generations share, and one in the
//! gateway for proxied ones. Invariant: it holds at most [`REQUESTS_MAX`]
//! requests, of at most [`BACKTRACE_MAX_BYTES`] and [`LABEL_MAX_BYTES`] each.

use outboard_admin_api::dashboard::SlowRequest;
use std::cell::RefCell;
use std::collections::VecDeque;

const REQUESTS_MAX: usize = 32;
const BACKTRACE_MAX_BYTES: usize = 4 << 10;
const LABEL_MAX_BYTES: usize = 512;

/// See the module.
#[derive(Debug, Default)]
pub struct RecentSlow(RefCell<VecDeque<SlowRequest>>);

impl RecentSlow {
    /// Adds a request, and drops the earliest one if there is no room.
    pub fn add(&self, mut request: SlowRequest) {
        shorten(&mut request.request, LABEL_MAX_BYTES);
        shorten(&mut request.backtrace, BACKTRACE_MAX_BYTES);
        let mut requests = self.0.borrow_mut();
        requests.truncate(REQUESTS_MAX - 1);
        requests.push_front(request);
    }

    /// The requests, the latest first.
    pub fn list(&self) -> Vec<SlowRequest> {
        self.0.borrow().iter().cloned().collect()
    }
}

/// Also gives back the memory of what is cut off.
pub(crate) fn shorten(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        text.truncate(text.floor_char_boundary(max_bytes - '…'.len_utf8()));
        text.push('…');
    }
    debug_assert!(text.len() <= max_bytes, "{} bytes", text.len());
    text.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_requests_are_held_and_cut() {
        let recent = RecentSlow::default();
        for took_ms in 0..100 {
            recent.add(SlowRequest {
                at_ms: 0,
                app: "site".to_owned(),
                request: format!("GET /{}", "ä".repeat(2_000)),
                took_ms,
                pid: None,
                server: None,
                backtrace: "#0 f()\n".repeat(9_000),
            });
        }
        let list = recent.list();
        assert_eq!((list.len(), list[0].took_ms, list[31].took_ms), (REQUESTS_MAX, 99, 68));
        assert!(list.iter().all(|one| one.request.len() <= LABEL_MAX_BYTES));
        assert!(list.iter().all(|one| one.backtrace.capacity() <= BACKTRACE_MAX_BYTES + 8));
        assert!(list[0].request.ends_with('…'));
    }
}
