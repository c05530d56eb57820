//! [`RateSharing`]: the way of a thread to the server through which gateways share rate limits.
//!
//! Held by the generations of a thread for as long as the same server is configured. One task has the
//! connection and sends one batch at a time. Invariants: a request waits for the server for at most the
//! configured time, and only if few tokens are left; once a reply is late, the server is away, and nobody waits
//! for it until it responds in time again: then each gateway limits by itself; that it is away is one line
//! of the log, whatever the number of threads.

use super::rate_script::{granted, words};
use outboard_access::{Answer, BucketId, Rate, SharedBuckets, Spending};
use outboard_config::PageCacheShared;
use outboard_log::{ErrorLog, Level};
use outboard_reactor::{Event, now_ms, sleep, spawn, with_deadline};
use outboard_redis::Connection;
use outboard_upstream::Client;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;

/// How long tokens that were taken wait for others before the server hears of them.
const GATHER_MS: u64 = 5;
/// How often an idle connection is checked.
const IDLE_MS: u64 = 1_000;
/// How long a connection attempt may take.
const CONNECT_MS: u64 = 2_000;
/// Pauses before the attempts to connect; the last one repeats.
const PAUSES_MS: [u64; 4] = [100, 300, 1_000, 3_000];
/// A connection that has worked for this long starts with the first pause again.
const STEADY_MS: u64 = 10_000;

/// What all threads count, for the log and the metrics.
#[derive(Debug, Default)]
pub(crate) struct SharingState {
    /// Threads for which the server is away.
    pub(crate) away: AtomicUsize,
    /// Requests that have waited for the server.
    pub(crate) asked: AtomicU64,
    /// Requests of shared limits that the gateway has decided by itself.
    pub(crate) local: AtomicU64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RateSharing(Rc<Link>);

/// A request that waits for tokens.
#[derive(Debug, Default)]
struct Waiting {
    /// `Some(None)`: the server is away.
    outcome: Cell<Option<Option<Spending>>>,
    arrived: Event,
}

#[derive(Debug)]
struct Link {
    server: PageCacheShared,
    state: Arc<SharingState>,
    buckets: RefCell<SharedBuckets<Rc<Waiting>>>,
    is_connected: Cell<bool>,
    /// Whether the state counts this thread.
    is_away: Cell<bool>,
    has_ended: Cell<bool>,
    changed: Event,
}

impl RateSharing {
    /// Connects to the server from now on.
    pub(crate) fn start(
        server: &PageCacheShared,
        state: &Arc<SharingState>,
        client: &Rc<Client>,
        log: &Rc<ErrorLog>,
    ) -> Rc<Self> {
        let link = Rc::new(Link {
            server: server.clone(),
            state: state.clone(),
            buckets: RefCell::default(),
            is_connected: Cell::new(false),
            is_away: Cell::new(false),
            has_ended: Cell::new(false),
            changed: Event::default(),
        });
        spawn(run(link.clone(), client.clone(), log.clone()));
        Rc::new(Self(link))
    }

    /// Whether it is the way to this server.
    pub(crate) fn is_to(&self, server: &PageCacheShared) -> bool {
        self.0.server == *server
    }

    /// Takes tokens, if that can be decided at once; `None`: the gateway decides by itself.
    pub(super) fn spend(
        &self,
        id: BucketId,
        rate: &Rate,
        cost: u32,
        now_ns: u64,
    ) -> Option<Answer> {
        let link = &self.0;
        let connected = link.is_connected.get().then_some(());
        let answer =
            connected.and_then(|()| link.buckets.borrow_mut().spend(id, rate, cost, now_ns));
        match answer {
            None => _ = link.state.local.fetch_add(1, Ordering::Relaxed),
            Some(Answer::Known(spending)) if spending.is_admitted => link.changed.set(),
            Some(_) => {}
        }
        answer
    }

    /// Takes tokens on the server; `None`: it is away, and the gateway decides by itself.
    pub(super) async fn ask(&self, id: BucketId, rate: &Rate, cost: u32) -> Option<Spending> {
        let link = &self.0;
        let waiting = Rc::new(Waiting::default());
        let until_ms = now_ms() + link.server.timeout_ms;
        let now_ns = now_ms() * 1_000_000;
        let asked = link.is_connected.get()
            && link.buckets.borrow_mut().ask(id, rate, cost, waiting.clone(), now_ns).is_ok();
        let outcome = if asked {
            link.state.asked.fetch_add(1, Ordering::Relaxed);
            link.changed.set();
            with_deadline(until_ms, waiting.wait()).await.ok().flatten()
        } else {
            None
        };
        if outcome.is_none() {
            link.state.local.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }
}

impl Drop for RateSharing {
    fn drop(&mut self) {
        self.0.has_ended.set(true);
        self.0.changed.set();
    }
}

impl Waiting {
    async fn wait(&self) -> Option<Spending> {
        poll_fn(|_| match self.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => self.arrived.poll().map(|()| self.outcome.take().flatten()),
        })
        .await
    }

    fn settle(&self, outcome: Option<Spending>) {
        self.outcome.set(Some(outcome));
        self.arrived.set();
    }
}

/// Maintains the connection until the last generation with it has ended.
async fn run(link: Rc<Link>, client: Rc<Client>, log: Rc<ErrorLog>) {
    let mut attempts = 0;
    while !link.has_ended.get() {
        let started_ms = now_ms();
        let why = match link.connect(&client).await {
            Err(why) => why,
            Ok(mut connection) => {
                link.is_here(&log);
                let why = link.exchange_batches(&mut connection).await;
                link.is_connected.set(false);
                if now_ms() > started_ms + STEADY_MS {
                    attempts = 0;
                }
                why
            }
        };
        let waiting = link.buckets.borrow_mut().fail();
        waiting.iter().for_each(|waiting| waiting.settle(None));
        if link.has_ended.get() {
            break;
        }
        link.is_gone(&why, &log);
        sleep(PAUSES_MS[attempts.min(PAUSES_MS.len() - 1)]).await;
        attempts += 1;
    }
    if link.is_away.get() {
        link.state.away.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Link {
    /// Connects. The server has to respond once in the time that requests would wait.
    async fn connect(&self, client: &Client) -> Result<Connection, String> {
        let mut connection = Connection::open(&self.server, client, CONNECT_MS).await?;
        // An empty batch, so that a server on which the script fails is away from the first.
        self.send(&mut connection).await?;
        Ok(connection)
    }

    /// Sends what the server has to hear of, until the connection fails: why.
    async fn exchange_batches(&self, connection: &mut Connection) -> String {
        self.is_connected.set(true);
        loop {
            if self.has_ended.get() {
                return String::new();
            }
            let is_quiet = !self.buckets.borrow().is_changed();
            if is_quiet && self.wait(IDLE_MS, SharedBuckets::is_changed).await {
                continue;
            }
            if !is_quiet {
                self.wait(GATHER_MS, SharedBuckets::is_asking).await;
            }
            if let Err(why) = self.send(connection).await {
                return why;
            }
        }
    }

    /// Sends a batch and settles what has waited for it.
    async fn send(&self, connection: &mut Connection) -> Result<(), String> {
        let batch = self.buckets.borrow_mut().batch();
        let words = words(&self.server.name, &batch);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = connection.exchange(&words, self.server.timeout_ms).await?;
        let replies = granted(&reply, batch.len()).ok_or("it sent an unexpected reply")?;
        let settled = self.buckets.borrow_mut().settle(&replies, now_ms() * 1_000_000);
        settled.into_iter().for_each(|(waiting, spending)| waiting.settle(Some(spending)));
        Ok(())
    }

    /// Waits until something holds for the buckets; whether it did in time.
    async fn wait(&self, ms: u64, holds: impl Fn(&SharedBuckets<Rc<Waiting>>) -> bool) -> bool {
        let wait = async {
            while !holds(&self.buckets.borrow()) && !self.has_ended.get() {
                self.changed.wait().await;
            }
        };
        with_deadline(now_ms() + ms, wait).await.is_ok()
    }

    fn is_here(&self, log: &ErrorLog) {
        if self.is_away.take() && self.state.away.fetch_sub(1, Ordering::Relaxed) == 1 {
            let PageCacheShared { host, port, .. } = &self.server;
            log.note(Level::Info, &format!("rate limits are shared again: {host}:{port}"));
        }
    }

    fn is_gone(&self, why: &str, log: &ErrorLog) {
        if !self.is_away.replace(true) && self.state.away.fetch_add(1, Ordering::Relaxed) == 0 {
            let PageCacheShared { host, port, .. } = &self.server;
            let text = format!(
                "rate limits are not shared, this gateway limits by itself: {host}:{port}: {why}"
            );
            log.note(Level::Warn, &text);
        }
    }
}
