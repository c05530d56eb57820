//! `outboard bench webbench`: the flags and the report of webbench.

use super::getopt::{GetoptArgs, GetoptSpec};
use super::{header, helps, number, only_step, plan, seconds, warnings};
use crate::bench::Stop;
use crate::terminal::show;
use outboard_load::{Run, report};
use std::time::Duration;

const WEBBENCH: GetoptSpec = GetoptSpec {
    short: "t:c:fr912p:GHOTV",
    long: &[
        ("time", 't'),
        ("clients", 'c'),
        ("force", 'f'),
        ("reload", 'r'),
        ("http09", '9'),
        ("http10", '1'),
        ("http11", '2'),
        ("proxy", 'p'),
        ("get", 'G'),
        ("head", 'H'),
        ("options", 'O'),
        ("trace", 'T'),
        ("version", 'V'),
    ],
};

pub(in crate::bench) fn webbench(words: &[String]) -> Result<u8, Stop> {
    if helps(words) {
        return Ok(0);
    }
    let flags = GetoptArgs::read(&WEBBENCH, words)?;
    if flags.has('p') || flags.has('9') {
        return Err(Stop::mistake("neither proxies nor HTTP/0.9 are supported"));
    }
    let mut plan = plan(flags.url()?)?;
    plan.connections = flags.parsed('c', number)?.unwrap_or(1);
    plan.duration = flags.parsed('t', seconds)?.unwrap_or(Duration::from_secs(30));
    plan.keep_alive = false;
    let methods = [('H', "HEAD"), ('O', "OPTIONS"), ('T', "TRACE")];
    let method = methods.into_iter().find(|(flag, _)| flags.has(*flag));
    let method = method.map_or("GET", |(_, method)| method);
    let request = &mut only_step(&mut plan).request;
    method.clone_into(&mut request.method);
    if flags.has('r') {
        header(request, "Pragma", "no-cache");
    }
    let summary = Run::start(plan)?.finish()?;
    show(&report::webbench(&summary, method));
    Ok(warnings(&summary))
}
