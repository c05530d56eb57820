//! What the gateway holds in memory for clients and workers, and how much of it there may be.
//!
//! One [`Memory`] per process, under `limits.memory`; who holds something has it counted in an
//! [`Account`]: of an HTTP/2 connection, of a worker, of an app's responses or operations, each below
//! that of its kind, each of those below the whole. Caches and queues with limits of their own (page cache,
//! entity store, tasks that were accepted) are counted there. Invariants: what comes from a worker or makes
//! a client's connection larger is asked for first, and refused beyond a share, so that nobody takes
//! all; what is at hand already is counted in any case, goes to disk early when it is much, and new
//! requests are refused when there is no room at all.

mod account;
mod heap;

pub(crate) use account::{Account, Held};
pub(crate) use heap::give_back;
use outboard_admin_api::status::MemoryAccount;
use outboard_config::MemoryBudget;
use outboard_supervisor::memory::machine_bytes;
use std::rc::Rc;

/// What a budget of `"auto"` is at most: a response that is large is on disk, so more is seldom of use.
const MOST_BYTES: u64 = 256 << 20;
const LEAST_BYTES: u64 = 16 << 20;
/// The share of the machine that it is otherwise.
const SHARE: u64 = 8;

/// Of the whole, in [eighths](Account::limit_bytes): what is asked for first leaves room for what is not.
const OPERATIONS: usize = 6;
const OPERATIONS_OF_APP: usize = 4;
const STREAMS: usize = 4;
const STREAMS_OF_CONNECTION: usize = 2;
const CONNECTIONS: usize = 6;
const LOGS: usize = 1;
const ALL: usize = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct Memory {
    all: Rc<Account>,
    /// Answers of PHP on their way to clients, and the requests for them.
    responses: Rc<Account>,
    /// Request bodies that are not on disk.
    bodies: Rc<Account>,
    /// Buffers between HTTP/2 connections and their requests.
    streams: Rc<Account>,
    /// What workers have asked for, and what was not yet taken of the answers.
    operations: Rc<Account>,
    /// Log lines whose readers are slow.
    logs: Rc<Account>,
    /// What a client's connection takes, however idle it is.
    connections: Rc<Account>,
}

/// The accounts of an app.
#[derive(Debug)]
pub(crate) struct AppMemory {
    pub(crate) app: String,
    pub(crate) responses: Rc<Account>,
    pub(crate) operations: Rc<Account>,
}

impl Memory {
    pub(crate) fn new(budget: MemoryBudget) -> Rc<Self> {
        let all = Account::whole(bytes_of(budget));
        let part = |eighths| Account::below(&all, eighths);
        Rc::new(Self {
            responses: part(ALL),
            bodies: part(ALL),
            streams: part(STREAMS),
            operations: part(OPERATIONS),
            logs: part(LOGS),
            connections: part(CONNECTIONS),
            all,
        })
    }

    /// Changes what may be held; what is held stays.
    pub(crate) fn set_budget(&self, budget: MemoryBudget) {
        self.all.set_whole(bytes_of(budget));
    }

    /// The accounts of an app.
    pub(crate) fn of_app(&self, app: &str) -> AppMemory {
        AppMemory {
            app: app.to_owned(),
            responses: Account::below(&self.responses, ALL),
            operations: Account::below(&self.operations, OPERATIONS_OF_APP),
        }
    }

    /// The account of an HTTP/2 connection.
    pub(crate) fn of_connection(&self) -> Rc<Account> {
        Account::below(&self.streams, STREAMS_OF_CONNECTION)
    }

    /// Answers that belong to no app.
    pub(crate) fn responses(&self) -> &Rc<Account> {
        &self.responses
    }

    /// Request bodies that are not on disk.
    pub(crate) fn bodies(&self) -> &Rc<Account> {
        &self.bodies
    }

    /// Connections of clients.
    pub(crate) fn connections(&self) -> &Rc<Account> {
        &self.connections
    }

    /// Log lines that wait.
    pub(crate) fn logs(&self) -> &Rc<Account> {
        &self.logs
    }

    /// Whether what can go to disk should.
    pub(crate) fn is_scarce(&self) -> bool {
        self.all.is_scarce()
    }

    /// Everything that is held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.all.held_bytes()
    }

    /// The most that was held since the last call.
    fn take_recent_peak_bytes(&self) -> usize {
        self.all.take_recent_peak_bytes()
    }

    /// All accounts but those of connections and workers.
    pub(crate) fn status<'a>(
        &self,
        apps: impl Iterator<Item = &'a AppMemory>,
    ) -> Vec<MemoryAccount> {
        let kinds = [
            ("all", &self.all),
            ("responses", &self.responses),
            ("request_bodies", &self.bodies),
            ("http2_streams", &self.streams),
            ("operations", &self.operations),
            ("connections", &self.connections),
            ("logs", &self.logs),
        ];
        let mut all: Vec<_> = kinds.map(|(kind, account)| shown(kind, None, account)).into();
        for app in apps {
            for (kind, account) in [("responses", &app.responses), ("operations", &app.operations)]
            {
                all.push(shown(kind, Some(app.app.clone()), account));
            }
        }
        all
    }
}

fn shown(kind: &str, app: Option<String>, account: &Account) -> MemoryAccount {
    MemoryAccount {
        kind: kind.to_owned(),
        app,
        held_bytes: account.held_bytes(),
        peak_bytes: account.peak_bytes(),
        limit_bytes: account.limit_bytes(),
        refused: account.refused(),
    }
}

fn bytes_of(budget: MemoryBudget) -> usize {
    let machine_bytes = machine_bytes().unwrap_or(1 << 30);
    let bytes = match budget {
        MemoryBudget::Bytes(bytes) => bytes,
        MemoryBudget::Percent(percent) => machine_bytes / 100 * u64::from(percent),
        MemoryBudget::Auto => (machine_bytes / SHARE).clamp(LEAST_BYTES, MOST_BYTES),
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
