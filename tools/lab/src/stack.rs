//! One way of serving HTTP: a name, an address, the processes behind it.
//!
//! Each kind of stack builds one ([`crate::nginx`], [`crate::apache`], [`crate::outboard`]); slices
//! and experiments treat all alike. Dropping it ends its processes.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::group::Group;
use crate::http;
use crate::request_spec::RequestSpec;

/// A running stack.
pub struct Stack {
    /// The name in tables and reports.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    /// All its processes.
    pub group: Group,
}

impl Stack {
    /// Waits for a response with a status below 500.
    pub fn await_response(mut self) -> Result<Self> {
        let serves = |response: http::Response| response.status < 500;
        self.group.await_start(|| http::get(self.address, "/").is_ok_and(serves))?;
        Ok(self)
    }

    /// Waits until the stack is idle, so that the work of one slice is not charged to the next:
    /// less than 2 ms of CPU in 40 ms. Bounded, since a stack may have timers.
    pub fn settle(&self) {
        let mut before = self.group.cpu_us();
        for _ in 0..50 {
            thread::sleep(Duration::from_millis(40));
            let now = self.group.cpu_us();
            if now.saturating_sub(before) < 2_000 {
                return;
            }
            before = now;
        }
    }
}

/// The length of the body, if all stacks return status 200 and the same bytes for the path.
pub fn check_same_responses(stacks: &[&Stack], path: &str) -> Result<usize> {
    check_same(stacks, path, &RequestSpec::get(path))
}

/// The same for any request.
pub fn check_same(stacks: &[&Stack], path: &str, request: &RequestSpec) -> Result<usize> {
    let response = |stack: &&Stack| Ok((stack.name, http::send(stack.address, request)?));
    let responses = stacks.iter().map(response).collect::<Result<Vec<_>>>()?;
    let Some((_, first)) = responses.first() else { return Ok(0) };
    let same = responses.iter().all(|(_, response)| response.status == 200 && response == first);
    if same {
        return Ok(first.body.len());
    }
    let responses = responses.iter().map(|(name, response)| {
        let at = response.first_difference(first);
        format!(
            "{name}: {}{}",
            response.summary(),
            at.map_or(String::new(), |at| response.around(at))
        )
    });
    Err(Error::DifferentBytes { path: path.into(), responses: responses.collect() })
}
