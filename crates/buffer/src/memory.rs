//! [`Memory`]: the accounts of what the server holds in memory for clients and workers.
//!
//! One per process, limited by `limits.memory`. Each connection, worker and app has an [`Account`]
//! below that of its kind, and each kind is below the total. Caches and queues with limits of their
//! own (page cache, entity store, accepted tasks) are not counted here. Invariants: data that a
//! worker sends, or that makes a connection larger, is admitted first and refused beyond a share, so
//! that no one takes everything; data that has arrived is always counted, goes to disk early if it
//! is much, and new requests are refused when there is no room.

use crate::account::Account;
use outboard_admin_api::status::MemoryAccount;
use std::rc::Rc;

/// Shares of the total, in eighths. What is admitted first leaves room for what is not.
const OPERATIONS: usize = 6;
const OPERATIONS_OF_APP: usize = 4;
const STREAMS: usize = 4;
const STREAMS_OF_CONNECTION: usize = 2;
const CONNECTIONS: usize = 6;
const LOGS: usize = 1;
const ALL: usize = 8;

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
    /// Accounts with a total limit in bytes.
    pub fn new(limit_bytes: usize) -> Rc<Self> {
        let total = Account::root(limit_bytes);
        let share = |eighths| Account::below(&total, eighths);
        Rc::new(Self {
            responses: share(ALL),
            bodies: share(ALL),
            streams: share(STREAMS),
            operations: share(OPERATIONS),
            logs: share(LOGS),
            connections: share(CONNECTIONS),
            total,
        })
    }

    /// Changes the total limit; what is held remains.
    pub fn set_limit(&self, limit_bytes: usize) {
        self.total.set_root_limit(limit_bytes);
    }

    /// New accounts for an app.
    pub fn of_app(&self, app: &str) -> AppMemory {
        AppMemory {
            app: app.to_owned(),
            responses: Account::below(&self.responses, ALL),
            operations: Account::below(&self.operations, OPERATIONS_OF_APP),
        }
    }

    /// A new account for an HTTP/2 connection: buffers between it and its streams.
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

    /// Idle clients' connections.
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

    /// The accounts by kind, and those of the apps.
    pub fn status<'a>(&self, apps: impl Iterator<Item = &'a AppMemory>) -> Vec<MemoryAccount> {
        let kinds = [
            ("all", &self.total),
            ("responses", &self.responses),
            ("request_bodies", &self.bodies),
            ("http2_streams", &self.streams),
            ("operations", &self.operations),
            ("connections", &self.connections),
            ("logs", &self.logs),
        ];
        let mut all: Vec<_> = kinds.map(|(kind, account)| status(kind, None, account)).into();
        for app in apps {
            for (kind, account) in [("responses", &app.responses), ("operations", &app.operations)]
            {
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
        held_bytes: account.held_bytes(),
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
