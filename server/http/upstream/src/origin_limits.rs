//! [`OriginLimits`]: how many requests, responses and connections one origin may have, whichever loop they
//! belong to.
//!
//! Shared by the [`crate::origin_pool`] of every loop. Invariants: a [`Right`] counts from the wait for it
//! until it is dropped; rights are granted in the order of the requests; the lock is held for a few
//! instructions, and nothing is woken meanwhile.

use crate::error::{Error, Kind};
use crate::permits::Permits;
use crate::settings::Settings;
use crate::sockets::Sockets;
use outboard_reactor::{Elapsed, now_ms, with_deadline};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// See the module.
#[derive(Debug)]
pub(crate) struct OriginLimits {
    origin: Box<str>,
    most_responses: usize,
    most_waiting: usize,
    most_idle: usize,
    wait_ms: u64,
    present: Mutex<Present>,
    idle: AtomicUsize,
    sockets: Arc<Sockets>,
}

/// The present use.
#[derive(Debug)]
struct Present {
    requests: Permits,
    responses: usize,
}

impl OriginLimits {
    pub(crate) fn new(origin: &str, settings: &Settings) -> Arc<Self> {
        let requests = Permits::new(settings.requests_per_host);
        let connections = settings.requests_per_host.saturating_add(settings.responses_per_host);
        Arc::new(Self {
            origin: origin.into(),
            most_responses: settings.responses_per_host,
            most_waiting: settings.waiting_per_host,
            most_idle: settings.idle_per_host,
            wait_ms: settings.wait_ms,
            present: Mutex::new(Present { requests, responses: 0 }),
            idle: AtomicUsize::new(0),
            sockets: Sockets::new(connections),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may begin, until `until_ms` at most.
    pub(crate) async fn enter(self: &Arc<Self>, until_ms: u64) -> Result<Right, Error> {
        let mut right = self.begin()?;
        if let Stage::Waiting(place) = right.stage {
            let patience_ms = now_ms() + self.wait_ms;
            let granted = poll_fn(|context| self.lock().requests.poll(place, context.waker()));
            if let Err(Elapsed) = with_deadline(until_ms.min(patience_ms), granted).await {
                return Err(self.busy(", and none ended in time"));
            }
            right.stage = Stage::Request;
        }
        Ok(right)
    }

    fn begin(self: &Arc<Self>) -> Result<Right, Error> {
        let mut present = self.lock();
        let stage = match present.requests.try_take() {
            true => Stage::Request,
            false if present.requests.waiting() < self.most_waiting => {
                Stage::Waiting(present.requests.join())
            }
            false => {
                drop(present);
                return Err(self.busy(" and as many wait as may"));
            }
        };
        drop(present);
        Ok(Right { limits: self.clone(), stage })
    }

    fn busy(&self, what: &str) -> Error {
        let most = self.lock().requests.most();
        let message = format!("{most} requests to {} are under way{what}", self.origin);
        Error::new(Kind::Busy, message)
    }

    /// Connections, as many as requests and responses together. A loop cannot use those that are idle in
    /// another, and has them closed.
    pub(crate) fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }

    /// The right to keep an idle connection.
    pub(crate) fn keep_idle(self: &Arc<Self>) -> Option<IdleRight> {
        let one_more = |idle| (idle < self.most_idle).then_some(idle + 1);
        let counted = self.idle.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.is_ok().then(|| IdleRight(self.clone()))
    }

    /// The number of waiting requests.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().requests.waiting()
    }
}

/// The right to one concurrent request or response, or a place in the queue for it.
#[derive(Debug)]
pub(crate) struct Right {
    limits: Arc<OriginLimits>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Waiting(u64),
    Request,
    Response,
}

impl Right {
    pub(crate) fn is_response(&self) -> bool {
        matches!(self.stage, Stage::Response)
    }

    /// Counts as a response from now on, unless as many responses arrive as may. False if it counts as
    /// before.
    pub(crate) fn count_as_response(&mut self) -> bool {
        let mut present = self.limits.lock();
        if !matches!(self.stage, Stage::Request) || present.responses >= self.limits.most_responses
        {
            return false;
        }
        present.responses += 1;
        self.stage = Stage::Response;
        let next = present.requests.release();
        drop(present);
        next.into_iter().for_each(Waker::wake);
        true
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        let mut present = self.limits.lock();
        let next = match self.stage {
            Stage::Waiting(place) => present.requests.leave(place),
            Stage::Request => present.requests.release(),
            Stage::Response => {
                present.responses -= 1;
                None
            }
        };
        drop(present);
        next.into_iter().for_each(Waker::wake);
    }
}

/// The right to one idle connection.
#[derive(Debug)]
pub(crate) struct IdleRight(Arc<OriginLimits>);

impl Drop for IdleRight {
    fn drop(&mut self) {
        self.0.idle.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
