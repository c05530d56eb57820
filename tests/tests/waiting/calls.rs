//! What is promised of calls that wait for the machine itself: times, children, pipes, locks.
//! Their scripts say through a named pipe, `mark`, that the wait is next.

use crate::rows::Row;
use crate::subject::{At, Reference, Subject, Worker};
use outboard_e2e::{Client, Fifo, Names, Request, Scratch};
use serde_json::{Value, json};
use std::fs::File;
use std::sync::Mutex;
use std::thread;

/// The pipes and the file of one test.
struct Place {
    mark: Mutex<Fifo>,
    gate: Mutex<Fifo>,
    file: std::path::PathBuf,
    scratch: Scratch,
}

impl Place {
    fn new() -> Place {
        let scratch = Scratch::new("waiting");
        let mark = Mutex::new(Fifo::at(scratch.path().join("mark")));
        let gate = Mutex::new(Fifo::at(scratch.path().join("gate")));
        let file = scratch.file("lock", "");
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
        Place { mark, gate, file, scratch }
    }

    fn at(&self) -> At {
        ["mark", "gate", "lock", "sessions"]
            .map(|name| (name.to_owned(), self.scratch.path().join(name).display().to_string()))
            .to_vec()
    }

    #[track_caller]
    fn wait_for_mark(&self) {
        self.mark.lock().unwrap().hear();
    }

    fn open_gate(&self) {
        self.gate.lock().unwrap().say("the line");
    }

    fn lock(&self) -> File {
        let file = File::options().write(true).open(&self.file).expect("it is ours");
        file.lock().expect("nobody else has it");
        file
    }
}

/// The result is that of the call that blocks.
pub(crate) fn short_answers(row: &'static Row) {
    let at = At::new();
    let waiting = Worker::start().step(row.script, "ask", &at);
    assert_eq!(waiting, Reference::start().step(row.script, "ask", &at));
}

/// While it waits for a time that no test lives to see, the worker answers another request.
pub(crate) fn long_others(row: &'static Row) {
    let (place, worker) = (Place::new(), Worker::start());
    let target = worker.target("/task", row.script, "ask long", &place.at());
    thread::scope(|scope| {
        let asking = scope.spawn(|| worker.get(&target).text());
        place.wait_for_mark();
        worker.expect_service();
        worker.get("/cancel");
        asking.join().unwrap();
    });
}

/// `Coroutine::cancel()` ends the wait.
pub(crate) fn long_cancelled(row: &'static Row) {
    let place = Place::new();
    expect_cancelled(row, "ask long", &place);
}

/// The deadline of the request ends the wait, and the worker goes on.
pub(crate) fn long_deadline(row: &'static Row) {
    let (place, worker) = (Place::new(), Worker::with_deadline("1s"));
    let target = worker.target("/step", row.script, "ask long", &place.at());
    Client::new(worker.site.address()).send(&Request::get(&target)).expect(504);
    worker.expect_service();
}

/// The result is that of the call that blocks.
pub(crate) fn gated_answers(row: &'static Row) {
    let place = Place::new();
    let ask = |subject: &dyn Subject| {
        place.open_gate();
        let outcome = subject.step(row.script, "ask", &place.at());
        place.wait_for_mark();
        outcome
    };
    let waiting = ask(&Worker::start());
    assert_eq!(waiting["exception"], Value::Null, "{waiting}");
    assert_eq!(waiting, ask(&Reference::start()));
}

/// While it waits, the worker answers another request.
pub(crate) fn gated_others(row: &'static Row) {
    let (place, worker) = (Place::new(), Worker::start());
    expect_others(row, &place, &worker, || place.open_gate());
}

/// `Coroutine::cancel()` ends the wait.
pub(crate) fn gated_cancelled(row: &'static Row) {
    let place = Place::new();
    expect_cancelled(row, "ask", &place);
}

/// The result is that of the call that blocks.
pub(crate) fn locked_answers(row: &'static Row) {
    let place = Place::new();
    let ask = |subject: &dyn Subject| {
        let outcome = subject.step(row.script, "ask", &place.at());
        place.wait_for_mark();
        outcome
    };
    assert_eq!(ask(&Worker::start()), ask(&Reference::start()));
}

/// While another process has the lock, the worker answers another request.
pub(crate) fn locked_others(row: &'static Row) {
    let (place, worker) = (Place::new(), Worker::start());
    let lock = place.lock();
    expect_others(row, &place, &worker, || drop(lock));
}

/// `Coroutine::cancel()` ends the wait.
pub(crate) fn locked_cancelled(row: &'static Row) {
    let place = Place::new();
    let _lock = place.lock();
    expect_cancelled(row, "ask", &place);
}

/// Two requests of one session in one worker: the second waits for the first, and nobody else.
pub(crate) fn session_turns(row: &'static Row) {
    let (place, worker) = (Place::new(), Worker::start());
    place.scratch.folder("sessions");
    let at = place.at();
    thread::scope(|scope| {
        let first = scope.spawn(|| worker.step(row.script, "hold", &at));
        place.wait_for_mark();
        let second = scope.spawn(|| worker.step(row.script, "count", &at));
        place.wait_for_mark();
        worker.expect_service();
        place.open_gate();
        assert_eq!(first.join().unwrap()["value"], json!(1));
        assert_eq!(second.join().unwrap()["value"], json!(2));
    });
}

/// `Coroutine::cancel()` ends the wait for a session that another request of the worker has.
pub(crate) fn session_cancelled(row: &'static Row) {
    let (place, worker) = (Place::new(), Worker::start());
    place.scratch.folder("sessions");
    let at = place.at();
    let target = worker.target("/task", row.script, "count", &at);
    thread::scope(|scope| {
        let first = scope.spawn(|| worker.step(row.script, "hold", &at));
        place.wait_for_mark();
        let second = scope.spawn(|| worker.get(&target).text());
        place.wait_for_mark();
        worker.get("/cancel");
        assert_eq!(second.join().unwrap(), "\"cancelled\"");
        place.open_gate();
        assert_eq!(first.join().unwrap()["value"], json!(1));
    });
}

/// While the name server is silent, the worker answers another request.
pub(crate) fn name_others(row: &'static Row) {
    let names = Names::start();
    let (worker, at) = (Worker::resolving(&names), At::new());
    thread::scope(|scope| {
        let asking = scope.spawn(|| worker.step(row.script, "ask", &at));
        names.wait_until_asked();
        worker.expect_service();
        names.open();
        let answered = asking.join().unwrap();
        assert_eq!(answered["exception"], Value::Null, "{answered}");
        assert_eq!(answered, worker.step(row.script, "ask", &at));
    });
}

/// There is no such name, or it is an address: the result is that of the call that blocks.
pub(crate) fn name_answers(row: &'static Row) {
    let (worker, reference) = (Worker::start(), Reference::start());
    for name in ["localhost", "nowhere.invalid", "127.0.0.1", ""] {
        let at = vec![("name".to_owned(), name.to_owned())];
        let asked = |subject: &dyn Subject| subject.step(row.script, "ask", &at);
        assert_eq!(asked(&worker), asked(&reference), "{name}");
    }
}

/// Children and signals are those of the process: these rows would take each other's.
const OF_THE_PROCESS: [&str; 4] = ["pcntl_wait", "ffi_waitid", "pcntl_sigtimedwait", "signal"];

/// Every way to wait that these tests know how to end, at the same time in one worker.
#[test]
fn while_all_ways_wait_the_worker_answers_others() {
    let worker = Worker::start();
    let is_meant =
        |row: &&Row| row.checks.contains(&"gated_others") && !OF_THE_PROCESS.contains(&row.script);
    let rows: Vec<&Row> = crate::ROWS.iter().copied().filter(is_meant).collect();
    let places: Vec<Place> = rows.iter().map(|_| Place::new()).collect();
    thread::scope(|scope| {
        let asking: Vec<_> = std::iter::zip(&rows, &places)
            .map(|(row, place)| {
                let target = worker.target("/step", row.script, "ask", &place.at());
                let worker = &worker;
                let asking = scope.spawn(move || worker.get(&target).text());
                place.wait_for_mark();
                worker.expect_service();
                asking
            })
            .collect();
        assert!(asking.iter().all(|asking| !asking.is_finished()), "one has not waited");
        places.iter().for_each(Place::open_gate);
        asking.into_iter().for_each(|asking| drop(asking.join().unwrap()));
    });
}

fn expect_others(row: &Row, place: &Place, worker: &Worker, release: impl FnOnce()) {
    let at = place.at();
    thread::scope(|scope| {
        let asking = scope.spawn(|| worker.step(row.script, "ask", &at));
        place.wait_for_mark();
        worker.expect_service();
        release();
        let outcome = asking.join().unwrap();
        assert_eq!(outcome["exception"], Value::Null, "{outcome}");
    });
}

fn expect_cancelled(row: &Row, verb: &str, place: &Place) {
    let worker = Worker::start();
    let target = worker.target("/task", row.script, verb, &place.at());
    thread::scope(|scope| {
        let asking = scope.spawn(|| worker.get(&target).text());
        place.wait_for_mark();
        worker.expect_service();
        worker.get("/cancel");
        // A child is waited for by PHP itself when its handle goes.
        place.open_gate();
        assert_eq!(asking.join().unwrap(), "\"cancelled\"");
    });
    worker.expect_service();
}
