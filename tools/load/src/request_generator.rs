//! [`RequestGenerator`]: renders the next request of a user and advances it by the response.
//!
//! One per thread. A step whose requests are all equal is rendered once and sent without a copy;
//! others are rendered for each sending.

use crate::codec;
use crate::connection::Connection;
use crate::failures::Failure;
use crate::key_distribution::KeyDistribution;
use crate::keys::Keys;
use crate::message::Message;
use crate::plan::{Feed, Plan, Step};
use crate::random::Random;
use crate::response::Response;
use crate::share::Share;
use crate::template::Source;
use crate::user::User;

struct Prepared<'p> {
    step: &'p Step,
    message: Message,
    /// The bytes, if they are always the same.
    fixed: Option<Vec<u8>>,
}

/// The scripts as one thread executes them.
pub(crate) struct RequestGenerator<'p> {
    plan: &'p Plan,
    scripts: Vec<Vec<Prepared<'p>>>,
    weights: u64,
    random: Random,
    next_seq: u64,
    stride: u64,
    keys: Keys,
    /// For each feed: the distribution of random rows, and the next row in order.
    rows: Vec<(KeyDistribution, u64)>,
    bytes: Vec<u8>,
}

impl<'p> RequestGenerator<'p> {
    pub(crate) fn new(plan: &'p Plan, share: Share) -> Self {
        let scripts = plan
            .scripts
            .iter()
            .map(|script| script.steps.iter().map(|step| Prepared::new(step, plan)).collect());
        let rows = plan.feeds.iter().map(|feed| {
            (KeyDistribution::new(feed.rows.len() as u64, plan.zipf), share.thread as u64)
        });
        let distribution = KeyDistribution::new(plan.keys, plan.zipf);
        Self {
            plan,
            scripts: scripts.collect(),
            weights: plan.scripts.iter().map(|script| u64::from(script.weight)).sum(),
            random: Random::new(plan.seed ^ (share.thread as u64 + 1).rotate_left(32)),
            next_seq: share.thread as u64,
            stride: share.threads as u64,
            keys: Keys::new(distribution, plan.keys, share, plan.connections * plan.streams),
            rows: rows.collect(),
            bytes: Vec::new(),
        }
    }

    /// A user at the start of a script.
    pub(crate) fn new_user(&mut self) -> User {
        let mut user = User::default();
        self.start_over(&mut user);
        user
    }

    /// Starts a script, chosen by weight, without cookies and with new rows of the feeds.
    pub(crate) fn start_over(&mut self, user: &mut User) {
        user.step = 0;
        if self.scripts.len() > 1 {
            user.script = self.choose();
        }
        user.cookies.clear();
        user.values.clear();
        for (feed, (distribution, next)) in self.plan.feeds.iter().zip(&mut self.rows) {
            let row = take_row(feed, distribution, next, self.stride, &mut self.random);
            feed.columns.iter().zip(row).for_each(|(name, value)| user.set(name, value));
        }
    }

    fn choose(&mut self) -> usize {
        let mut at = self.random.below(self.weights);
        let chosen = self.plan.scripts.iter().position(|script| {
            let is_here = at < u64::from(script.weight);
            at = at.saturating_sub(u64::from(script.weight));
            is_here
        });
        chosen.unwrap_or(0)
    }

    /// Sends the user's next request in its lane of the connection.
    pub(crate) fn send(
        &mut self,
        user: &mut User,
        connection: &mut Connection,
        lane: usize,
    ) -> Result<(), Failure> {
        let prepared = &mut self.scripts[user.script][user.step];
        connection.codec.begin(&prepared.step.request.method);
        if let (Some(bytes), true) = (&prepared.fixed, user.cookies.is_empty()) {
            user.seq = None;
            return connection.send(lane, bytes);
        }
        let mut source = Source {
            seq: self.next_seq,
            keys: &mut self.keys,
            random: &mut self.random,
            values: &user.values,
        };
        user.seq = Some(self.next_seq);
        self.next_seq += self.stride;
        prepared.message.render(&prepared.step.request, &mut source, &user.cookies);
        self.bytes.clear();
        let protocol = self.plan.target.protocol;
        match codec::write(protocol, &prepared.message, self.plan.keep_alive, &mut self.bytes) {
            Some(()) => connection.send(lane, &self.bytes),
            None => connection.send_message(lane, &prepared.message),
        }
    }

    /// Applies the response and returns its failure, if any, and the think time.
    pub(crate) fn advance(
        &mut self,
        user: &mut User,
        response: &Response,
    ) -> (Option<Failure>, u64) {
        let steps = &self.scripts[user.script];
        let step = steps[user.step].step;
        let failure = response.judge(&step.expect);
        let think_ns = think_ns(step, &mut self.random);
        if self.scripts.len() == 1 && steps.len() == 1 && self.plan.feeds.is_empty() {
            return (failure, think_ns);
        }
        response.cookies.iter().for_each(|cookie| user.set_cookie(cookie));
        let missed = step.captures.iter().filter(|capture| {
            let found = capture.pattern.captures(&response.body);
            let found = found.and_then(|groups| groups.get(1).or_else(|| groups.get(0)));
            let Some(found) = found else { return true };
            user.set(&capture.name, &String::from_utf8_lossy(found.as_bytes()));
            false
        });
        let is_missed = missed.count() > 0;
        let failure = failure.or_else(|| is_missed.then_some(Failure::Body));
        user.step += 1;
        if failure.is_some() || user.step == steps.len() {
            self.start_over(user);
        }
        (failure, think_ns)
    }
}

impl<'p> Prepared<'p> {
    fn new(step: &'p Step, plan: &Plan) -> Self {
        let mut message = Message::new(&step.request, &plan.target);
        let fixed = step.request.is_fixed().then_some(()).and_then(|()| {
            let mut random = Random::new(0);
            let mut keys = Keys::of(0);
            let mut source = Source { seq: 0, keys: &mut keys, random: &mut random, values: &[] };
            message.render(&step.request, &mut source, &[]);
            let mut bytes = Vec::new();
            codec::write(plan.target.protocol, &message, plan.keep_alive, &mut bytes)?;
            Some(bytes)
        });
        Self { step, message, fixed }
    }
}

/// The next row of a feed: random, or every `stride`th, since other threads use those between.
fn take_row<'f>(
    feed: &'f Feed,
    distribution: &KeyDistribution,
    next: &mut u64,
    stride: u64,
    random: &mut Random,
) -> &'f [String] {
    let at = if feed.random { distribution.next(random) } else { *next % feed.rows.len() as u64 };
    *next += stride;
    &feed.rows[at as usize]
}

fn think_ns(step: &Step, random: &mut Random) -> u64 {
    let (least, most) = step.think;
    if most.is_zero() {
        return 0;
    }
    let spread = most.saturating_sub(least).as_nanos() as u64;
    least.as_nanos() as u64 + random.below(spread + 1)
}
