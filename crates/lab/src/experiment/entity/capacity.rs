//! As fast as answers come, against Redis with `appendfsync everysec`, without pipelining: what a
//! request costs the server.

use super::rates::slices;
use super::{CONNECTIONS, KEYS, VALUE, get, put, slice_seconds};
use crate::ask::Ask;
use crate::error::Result;
use crate::experiment::hello::cpu_verdict;
use crate::generator::{Mix, Protocol};
use crate::lab::Lab;
use crate::redis;
use crate::report::Report;
use crate::slice::Turns;
use crate::stack::Stack;

pub(super) fn run(lab: &Lab, report: &mut Report, outboard: &Stack, redis: &Stack) -> Result<()> {
    let set = Ask::command("SET", "/key{key}", Some(VALUE)).filled();
    let read = Ask::command("GET", "/key{key}", None).filled().expecting(VALUE.len());
    let seconds = slice_seconds(lab);
    for (word, ours, theirs, part) in [("PUT", put(), set, 0.6), ("GET", get(), read, 0.8)] {
        let ours = Mix::of(Protocol::Http, ours, KEYS, CONNECTIONS);
        let theirs = Mix::of(Protocol::Redis, theirs, KEYS, CONNECTIONS);
        let turns = Turns { slices: slices(lab), beside: None };
        let rounds = turns.take(lab, &[outboard, redis], |stack| match stack.name {
            redis::NAME => theirs.load(stack, seconds),
            _ => ours.load(stack, seconds),
        })?;
        report.add_rounds(&format!("{word} against Redis c=64"), &rounds);
        let bar = format!("{word}: requests per second of CPU ≥ {part} × Redis");
        report.verdicts.push(cpu_verdict(&rounds, &bar, redis::NAME, 1.0 / part));
    }
    Ok(())
}
