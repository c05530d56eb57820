//! Connections that outlive a request, by PHP's own persistence or because the script keeps them:
//! a transaction that a request leaves open is gone before the next one; and at the same time no
//! two requests have one connection.

use crate::{CONCURRENCIES, serving};
use outboard_e2e::{Client, Configured, Gate, MariaDb, Postgres, Redis, Request};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

static MARIADB: LazyLock<MariaDb> = LazyLock::new(|| {
    let database = MariaDb::start();
    database.create("clean");
    database
});
static POSTGRES: LazyLock<Postgres> = LazyLock::new(Postgres::start);
static REDIS: LazyLock<Redis> = LazyLock::new(Redis::start);

/// A worker and a table of its own in a database, whose answers may be held back.
struct Bench {
    site: Configured,
    gate: Gate,
    driver: &'static str,
    table: String,
}

impl Bench {
    fn of(driver: &'static str, concurrency: usize) -> Bench {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let table = format!("counted_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let made = format!("CREATE TABLE {table} (number INT); INSERT INTO {table} VALUES (7)");
        let socket = if driver == "redis" {
            REDIS.socket()
        } else if driver.ends_with("pgsql") {
            POSTGRES.run(&made);
            POSTGRES.socket()
        } else {
            MARIADB.run(&format!("USE clean; {made}"));
            MARIADB.socket().to_owned()
        };
        Bench { site: serving(concurrency), gate: Gate::before(&socket), driver, table }
    }

    fn target(&self, verb: &str, more: &str) -> String {
        format!(
            "/database/{verb}/{}?host=127.0.0.1&port={}&user={}&password={}&table={}{more}",
            self.driver,
            self.gate.address().port(),
            MariaDb::USER,
            if self.driver == "redis" { Redis::PASSWORD } else { MariaDb::PASSWORD },
            self.table,
        )
    }

    #[track_caller]
    fn ask(&self, verb: &str, more: &str) -> Value {
        let target = self.target(verb, more);
        let response = Client::new(self.site.address()).send(&Request::get(&target)).expect(200);
        serde_json::from_str(&response.text()).expect("the fixture writes JSON")
    }
}

/// A transaction left open is rolled back before the next request.
#[track_caller]
fn rolled_back(driver: &'static str, more: &str) {
    for concurrency in CONCURRENCIES {
        let bench = Bench::of(driver, concurrency);
        let number = bench.ask("look", "");
        for kept in ["&unkept=1", "&kept=1"] {
            bench.ask("leave", &format!("{more}{kept}"));
            assert_eq!(bench.ask("look", ""), number, "{driver} {more}{kept}");
        }
    }
}

#[test]
fn a_transaction_of_pdo_mysql() {
    rolled_back("pdo_mysql", "");
    rolled_back("pdo_mysql", "&statement=START%20TRANSACTION");
}

#[test]
fn a_transaction_of_pdo_pgsql() {
    rolled_back("pdo_pgsql", "");
    rolled_back("pdo_pgsql", "&statement=BEGIN");
}

#[test]
fn a_transaction_of_mysqli() {
    rolled_back("mysqli", "");
    rolled_back("mysqli", "&statement=BEGIN");
    rolled_back("mysqli", "&statement=SET%20autocommit=0");
}

#[test]
fn a_transaction_of_pgsql() {
    rolled_back("pgsql", "&statement=BEGIN");
}

/// Has three requests wait for the database at the same time; their connections.
#[track_caller]
fn ask_at_once(bench: &Bench) -> HashSet<String> {
    bench.gate.shut();
    let answers: Vec<Value> = thread::scope(|scope| {
        let begin = |number: usize| {
            let asking = scope.spawn(move || bench.ask("ask", &format!("&number={number}000")));
            bench.gate.wait_until_holding_on(number);
            asking
        };
        let asking: Vec<_> = (1..=3).map(begin).collect();
        bench.gate.open();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (place, answer) in answers.iter().enumerate() {
        assert_eq!(answer[0], (place + 1) * 1000 + 7, "{answers:?}");
    }
    answers.iter().map(|answer| answer[1].to_string()).collect()
}

/// Persistent connections of requests at the same time are as many, and are used again.
#[track_caller]
fn one_each(driver: &'static str) {
    let bench = Bench::of(driver, 4);
    let mut all = HashSet::new();
    for _ in 0..3 {
        let connections = ask_at_once(&bench);
        assert_eq!(connections.len(), 3, "{connections:?}");
        all.extend(connections);
    }
    // pgsql itself keeps the one that was opened last.
    assert!(all.len() <= if driver == "pgsql" { 4 } else { 3 }, "{all:?}");
}

#[test]
fn persistent_connections_of_pdo_mysql_at_the_same_time() {
    one_each("pdo_mysql");
}

#[test]
fn persistent_connections_of_pdo_pgsql_at_the_same_time() {
    one_each("pdo_pgsql");
}

#[test]
fn persistent_connections_of_mysqli_at_the_same_time() {
    one_each("mysqli");
}

#[test]
fn persistent_connections_of_pgsql_at_the_same_time() {
    one_each("pgsql");
}

#[test]
fn persistent_connections_of_redis_at_the_same_time() {
    one_each("redis");
}
