//! [`Group`]: the servers of an upstream, and the choice of one for a request.
//!
//! One per `[upstream.NAME]` of a configuration, shared by all threads. Invariants: a choice holds the lock
//! for a pass over the servers and allocates nothing; servers of the predecessor's group that remain keep
//! their state; a name whose addresses are unknown is a server of its own.

mod attempt;

use crate::breaker::CircuitBreaker;
use crate::health::State;
use crate::member::Member;
use crate::rendezvous;
use crate::retry_budget::RetryBudget;
use crate::round_robin;
use crate::server::Server;
use outboard_config::{Balance, UpstreamGroup};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use attempt::Attempt;

/// The most addresses of a name that become servers.
const MAX_ADDRESSES: usize = 32;

/// See the module.
#[derive(Debug)]
pub struct Group {
    rules: UpstreamGroup,
    state: Mutex<Members>,
    under_way: AtomicUsize,
    breaker: Option<CircuitBreaker>,
    budget: RetryBudget,
}

#[derive(Debug, Default)]
struct Members {
    all: Vec<Member>,
    /// How many of them each server of the configuration is.
    counts: Vec<usize>,
    /// What each has gained in round robin.
    gains: Vec<i64>,
}

/// What a choice depends on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Choice<'a> {
    /// The hash of the request's key, if it has one.
    pub key: Option<u64>,
    /// The value of the sticky cookie.
    pub cookie: Option<&'a [u8]>,
    /// The servers of earlier attempts.
    pub tried: &'a [Arc<Server>],
    /// Whether the request can be retried, so that it may find out whether a server is up again.
    pub may_try_out: bool,
}

/// Why there is no server for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Every server is down or drained, or was tried.
    Down,
    /// The limits of requests are reached.
    Busy,
    /// The circuit breaker is open.
    Open,
}

impl Group {
    /// A group; `known` is the predecessor's of the same name.
    pub fn new(rules: UpstreamGroup, known: Option<&Self>) -> Arc<Self> {
        let before = known.map(|known| known.lock());
        let known_members = before.as_ref().map_or(&[][..], |before| &before.all);
        let mut members = Members::default();
        for config in &rules.servers {
            // A name that was resolved before is so until it is resolved again.
            let of_origin = |member: &&Member| member.server.origin() == config.origin;
            let addresses = known_members.iter().filter(of_origin).filter_map(address);
            let addresses: Vec<Option<IpAddr>> = match config.socket {
                None => addresses.map(Some).collect(),
                Some(_) => Vec::new(),
            };
            let addresses = if addresses.is_empty() { vec![None] } else { addresses };
            members.counts.push(addresses.len());
            let new = |address| Member::new(&rules, config, address, known_members);
            members.all.extend(addresses.into_iter().map(new));
        }
        drop(before);
        members.gains = vec![0; members.all.len()];
        Arc::new(Self {
            breaker: rules.breaker.map(CircuitBreaker::new),
            budget: RetryBudget::new(rules.retry_percent),
            rules,
            state: Mutex::new(members),
            under_way: AtomicUsize::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its configuration has become active: without checks, no server is down by them.
    pub fn activate(&self) {
        if self.rules.health_check.is_none() {
            self.lock().all.iter().for_each(|member| member.server.health.forget_checks());
        }
    }

    /// Its configuration.
    pub fn rules(&self) -> &UpstreamGroup {
        &self.rules
    }

    /// The present servers.
    pub fn members(&self) -> Vec<Member> {
        self.lock().all.clone()
    }

    /// Whether the circuit breaker refuses requests.
    pub fn is_open(&self) -> bool {
        self.breaker.as_ref().is_some_and(CircuitBreaker::is_open)
    }

    /// The name of a server of the configuration has these addresses. Returns whether that is new. Servers
    /// whose address is gone complete their requests.
    pub fn set_addresses(&self, number: usize, addresses: &[IpAddr]) -> bool {
        let mut addresses: Vec<IpAddr> = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(MAX_ADDRESSES);
        let mut members = self.lock();
        let from: usize = members.counts[..number].iter().sum();
        let range = from..from + members.counts[number];
        let present = members.all[range.clone()].iter().map(address);
        if addresses.is_empty() || present.eq(addresses.iter().copied().map(Some)) {
            return false;
        }
        let config = &self.rules.servers[number];
        let known = &members.all;
        let new = |address: &IpAddr| Member::new(&self.rules, config, Some(*address), known);
        let new: Vec<Member> = addresses.iter().map(new).collect();
        members.counts[number] = new.len();
        members.all.splice(range, new);
        members.gains = vec![0; members.all.len()];
        true
    }

    /// Chooses the server of a request's first attempt.
    ///
    /// # Errors
    /// There is none.
    pub fn choose(self: &Arc<Self>, choice: Choice<'_>, now_ms: u64) -> Result<Attempt, Refused> {
        let most = self.rules.max_requests.map_or(usize::MAX, |most| most as usize);
        if self.under_way.load(Ordering::Relaxed) >= most {
            return Err(Refused::Busy);
        }
        if self.breaker.as_ref().is_some_and(|breaker| !breaker.admits(now_ms)) {
            return Err(Refused::Open);
        }
        self.budget.add();
        self.attempt(choice, now_ms)
    }

    /// Chooses the server of a retry; `None` if none is left, or no retry.
    pub fn choose_again(self: &Arc<Self>, choice: Choice<'_>, now_ms: u64) -> Option<Attempt> {
        let is_left = choice.tried.len() <= self.rules.retries as usize;
        let attempt = is_left.then(|| self.attempt(choice, now_ms).ok())??;
        self.budget.take().then_some(attempt)
    }

    fn attempt(self: &Arc<Self>, choice: Choice<'_>, now_ms: u64) -> Result<Attempt, Refused> {
        let mut members = self.lock();
        let position = self.position(&mut members, choice, now_ms)?;
        let member = &members.all[position];
        let is_new = !member.cookie.is_empty() && choice.cookie != Some(&member.cookie);
        let cookie = is_new.then(|| member.cookie.clone());
        // It counts before the lock is released, so that limits hold.
        Ok(Attempt::new(self.clone(), member.server.clone(), cookie, now_ms))
    }

    fn position(
        &self,
        members: &mut Members,
        choice: Choice<'_>,
        now_ms: u64,
    ) -> Result<usize, Refused> {
        let Members { all, gains, .. } = members;
        let is_fresh =
            |member: &Member| !choice.tried.iter().any(|tried| Arc::ptr_eq(tried, &member.server));
        let is_usable = |member: &Member| {
            member.server.state(now_ms) == State::Up && member.has_room() && is_fresh(member)
        };
        if let Some(cookie) = choice.cookie.filter(|cookie| !cookie.is_empty())
            && let Some(position) = all.iter().position(|one| *one.cookie == *cookie)
            && is_usable(&all[position])
        {
            return Ok(position);
        }
        if let Some(position) = self.trial(all, choice, now_ms, is_fresh) {
            return Ok(position);
        }
        for is_backup in [false, true] {
            let usable = all.iter().enumerate();
            let usable = usable.filter(|(_, one)| one.is_backup == is_backup && is_usable(one));
            let found = match (self.rules.balance, choice.key) {
                (Balance::LeastConnections, _) => self.least_loaded(gains, usable, now_ms),
                (Balance::Hash, Some(key)) => self.highest(usable, key, now_ms),
                (Balance::RoundRobin | Balance::Hash, _) => {
                    let weight = |one: &Member| one.weight_now(self.rules.slow_start_ms, now_ms);
                    round_robin::choose(gains, usable.map(|(at, one)| (at, weight(one))))
                }
            };
            if let Some(position) = found {
                return Ok(position);
            }
        }
        let is_ejected = |member: &Member| {
            matches!(member.server.state(now_ms), State::Ejected | State::TrialDue)
        };
        let rest = all.iter().enumerate();
        let rest = rest.filter(|(_, one)| is_ejected(one) && one.has_room() && is_fresh(one));
        let soonest = rest.min_by_key(|(_, one)| one.server.health.out_until_ms());
        if let Some((position, _)) = soonest {
            return Ok(position);
        }
        let is_up = |one: &Member| {
            !matches!(one.server.state(now_ms), State::Down | State::Drained) && is_fresh(one)
        };
        Err(if all.iter().any(is_up) { Refused::Busy } else { Refused::Down })
    }

    /// An ejected server that the request finds out about. If no request that can be retried comes, any one
    /// will do.
    fn trial(
        &self,
        all: &[Member],
        choice: Choice<'_>,
        now_ms: u64,
        is_fresh: impl Fn(&Member) -> bool,
    ) -> Option<usize> {
        let timeout_ms = self.rules.fail_timeout_ms;
        let due_ms = if choice.may_try_out { now_ms } else { now_ms.saturating_sub(timeout_ms) };
        all.iter().position(|member| {
            let health = &member.server.health;
            health.state(due_ms) == State::TrialDue
                && member.has_room()
                && is_fresh(member)
                && health.try_out(now_ms, timeout_ms)
        })
    }

    /// Those with equal load get requests in turn.
    fn least_loaded<'m>(
        &self,
        gains: &mut [i64],
        usable: impl Iterator<Item = (usize, &'m Member)> + Clone,
        now_ms: u64,
    ) -> Option<usize> {
        let weight = |member: &Member| member.weight_now(self.rules.slow_start_ms, now_ms);
        let load = |member: &Member| {
            let under_way = member.server.under_way.load(Ordering::Relaxed) as u64 + 1;
            under_way * 1_000_000 / weight(member)
        };
        let least = usable.clone().map(|(_, member)| load(member)).min()?;
        // Another thread may have changed it since.
        let lightest = usable.filter(|(_, member)| load(member) <= least);
        round_robin::choose(gains, lightest.map(|(at, one)| (at, weight(one))))
    }

    fn highest<'m>(
        &self,
        usable: impl Iterator<Item = (usize, &'m Member)>,
        key: u64,
        now_ms: u64,
    ) -> Option<usize> {
        let score = |member: &Member| {
            let weight = member.weight_now(self.rules.slow_start_ms, now_ms);
            rendezvous::score(key, member.server.hash, weight)
        };
        usable
            .map(|(position, member)| (position, score(member)))
            .max_by(|one, other| one.1.total_cmp(&other.1))
            .map(|(position, _)| position)
    }

    pub(crate) fn begin(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// An attempt has ended. True if that has opened the circuit breaker.
    pub(crate) fn record(&self, has_failed: bool, sent_ms: u64, now_ms: u64) -> bool {
        self.breaker.as_ref().is_some_and(|breaker| breaker.record(has_failed, sent_ms, now_ms))
    }
}

/// The resolved address of a member.
fn address(member: &Member) -> Option<IpAddr> {
    match &member.server.endpoint()?.address {
        outboard_upstream::EndpointAddress::Tcp(address) => Some(address.ip()),
        outboard_upstream::EndpointAddress::Unix(_) => None,
    }
}

#[cfg(test)]
mod tests;
