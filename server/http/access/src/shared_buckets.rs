//! [`SharedBuckets`]: what one thread of a gateway knows of the buckets that gateways share on a server.
//!
//! The server has the buckets; a thread takes tokens of them in batches. As long as many are left, a request
//! takes one here and the server hears of it afterwards: with the next batch, as a debt that it accepts in any
//! case. With few left, requests ask, together, and wait for that batch. The caller has the connection
//! and the clock. Invariants:
//!
//! * What a thread takes without asking is at most a part of what the server had ([`TRUST`]); whatever several
//!   take too much is a debt that all wait for. So over time the gateways admit the rate exactly.
//! * A bucket that is known to be empty refuses at once, without the server.
//! * What is held is bounded: [`VIEWS_MAX`] buckets, and [`WAITING_MAX`] requests; beyond these the caller
//!   decides by its own bucket.

use crate::limit_id::BucketId;
use crate::rate::{Rate, Spending};
use std::collections::{HashMap, VecDeque};

/// The part of the tokens that is taken without asking.
const TRUST: u64 = 8;
/// Buckets that are known.
const VIEWS_MAX: usize = 65_536;
/// Requests that wait for the server.
const WAITING_MAX: usize = 10_000;
/// Buckets of a batch: the server is busy with one for a fraction of a millisecond.
const BATCH_MAX: usize = 128;

/// See the module. `W` is a request that waits.
#[derive(Debug)]
pub struct SharedBuckets<W> {
    views: HashMap<BucketId, View<W>>,
    /// Those that the server has to hear of, in order.
    changed: VecDeque<BucketId>,
    /// Those of the batch that is at the server.
    sent: Vec<BucketId>,
    waiting: usize,
    asking: usize,
}

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is admitted or refused.
    Known(Spending),
    /// The server has to be asked: [`SharedBuckets::ask`].
    Ask,
}

/// What the server learns and is asked about a bucket: it takes `taken` tokens in any case (if negative, it gets
/// some back), and as many of `asked` as there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The bucket.
    pub id: BucketId,
    /// Its rate.
    pub rate: Rate,
    /// Tokens that were taken.
    pub taken: i64,
    /// Tokens that are needed.
    pub asked: u32,
}

/// What the server replies about a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// As many of the tokens that were asked for.
    pub tokens: u32,
    /// The time until the bucket is full.
    pub debt_ns: u64,
}

#[derive(Debug)]
struct View<W> {
    rate: Rate,
    /// When it is full, by the last reply and what was taken since.
    full_at_ns: u64,
    /// Tokens that the server has not heard of.
    taken: i64,
    /// Tokens whose batch is at the server.
    under_way: i64,
    /// Requests that need tokens, with how many.
    waiting: VecDeque<(u32, W)>,
    /// Those of them whose batch is at the server.
    asked: usize,
    is_changed: bool,
}

impl<W> Default for SharedBuckets<W> {
    fn default() -> Self {
        Self {
            views: HashMap::new(),
            changed: VecDeque::new(),
            sent: Vec::new(),
            waiting: 0,
            asking: 0,
        }
    }
}

impl<W> SharedBuckets<W> {
    /// Takes tokens of a bucket, if that can be decided here; `None`: too much is held.
    pub fn spend(&mut self, id: BucketId, rate: &Rate, cost: u32, now_ns: u64) -> Option<Answer> {
        let view = self.view(id, rate, now_ns)?;
        let (next, spending) = rate.spend(view.full_at_ns, cost, now_ns);
        let Some(next) = next else { return Some(Answer::Known(spending)) };
        let unheard = (view.taken + view.under_way).max(0).unsigned_abs();
        let left = u64::from(spending.remaining) + u64::from(cost) + unheard;
        if !view.waiting.is_empty() || unheard + u64::from(cost) > left / TRUST {
            return Some(Answer::Ask);
        }
        view.full_at_ns = next;
        view.taken += i64::from(cost);
        self.note(id);
        Some(Answer::Known(spending))
    }

    /// Has a request wait for tokens; it is given back if too many wait.
    ///
    /// # Errors
    /// The request.
    pub fn ask(
        &mut self,
        id: BucketId,
        rate: &Rate,
        cost: u32,
        request: W,
        now_ns: u64,
    ) -> Result<(), W> {
        if self.waiting >= WAITING_MAX {
            return Err(request);
        }
        let Some(view) = self.view(id, rate, now_ns) else { return Err(request) };
        view.waiting.push_back((cost, request));
        self.waiting += 1;
        self.asking += 1;
        self.note(id);
        Ok(())
    }

    /// Whether the server has to hear of something.
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether a request waits whose batch is not at the server.
    pub fn is_asking(&self) -> bool {
        self.asking > 0
    }

    /// The next batch; [`Self::settle`] or [`Self::fail`] follows before another one.
    pub fn batch(&mut self) -> Vec<Entry> {
        let count = self.changed.len().min(BATCH_MAX);
        self.sent = self.changed.drain(..count).collect();
        let mut entries = Vec::with_capacity(count);
        for id in &self.sent {
            let Some(view) = self.views.get_mut(id) else { continue };
            view.is_changed = false;
            view.under_way = std::mem::take(&mut view.taken);
            view.asked = view.waiting.len();
            self.asking -= view.asked;
            let asked =
                view.waiting.iter().fold(0, |sum: u32, (cost, _)| sum.saturating_add(*cost));
            entries.push(Entry { id: *id, rate: view.rate, taken: view.under_way, asked });
        }
        entries
    }

    /// The server's replies about the batch, in its order: the requests that have waited, with the results.
    pub fn settle(&mut self, replies: &[Granted], now_ns: u64) -> Vec<(W, Spending)> {
        let mut settled = Vec::new();
        let sent = std::mem::take(&mut self.sent);
        for (id, granted) in sent.into_iter().zip(replies) {
            let Some(view) = self.views.get_mut(&id) else { continue };
            view.under_way = 0;
            self.waiting -= view.asked;
            let mut left = granted.tokens;
            let asked = std::mem::take(&mut view.asked);
            let token_ns = view.rate.token_ns();
            // Requests see the tokens in the order in which they take them.
            let mut debt_ns =
                granted.debt_ns.saturating_sub(token_ns.saturating_mul(granted.tokens.into()));
            for (cost, request) in view.waiting.drain(..asked) {
                let mut spending = view.rate.spending(debt_ns, cost);
                spending.is_admitted = cost <= left;
                if spending.is_admitted {
                    left -= cost;
                    debt_ns = debt_ns.saturating_add(token_ns.saturating_mul(cost.into()));
                } else {
                    spending.remaining = 0;
                    spending.retry_ns = spending.retry_ns.max(1);
                }
                settled.push((request, spending));
            }
            // Some need more than was left.
            view.taken -= i64::from(left);
            let debt_ns = token_ns.saturating_mul(view.taken.unsigned_abs());
            let known_ns = now_ns.saturating_add(granted.debt_ns);
            view.full_at_ns = match view.taken < 0 {
                true => known_ns.saturating_sub(debt_ns),
                false => known_ns.saturating_add(debt_ns),
            };
            if view.taken != 0 {
                self.note(id);
            }
        }
        settled
    }

    /// The server is away: the requests that have waited. Nothing of its buckets is known any more.
    pub fn fail(&mut self) -> Vec<W> {
        let views = std::mem::take(self).views;
        views.into_values().flat_map(|view| view.waiting).map(|(_, request)| request).collect()
    }

    fn note(&mut self, id: BucketId) {
        if let Some(view) = self.views.get_mut(&id)
            && !std::mem::replace(&mut view.is_changed, true)
        {
            self.changed.push_back(id);
        }
    }

    fn view(&mut self, id: BucketId, rate: &Rate, now_ns: u64) -> Option<&mut View<W>> {
        if self.views.len() >= VIEWS_MAX && !self.views.contains_key(&id) {
            self.make_room(now_ns)?;
        }
        let new = || View {
            rate: *rate,
            full_at_ns: 0,
            taken: 0,
            under_way: 0,
            waiting: VecDeque::new(),
            asked: 0,
            is_changed: false,
        };
        Some(self.views.entry(id).or_insert_with(new))
    }

    /// Forgets full buckets, and half of the others if that is too few: the server knows them.
    fn make_room(&mut self, now_ns: u64) -> Option<()> {
        let is_needed = |view: &View<W>| {
            view.is_changed || view.under_way != 0 || view.asked > 0 || !view.waiting.is_empty()
        };
        self.views.retain(|_, view| is_needed(view) || view.full_at_ns > now_ns);
        if self.views.len() > VIEWS_MAX / 2 {
            let mut number = 0_u32;
            self.views.retain(|_, view| {
                number = number.wrapping_add(1);
                is_needed(view) || number.is_multiple_of(2)
            });
        }
        (self.views.len() < VIEWS_MAX).then_some(())
    }
}

#[cfg(test)]
mod tests;
