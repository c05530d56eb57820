//! What follows for the other requests of a worker when one of them comes to a bad end, and that
//! this one gets an error: never an empty answer that looks like success.

use crate::serving;
use outboard_e2e::{Configured, Held, Response, eventually};

/// How a worker fares.
#[derive(Clone, Copy, PartialEq)]
enum Worker {
    /// It goes on.
    Stays,
    /// It finishes what it has, and another takes its place.
    Leaves,
    /// It is lost with all that it has.
    Dies,
}

fn pid(site: &Configured) -> String {
    let response = site.client().get("/hello").expect(200);
    response.header("x-worker").expect("the script says it").to_owned()
}

/// The answer to a request that ends in this way, beside two others.
#[track_caller]
fn ending(way: &str, status: u16, worker: Worker) -> Response {
    let site = serving(4);
    let before = pid(&site);
    let held: Vec<Held> = (0..2).map(|_| site.hold()).collect();
    let response = site.client().get(&format!("/fail/{way}")).expect(status);
    for mut one in held {
        match worker {
            Worker::Dies => drop(one.answer().expect(502)),
            _ => one.finishes(),
        }
    }
    if worker == Worker::Stays {
        assert_eq!(pid(&site), before);
    } else {
        eventually("the worker is replaced", || pid(&site) != before);
    }
    assert_eq!(site.status()["pools"][0]["in_flight"], 0);
    response
}

#[test]
fn memory() {
    ending("memory", 500, Worker::Leaves);
}

#[test]
fn endless_recursion() {
    ending("recursion", 500, Worker::Leaves);
}

#[test]
fn endless_recursion_in_the_engine() {
    ending("recursion_in_the_engine", 502, Worker::Dies);
}

#[test]
fn an_uncaught_error() {
    ending("error", 500, Worker::Stays);
    ending("error_in_shutdown", 500, Worker::Stays).saying("body");
}

#[test]
fn a_fatal_error() {
    ending("fatal", 500, Worker::Leaves);
}

#[test]
fn exit() {
    ending("exit_early", 200, Worker::Stays).saying("before!");
    ending("exit_in_shutdown", 200, Worker::Stays).saying("body bye");
}

#[test]
fn an_error_in_a_destructor() {
    ending("destructor", 500, Worker::Stays);
    ending("destructor_in_collection", 500, Worker::Stays);
    ending("late_destructor", 200, Worker::Stays).saying("body");
}

#[test]
fn an_error_at_the_end_of_the_request() {
    ending("buffer", 500, Worker::Stays);
    ending("session", 200, Worker::Stays).saying("body");
    ending("deferred", 200, Worker::Stays).saying("body");
}

#[test]
fn memory_in_a_shutdown_function() {
    ending("memory_in_shutdown", 500, Worker::Leaves);
}

#[test]
fn memory_in_an_output_buffer() {
    ending("memory_in_buffer", 500, Worker::Leaves);
}

#[test]
fn memory_in_deferred_work() {
    ending("memory_in_deferred", 200, Worker::Leaves).saying("body");
}

#[test]
fn memory_in_a_task() {
    ending("memory_in_task", 500, Worker::Leaves);
}
