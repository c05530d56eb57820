//! What a test of a row plays on: the row's service behind a gate, and where a script finds it.

use crate::rows::Row;
use crate::subject::At;
use outboard_e2e::{Gate, MariaDb, Memcached, Postgres, Redis, Web};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Http,
    Https,
    MariaDb,
    Postgres,
    Redis,
    Memcached,
    /// Nothing but the machine itself.
    Nobody,
}

static WEB: LazyLock<Web> = LazyLock::new(Web::start);
static MARIADB: LazyLock<MariaDb> = LazyLock::new(|| {
    let database = MariaDb::start();
    database.create(MariaDb::USER);
    database.run(&format!("USE {}; {ANSWERS}", MariaDb::USER));
    database
});
static POSTGRES: LazyLock<Postgres> = LazyLock::new(|| {
    let database = Postgres::start();
    database.run(ANSWERS);
    database
});
static REDIS: LazyLock<Redis> = LazyLock::new(Redis::start);
static MEMCACHED: LazyLock<Memcached> = LazyLock::new(Memcached::start);

const ANSWERS: &str = "CREATE TABLE answers (number INTEGER PRIMARY KEY, word TEXT);
     INSERT INTO answers VALUES (1, 'one'), (2, 'two'), (3, 'three');";

impl Service {
    fn socket(self) -> PathBuf {
        match self {
            Service::Http => WEB.plain(),
            Service::Https => WEB.tls(),
            Service::MariaDb => MARIADB.socket().to_owned(),
            Service::Postgres => POSTGRES.socket(),
            Service::Redis => REDIS.socket(),
            Service::Memcached => MEMCACHED.socket(),
            Service::Nobody => unreachable!("such rows have no gate"),
        }
    }

    fn credentials(self) -> At {
        let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        match self {
            Service::Http => vec![text("scheme", "http"), text("transport", "tcp")],
            Service::Https => {
                let certificate = WEB.certificate().display().to_string();
                vec![
                    text("scheme", "https"),
                    text("transport", "tls"),
                    text("certificate", &certificate),
                ]
            }
            Service::MariaDb | Service::Postgres => {
                vec![text("user", MariaDb::USER), text("password", MariaDb::PASSWORD)]
            }
            Service::Redis => vec![text("password", Redis::PASSWORD)],
            Service::Memcached | Service::Nobody => Vec::new(),
        }
    }
}

/// A row's service behind a gate of the test's own.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) gate: Gate,
    pub(crate) row: &'static Row,
}

impl Stage {
    /// With an open gate.
    pub(crate) fn of(row: &'static Row) -> Stage {
        Stage { gate: Gate::before(&row.service.socket()), row }
    }

    /// Where the service is to be found.
    pub(crate) fn at(&self) -> At {
        self.located("127.0.0.1", self.gate.address().port())
    }

    /// Where it is not: nobody listens there.
    pub(crate) fn at_nobody(&self) -> At {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        self.located("127.0.0.1", port)
    }

    /// A name that nobody has (RFC 6761, 6.4).
    pub(crate) fn at_nowhere(&self) -> At {
        self.located("nowhere.invalid", self.gate.address().port())
    }

    fn located(&self, host: &str, port: u16) -> At {
        let mut at = self.row.service.credentials();
        at.push(("host".to_owned(), host.to_owned()));
        at.push(("port".to_owned(), port.to_string()));
        at
    }
}
