//! [`Renewal`]: a retired snapshot is replaced: a pool is started on each thread, and all threads change to it
//! together. What the threads share of that.
//!
//! Made for each app whose workers are forks of a booted script. One task per [seat] follows the [`Step`]s of the
//! others; that of the [lead] decides, and starts the first pool, whose zygote the others' are siblings of.

mod files;
mod held;
mod lead;
mod pace;
pub mod seat;

use crate::freshness::Freshness;
use crate::pool::PoolShards;
use lead::Lead;
use outboard_reactor::{MailboxReceiver, MailboxSender, mailbox, spawn};
use seat::{PoolSeat, Renewing};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
#[derive(Debug)]
pub struct Renewal {
    freshness: Arc<Freshness>,
    steps: Box<[MailboxSender<Step>]>,
    receivers: Mutex<Vec<Option<MailboxReceiver<Step>>>>,
}

/// What the tasks of the seats tell each other.
#[derive(Debug)]
enum Step {
    /// Start a pool.
    Begin { attempt: u64, shards: Arc<PoolShards> },
    /// To the lead: a pool is ready, or why it is not.
    Ready { attempt: u64, outcome: Result<(), String> },
    /// The snapshots up to this number are settled.
    Settle { number: u64, has_succeeded: bool },
    /// The files of the present snapshot are watched.
    Watched,
    /// The seat is retired.
    Retired,
}

impl Renewal {
    /// For so many threads.
    pub fn new(threads: usize) -> Arc<Self> {
        let (steps, receivers): (Vec<_>, Vec<_>) = (0..threads.max(1)).map(|_| mailbox()).unzip();
        Arc::new(Self {
            freshness: Freshness::new(),
            steps: steps.into(),
            receivers: Mutex::new(receivers.into_iter().map(Some).collect()),
        })
    }

    /// Whether the snapshot is out of date.
    pub fn freshness(&self) -> &Arc<Freshness> {
        &self.freshness
    }

    /// The steps for a thread; taken once.
    fn receiver(&self, thread: usize) -> Option<MailboxReceiver<Step>> {
        let mut receivers = self.receivers.lock().unwrap_or_else(PoisonError::into_inner);
        receivers.get_mut(thread)?.take()
    }

    /// False if the seat is gone, which needs none.
    fn send(&self, thread: usize, step: Step) -> bool {
        self.steps[thread].send(step).is_ok()
    }

    fn threads(&self) -> usize {
        self.steps.len()
    }

    /// The threads that do not lead.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        LEAD + 1..self.threads()
    }
}

/// Follows the steps of the other threads until the seat is retired.
async fn follow(seat: Rc<PoolSeat>, steps: MailboxReceiver<Step>) {
    let Some(renewing) = seat.renewing() else { return };
    if renewing.thread == LEAD {
        if let Some(news) = renewing.freshness().news() {
            Lead::new(&seat, renewing, steps, news).run().await;
        }
        return;
    }
    while !is_over(renewing) {
        match steps.next().await {
            Step::Begin { attempt, shards } => {
                let (seat, shared) = (seat.clone(), renewing.shared.clone());
                spawn(async move {
                    let outcome = start(&seat, &shards).await;
                    shared.send(LEAD, Step::Ready { attempt, outcome });
                });
            }
            Step::Settle { number, has_succeeded } => seat.settle(number, has_succeeded),
            Step::Watched => seat.watched(),
            Step::Retired | Step::Ready { .. } => {}
        }
    }
}

/// Starts a pool on this thread.
async fn start(seat: &PoolSeat, shards: &Arc<PoolShards>) -> Result<(), String> {
    let Some(pool) = seat.prepare(shards) else { return Ok(()) };
    pool.ready().await.map_err(|error| error.message)
}

/// Whether nothing needs a snapshot any more: the server ends or has a new generation, and no request is held on any
/// thread.
fn is_over(renewing: &Renewing) -> bool {
    renewing.retire_by_ms.get().is_some() && renewing.freshness().held() == 0
}

/// The thread that starts snapshots for all.
const LEAD: usize = 0;
