//! One way of serving HTTP: a name, an address, the processes behind it.
//!
//! Peers and outboard build one each ([`crate::nginx`], [`crate::apache`],
//! [`crate::outboard`]); slices and experiments use all alike. Dropping it ends its processes.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crate::ask::Ask;
use crate::error::{Error, Result};
use crate::group::Group;
use crate::http;

/// A running stack.
pub struct Stack {
    /// Short name, the same in tables and reports.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    /// All its processes.
    pub group: Group,
}

impl Stack {
    /// Waits until the stack serves: an answer below status 500, whatever it is.
    pub fn await_answer(mut self) -> Result<Self> {
        let serves = |answer: http::Answer| answer.status < 500;
        self.group.await_start(|| http::get(self.address, "/").is_ok_and(serves))?;
        Ok(self)
    }

    /// Waits until the stack has nothing left to do, so that the work of one slice is not
    /// booked on the next: less than 2 ms of CPU in 40 ms. Bounded, as a stack may have timers.
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

/// An error unless all stacks answer the path with status 200 and the same bytes; how many bytes.
pub fn check_same_answers(stacks: &[&Stack], path: &str) -> Result<usize> {
    check_same(stacks, path, &Ask::get(path))
}

/// The same for any request.
pub fn check_same(stacks: &[&Stack], path: &str, ask: &Ask) -> Result<usize> {
    let answer = |stack: &&Stack| Ok((stack.name, http::send(stack.address, ask)?));
    let answers = stacks.iter().map(answer).collect::<Result<Vec<_>>>()?;
    let Some((_, first)) = answers.first() else { return Ok(0) };
    let same = answers.iter().all(|(_, answer)| answer.status == 200 && answer == first);
    if same {
        return Ok(first.body.len());
    }
    let answers = answers.iter().map(|(name, answer)| {
        let at = answer.first_difference(first);
        format!("{name}: {}{}", answer.summary(), at.map_or(String::new(), |at| answer.around(at)))
    });
    Err(Error::DifferentBytes { path: path.into(), answers: answers.collect() })
}
