//! What is promised of code that talks to a service: each function is a test of every row that
//! names it.

use crate::rows::Row;
use crate::stage::Stage;
use crate::subject::{At, Reference, Subject, Worker};
use outboard_e2e::{Client, Request};
use serde_json::{Value, json};
use std::thread;

/// Opens, and asks if that worked.
fn open_and_ask(subject: &dyn Subject, row: &Row, at: &At) -> Vec<Value> {
    let opened = subject.step(row.script, "open", at);
    match opened["exception"] {
        Value::Null => vec![opened, subject.step(row.script, "ask", at)],
        _ => vec![opened],
    }
}

fn expect_same(row: &'static Row, play: impl Fn(&dyn Subject) -> Vec<Value>) -> Vec<Value> {
    let (worker, reference) = (Worker::start(), Reference::start());
    let blocking = play(&reference);
    let waiting = play(&worker);
    assert_eq!(waiting, blocking, "{} in a worker, and in php-cli", row.title);
    worker.expect_service();
    waiting
}

/// Whether the outcome of asking differs from that of a service that answers.
fn expect_failure(row: &'static Row, outcomes: &[Value]) {
    let stage = Stage::of(row);
    let answered = open_and_ask(&Reference::start(), row, &stage.at());
    assert_ne!(outcomes, answered, "no error");
}

/// The result is that of the call that blocks.
pub(crate) fn answers(row: &'static Row) {
    let stage = Stage::of(row);
    let outcomes = expect_same(row, |subject| open_and_ask(subject, row, &stage.at()));
    for outcome in &outcomes {
        assert_eq!(outcome["exception"], Value::Null, "{outcome}");
        assert_eq!(outcome["complaints"], json!([]), "{outcome}");
    }
}

/// While it waits, the worker answers another request.
pub(crate) fn others(row: &'static Row) {
    let stage = Stage::of(row);
    let (worker, at) = (Worker::start(), stage.at());
    let expected = open_and_ask(&worker, row, &at);
    worker.step(row.script, "open", &at);
    stage.gate.shut();
    thread::scope(|scope| {
        let asking = scope.spawn(|| worker.step(row.script, "ask", &at));
        stage.gate.wait_until_holding();
        worker.expect_service();
        stage.gate.open();
        assert_eq!(asking.join().unwrap(), expected[1]);
    });
}

/// The time-out of the call itself ends the wait.
pub(crate) fn time_out(row: &'static Row) {
    let stage = Stage::of(row);
    let mut at = stage.at();
    at.push(("brief".to_owned(), "1".to_owned()));
    let outcomes = expect_same(row, |subject| {
        stage.gate.open();
        let opened = subject.step(row.script, "open", &at);
        stage.gate.shut();
        vec![opened, subject.step(row.script, "ask", &at)]
    });
    expect_failure(row, &outcomes);
}

/// The time-out that the service was asked for ends the wait.
pub(crate) fn server_time_out(row: &'static Row) {
    let stage = Stage::of(row);
    let mut at = stage.at();
    at.push(("brief".to_owned(), "1".to_owned()));
    let outcomes = expect_same(row, |subject| {
        let opened = subject.step(row.script, "open", &at);
        vec![opened, subject.step(row.script, "ask too long", &at)]
    });
    expect_failure(row, &outcomes);
}

/// Nobody listens: the same error.
pub(crate) fn refused(row: &'static Row) {
    let at = Stage::of(row).at_nobody();
    expect_same_failure(row, &at);
}

/// There is no such host: the same error.
pub(crate) fn bad_name(row: &'static Row) {
    let at = Stage::of(row).at_nowhere();
    expect_same_failure(row, &at);
}

/// The service does not know the user: the same error.
pub(crate) fn bad_credentials(row: &'static Row) {
    let stage = Stage::of(row);
    let mut at = stage.at();
    for (name, value) in &mut at {
        if name == "password" {
            *value = "wrong".to_owned();
        }
    }
    expect_same_failure(row, &at);
}

fn expect_same_failure(row: &'static Row, at: &At) {
    let outcomes = expect_same(row, |subject| open_and_ask(subject, row, at));
    expect_failure(row, &outcomes);
}

/// The service closes the connection while the answer is waited for: the same error.
pub(crate) fn closing(row: &'static Row) {
    let stage = Stage::of(row);
    let at = stage.at();
    let outcomes = expect_same(row, |subject| {
        stage.gate.open();
        let opened = subject.step(row.script, "open", &at);
        stage.gate.shut();
        let asked = thread::scope(|scope| {
            let asking = scope.spawn(|| subject.step(row.script, "ask", &at));
            stage.gate.wait_until_holding();
            stage.gate.cut();
            asking.join().unwrap()
        });
        vec![opened, asked]
    });
    expect_failure(row, &outcomes);
}

/// `Coroutine::cancel()` ends the wait; the worker goes on, with new connections too.
pub(crate) fn cancelled(row: &'static Row) {
    let stage = Stage::of(row);
    let (worker, at) = (Worker::start(), stage.at());
    let expected = open_and_ask(&worker, row, &at);
    worker.step(row.script, "open", &at);
    stage.gate.shut();
    let target = worker.target("/task", row.script, "ask", &at);
    thread::scope(|scope| {
        let asking = scope.spawn(|| worker.get(&target).text());
        stage.gate.wait_until_holding();
        worker.get("/cancel");
        assert_eq!(asking.join().unwrap(), "\"cancelled\"");
    });
    stage.gate.cut();
    stage.gate.open();
    assert_eq!(open_and_ask(&worker, row, &at), expected);
}

/// Ends the request that waits, and no other: to connect to a database has taken 1.4 s on a machine
/// whose processors were busy with other tests.
const DEADLINE: &str = "5s";

/// The deadline of the request ends the wait; the worker goes on, with new connections too.
pub(crate) fn deadline(row: &'static Row) {
    let stage = Stage::of(row);
    let (worker, at) = (Worker::with_deadline(DEADLINE), stage.at());
    let expected = open_and_ask(&worker, row, &at);
    worker.step(row.script, "open", &at);
    stage.gate.shut();
    let target = worker.target("/step", row.script, "ask", &at);
    Client::new(worker.site.address()).send(&Request::get(&target)).expect(504);
    stage.gate.cut();
    stage.gate.open();
    assert_eq!(open_and_ask(&worker, row, &at), expected);
}

/// A second coroutine on the connection is refused by an exception that names both places; the
/// first gets its answer.
pub(crate) fn shared(row: &'static Row) {
    let stage = Stage::of(row);
    let (worker, at) = (Worker::start(), stage.at());
    let expected = open_and_ask(&worker, row, &at);
    worker.step(row.script, "open", &at);
    stage.gate.shut();
    thread::scope(|scope| {
        let asking = scope.spawn(|| worker.step(row.script, "ask", &at));
        stage.gate.wait_until_holding();
        let refused = worker.step(row.script, "ask", &at);
        stage.gate.open();
        let exception = refused["exception"].as_str().unwrap_or("none");
        assert!(exception.starts_with("Outboard\\ConnectionInUse: "), "{refused}");
        let place = format!("rows/{}.php:", row.script);
        assert_eq!(exception.matches(&place).count(), 2, "{exception}");
        assert_eq!(asking.join().unwrap(), expected[1]);
    });
}

/// Two coroutines may share it: both get their answers.
pub(crate) fn by_two(row: &'static Row) {
    let stage = Stage::of(row);
    let (worker, at) = (Worker::start(), stage.at());
    let expected = open_and_ask(&worker, row, &at);
    worker.step(row.script, "open", &at);
    stage.gate.shut();
    thread::scope(|scope| {
        let ask = || worker.step(row.script, "ask", &at);
        let first = scope.spawn(ask);
        stage.gate.wait_until_holding();
        let second = scope.spawn(ask);
        stage.gate.wait_until_holding_on(2);
        worker.expect_service();
        stage.gate.open();
        assert_eq!(first.join().unwrap(), expected[1]);
        assert_eq!(second.join().unwrap(), expected[1]);
    });
}
