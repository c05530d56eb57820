//! [`Memory`]: the accounts of what the server holds in memory for clients and workers.
//!
//! One per shard, limited by `limits.memory` for all shards together through [`MemoryLimits`]. Each
//! connection, worker and app has an [`Account`] below that of its kind, and each kind is below the total.
//! Totals, kinds and apps, found by their names, are of all shards; connections and workers of one. Caches and queues with limits of their
//! own (page cache, entity store, accepted tasks) are not counted here. Invariants: data that a
//! worker sends, or that makes a connection larger, is admitted first and refused beyond a share, so
//! that no one takes everything; data that has arrived is always counted, goes to disk early if it
//! is much, and new requests are refused when there is no room.

use crate::account::Account;
use crate::ledger::Ledger;
use outboard_admin_api::status::MemoryAccount;
use std::rc::Rc;
use std::sync::Arc;

/// Shares of the total, in eighths. What is admitted first leaves room for what is not.
const OPERATIONS: usize = 6;
const OPERATIONS_OF_APP: usize = 4;
const STREAMS: usize = 4;
const STREAMS_OF_CONNECTION: usize = 2;
const CONNECTIONS: usize = 6;
const LOGS: usize = 1;
const ALL: usize = 8;

/// The names of the kinds.
const TOTAL: &str = "all";
const RESPONSES: &str = "responses";
const BODIES: &str = "request_bodies";
const HTTP2_STREAMS: &str = "http2_streams";
const OF_WORKERS: &str = "operations";
const CLIENTS: &str = "connections";
const LINES: &str = "logs";

/// See the module.
#[derive(Debug)]
pub struct Memory {
    total: Rc<Account>,
    responses: Rc<Account>,
    bodies: Rc<Account>,
    streams: Rc<Account>,
    operations: Rc<Account>,
    logs: Rc<Account>,
    connections: Rc<Account>,
}

/// The limits that the accounts of all shards share.
#[derive(Debug)]
pub struct MemoryLimits(Arc<Ledger>);

impl MemoryLimits {
    /// A total limit in bytes for so many shards.
    pub fn new(shards: usize, limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self(Ledger::root(shards, limit_bytes)))
    }
}

/// The accounts of an app.
#[derive(Debug)]
pub struct AppMemory {
    app: String,
    /// Responses of its scripts on their way to clients.
    pub responses: Rc<Account>,
    /// Operations of its workers.
    pub operations: Rc<Account>,
}

impl Memory {
    /// The accounts of the only shard, with a total limit in bytes.
    pub fn new(limit_bytes: usize) -> Rc<Self> {
        Self::of_shard(&MemoryLimits::new(1, limit_bytes))
    }

    /// The accounts of another shard.
    pub fn of_shard(limits: &MemoryLimits) -> Rc<Self> {
        let total = Account::of(limits.0.clone());
        let share = |kind, eighths| Account::shared_below(&total, kind, eighths);
        Rc::new(Self {
            responses: share(RESPONSES, ALL),
            bodies: share(BODIES, ALL),
            streams: share(HTTP2_STREAMS, STREAMS),
            operations: share(OF_WORKERS, OPERATIONS),
            logs: share(LINES, LOGS),
            connections: share(CLIENTS, CONNECTIONS),
            total,
        })
    }

    /// Changes the total limit of all shards; what is held remains. Each shard calls this, to give back what
    /// it does not use.
    pub fn set_limit(&self, limit_bytes: usize) {
        self.total.set_root_limit(limit_bytes);
        self.kinds().into_iter().for_each(|(_, account)| account.adapt());
    }

    /// Accounts for an app, which it has in each generation.
    pub fn of_app(&self, app: &str) -> AppMemory {
        AppMemory {
            app: app.to_owned(),
            responses: Account::shared_below(&self.responses, app, ALL),
            operations: Account::shared_below(&self.operations, app, OPERATIONS_OF_APP),
        }
    }

    /// A new account for the streams of a connection of HTTP/2 or HTTP/3.
    pub fn of_connection(&self) -> Rc<Account> {
        Account::below(&self.streams, STREAMS_OF_CONNECTION)
    }

    /// Responses of PHP on their way to clients, and the requests for them.
    pub fn responses(&self) -> &Rc<Account> {
        &self.responses
    }

    /// Request bodies that are not on disk.
    pub fn bodies(&self) -> &Rc<Account> {
        &self.bodies
    }

    /// Clients' connections without their streams: at the limit idle ones close, and no more are accepted.
    pub fn connections(&self) -> &Rc<Account> {
        &self.connections
    }

    /// Log lines whose readers are slow.
    pub fn logs(&self) -> &Rc<Account> {
        &self.logs
    }

    /// Whether what can go to disk should.
    pub fn is_scarce(&self) -> bool {
        self.total.is_scarce()
    }

    /// The total of all accounts.
    pub fn held_bytes(&self) -> usize {
        self.total.held_bytes()
    }

    /// The highest total since the last call.
    pub fn take_recent_peak_bytes(&self) -> usize {
        self.total.take_recent_peak_bytes()
    }

    fn kinds(&self) -> [(&'static str, &Rc<Account>); 7] {
        [
            (TOTAL, &self.total),
            (RESPONSES, &self.responses),
            (BODIES, &self.bodies),
            (HTTP2_STREAMS, &self.streams),
            (OF_WORKERS, &self.operations),
            (CLIENTS, &self.connections),
            (LINES, &self.logs),
        ]
    }

    /// The accounts by kind, and those of the apps: what this shard holds, and limits, peaks and refusals
    /// of all shards.
    pub fn status<'a>(&self, apps: impl Iterator<Item = &'a AppMemory>) -> Vec<MemoryAccount> {
        let kinds = self.kinds();
        let mut all: Vec<_> = kinds.map(|(kind, account)| status(kind, None, account)).into();
        for app in apps {
            for (kind, account) in [(RESPONSES, &app.responses), (OF_WORKERS, &app.operations)] {
                all.push(status(kind, Some(app.app.clone()), account));
            }
        }
        all
    }
}

fn status(kind: &str, app: Option<String>, account: &Account) -> MemoryAccount {
    MemoryAccount {
        kind: kind.to_owned(),
        app,
        held_bytes: account.own_bytes(),
        peak_bytes: account.peak_bytes(),
        limit_bytes: account.limit_bytes(),
        refused: account.refused(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_BYTES: usize = 800;

    #[test]
    fn admitted_kinds_leave_room_for_the_others() {
        let memory = Memory::new(ALL_BYTES);
        let app = memory.of_app("a");
        let other = memory.of_app("b");
        let operations = app.operations.try_hold(400).expect("half of all");
        assert!(app.operations.try_hold(1).is_none(), "the share of one app");
        let others = other.operations.try_hold(200).expect("the rest of all operations");
        assert!(other.operations.try_hold(1).is_none(), "the share of all operations");
        let response = app.responses.try_hold(200).expect("the rest of all");
        assert!(memory.responses().try_hold(1).is_none());
        assert_eq!(memory.held_bytes(), ALL_BYTES);
        drop((operations, others, response));
        assert_eq!(memory.held_bytes(), 0);
    }

    #[test]
    fn one_connection_takes_only_a_part_of_all_streams() {
        let memory = Memory::new(ALL_BYTES);
        let (one, other) = (memory.of_connection(), memory.of_connection());
        let held = one.try_hold(200).expect("a quarter of all");
        assert!(one.try_hold(1).is_none());
        let rest = other.try_hold(200).expect("as much for another");
        assert!(memory.of_connection().try_hold(1).is_none(), "half of all is for streams");
        drop((held, rest));
    }

    #[test]
    fn arrived_data_is_counted_beyond_every_share() {
        let memory = Memory::new(ALL_BYTES);
        let held = memory.bodies().hold(ALL_BYTES + 1);
        assert_eq!(memory.held_bytes(), ALL_BYTES + 1);
        assert!(memory.of_app("a").responses.try_hold(1).is_none());
        assert!(memory.logs().try_hold(1).is_none() && memory.connections().try_hold(1).is_none());
        drop(held);
        assert!(memory.logs().try_hold(ALL_BYTES / 8).is_some());
    }

    #[test]
    fn memory_is_scarce_above_one_half_and_by_a_new_limit() {
        let memory = Memory::new(ALL_BYTES);
        let held = memory.bodies().hold(ALL_BYTES / 2);
        assert!(!memory.is_scarce());
        memory.set_limit(ALL_BYTES - 8);
        assert!(memory.is_scarce());
        assert_eq!(memory.held_bytes(), ALL_BYTES / 2, "what is held remains");
        drop(held);
        assert!(!memory.is_scarce());
        assert_eq!(memory.take_recent_peak_bytes(), ALL_BYTES / 2);
    }

    #[test]
    fn shards_on_threads_share_the_limits_of_an_app() {
        let limits = MemoryLimits::new(4, 64 << 20);
        let shards = (0..4).map(|_| {
            let limits = limits.clone();
            std::thread::spawn(move || {
                let memory = Memory::of_shard(&limits);
                let app = memory.of_app("a");
                for round in 0..1_000 {
                    let held = app.operations.try_hold((round * 7919) % (16 << 20));
                    assert!(app.operations.held_bytes() <= 32 << 20, "half of all");
                    drop(held);
                }
            })
        });
        let shards: Vec<_> = shards.collect();
        shards.into_iter().for_each(|shard| shard.join().unwrap());
        let memory = Memory::of_shard(&limits);
        assert_eq!(memory.held_bytes(), 0);
        assert!(memory.of_app("a").operations.try_hold(32 << 20).is_some());
    }

    #[test]
    fn the_accounts_of_an_app_are_the_same_in_the_next_generation() {
        let memory = Memory::new(ALL_BYTES);
        let old = memory.of_app("a");
        let held = old.operations.hold(400);
        let new = memory.of_app("a");
        assert!(new.operations.is_full());
        drop(held);
        assert!(new.operations.try_hold(400).is_some());
    }

    #[test]
    fn the_status_has_each_kind_and_the_kinds_of_each_app() {
        let memory = Memory::new(ALL_BYTES);
        let apps = [memory.of_app("a"), memory.of_app("b")];
        let held = apps[1].operations.hold(10);
        assert!(apps[1].operations.try_hold(ALL_BYTES).is_none());
        let status = memory.status(apps.iter());
        let row = |kind: &str, app: Option<&str>| {
            let found = status.iter().find(|row| row.kind == kind && row.app.as_deref() == app);
            let row = found.unwrap_or_else(|| panic!("no {kind} of {app:?}"));
            (row.held_bytes, row.peak_bytes, row.limit_bytes, row.refused)
        };
        assert_eq!(status.len(), 7 + 2 * apps.len());
        assert_eq!(row("all", None), (10, 10, ALL_BYTES, 1));
        assert_eq!(row("operations", None), (10, 10, ALL_BYTES / 8 * 6, 1));
        assert_eq!(row("operations", Some("b")), (10, 10, ALL_BYTES / 2, 1));
        assert_eq!(row("operations", Some("a")), (0, 0, ALL_BYTES / 2, 0));
        assert_eq!(row("logs", None), (0, 0, ALL_BYTES / 8, 0));
        drop(held);
    }
}
