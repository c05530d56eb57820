//! A closed loop against Redis with `appendfsync everysec`, without pipelining: the server's cost
//! of a request.

use super::rates::slices;
use super::store::{CONNECTIONS, KEYS, VALUE, get, put, slice_seconds};
use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::generator::{Mix, Protocol};
use crate::lab::Lab;
use crate::redis;
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::Turns;
use crate::stack::Stack;

pub(super) fn run(lab: &Lab, report: &mut Report, outboard: &Stack, redis: &Stack) -> Result<()> {
    let set = RequestSpec::command("SET", "/key{key}", Some(VALUE)).filled();
    let read = RequestSpec::command("GET", "/key{key}", None).filled().expecting(VALUE.len());
    let seconds = slice_seconds(lab);
    for (word, ours, theirs, part) in [("PUT", put(), set, 0.6), ("GET", get(), read, 0.8)] {
        let ours = Mix::of(Protocol::Http, ours, KEYS, CONNECTIONS);
        let theirs = Mix::of(Protocol::Redis, theirs, KEYS, CONNECTIONS);
        let turns = Turns { slices: slices(lab), shared: None };
        let rounds = turns.take(lab, &[outboard, redis], |stack| match stack.name {
            redis::NAME => theirs.load(stack, seconds),
            _ => ours.load(stack, seconds),
        })?;
        report.add_rounds(&format!("{word} against Redis c=64"), &rounds);
        let target = format!("{word}: requests per second of CPU ≥ {part} × Redis");
        report.verdicts.push(cpu_verdict(&rounds, &target, redis::NAME, 1.0 / part));
    }
    Ok(())
}
