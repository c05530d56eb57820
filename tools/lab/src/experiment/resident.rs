//! The scripts of a resident system that was measured against mod_php: each is a program
//! that starts a server, with a variant for a process per request (the crate `resident`), over 100, 500 and 1,000 connections.
//!
//! `outboard run` serves the programs, Apache with mod_php and php-fpm the variants; PHP with the
//! extension serves the programs as well, if it is there. Responses are compared before anything is
//! measured.

use crate::error::Result;
use crate::experiment::class_tree;
use crate::experiment::peers::Comparison;
use crate::experiment::quick::connection_counts;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::mariadb::MariaDb;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::{Rounds, interleave};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;
use crate::{apache, nginx, programs};
use outboard_resident::{EXTENSION, NOT_INSTALLED, SERVER};

/// The first words of every target.
const SUBJECT: &str = "resident system";

const CONNECTION_COUNTS: [usize; 3] = [100, 500, 1_000];

/// One process per connection and some to spare: Apache's best case.
const APACHE_PROCESSES: usize = 1_050;

/// Enough for concurrent waits, few enough not to overload the processors.
const FPM_CHILDREN: usize = 50;

/// Database connections in the pools of all workers together, as in the original.
const DATABASE_CONNECTIONS: usize = 120;

/// The programs, in the order of the original.
const SCRIPTS: [&str; 8] = [
    "basic",
    "basic_class_load",
    "basic_class_load_multiple",
    "basic_query",
    "basic_query_with_pool",
    "basic_query_with_pool_and_caching",
    "real_app_simulation",
    "simple_real_app_simulation",
];

/// The name of the worker script in tables.
const WORKER: &str = "outboard, worker";

/// The allowed CPU of a program's hello relative to the worker script's.
const HELLO_LIMIT: f64 = 1.25;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let database = MariaDb::of_run(lab)?;
    let tables = outboard_resident::DATABASE;
    database.execute(&format!("CREATE OR REPLACE DATABASE resident; USE resident; {tables}"))?;
    let fixture = prepare(lab, &database)?;
    hello(lab, report, &fixture)?;
    let root = fixture.path("mod_php");
    let peers = [
        apache::with_mod_php(lab, &root, APACHE_PROCESSES)?,
        nginx::with_fpm_children(lab, &root, FPM_CHILDREN)?,
    ];
    let mut comparison = Comparison::new(lab, report, SUBJECT, &database.group, &CONNECTION_COUNTS);
    for name in SCRIPTS {
        let (outboard, extension) = start(lab, report, &fixture, name)?;
        let path = format!("/{name}.php");
        let stacks: Vec<&Stack> = outboard.iter().chain(&peers).collect();
        let length_bytes = match check_same_responses(&stacks, &path) {
            Ok(length_bytes) => length_bytes,
            Err(error) => {
                comparison.unequal.push(name);
                report.notes.push(format!("{name}: {error}"));
                continue;
            }
        };
        let stacks = stacks.into_iter().chain(same(report, &peers[0], extension.as_ref(), &path));
        let stacks: Vec<&Stack> = stacks.collect();
        let request = RequestSpec::get(&path).expecting(length_bytes);
        comparison.measure(lab, report, name, &stacks, &request)?;
    }
    comparison.report(report, &peers);
    Ok(())
}

/// Two bytes by a program, against a worker script with the same response.
fn hello(lab: &mut Lab, report: &mut Report, fixture: &Fixture) -> Result<()> {
    let scripts = Fixture::unpack(lab, "worker", &[])?;
    // As many requests at a time as a program gets.
    let setup = Setup::worker(&scripts, "hello.php", lab.php_processes(), 1_000).named(WORKER);
    let worker = Outboard::launch(lab, &setup)?;
    let (outboard, extension) = start(lab, report, fixture, SCRIPTS[0])?;
    let worker = worker.as_ref().map(|worker| &worker.stack);
    let stacks: Vec<&Stack> = outboard.iter().chain(worker).chain(extension.as_ref()).collect();
    if stacks.is_empty() {
        report.verdicts.push(Verdict::not_measured(SUBJECT, NOT_BUILT));
        return Ok(());
    }
    let request = RequestSpec::get("/").expecting(check_same_responses(&stacks, "/")?);
    let seconds = lab.effort.slice_seconds;
    for &connections in connection_counts(lab, report, &CONNECTION_COUNTS) {
        let rounds = interleave(lab, &stacks, |stack| {
            generator::load(stack, &request, connections, seconds)
        })?;
        let title = format!("hello of {SERVER} c={connections}");
        report.add_rounds(&title, &rounds);
        report.verdicts.push(hello_verdict(&rounds, &title));
    }
    Ok(())
}

fn hello_verdict(rounds: &Rounds, title: &str) -> Verdict {
    let target = format!("{title}: CPU per request ≤ {HELLO_LIMIT} × a worker script's");
    match rounds.of(outboard::NAME).zip(rounds.of(WORKER)) {
        Some((program, worker)) => {
            let ratio = paired_ratio(&program.cpu_us(), &worker.cpu_us());
            Verdict::ratio(&target, HELLO_LIMIT, ratio)
        }
        None => Verdict::not_measured(&target, NOT_BUILT),
    }
}

/// A program under `outboard run` and under the extension. Without the extension, or if the program
/// does not run under this version of it, the report has a note instead.
fn start(
    lab: &mut Lab,
    report: &mut Report,
    fixture: &Fixture,
    name: &str,
) -> Result<(Option<Stack>, Option<Stack>)> {
    let (directory, script) = (fixture.path("programs"), format!("{name}.php"));
    let outboard = programs::with_outboard(lab, &directory, &script)?;
    let (extension, why) = match programs::with_extension(lab, &directory, &script) {
        Ok(Some(stack)) => (Some(stack), None),
        Ok(None) => (None, Some(NOT_INSTALLED.to_owned())),
        Err(error) => (None, Some(format!("{name}: {}", in_brief(&error.to_string())))),
    };
    report.notes.extend(why.filter(|why| !report.notes.contains(why)));
    Ok((outboard, extension))
}

/// The first line of a message with a log, and the error in it.
fn in_brief(message: &str) -> String {
    let fatal = message.lines().find(|line| line.contains("Fatal error"));
    [message.lines().next(), fatal].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The extension's stack, if its response is that of another one.
fn same<'a>(
    report: &mut Report,
    other: &Stack,
    extension: Option<&'a Stack>,
    path: &str,
) -> Option<&'a Stack> {
    let extension = extension?;
    match check_same_responses(&[other, extension], path) {
        Ok(_) => Some(extension),
        Err(error) => {
            report.notes.push(format!("{}: {path}: {error}", EXTENSION));
            None
        }
    }
}

/// The scripts, the tree of classes that some of them load, and the database's settings.
fn prepare(lab: &Lab, database: &MariaDb) -> Result<Fixture> {
    let fixture = Fixture::unpack(lab, "resident", &[])?;
    let classes = class_tree::add(&fixture, "include/classes")?;
    fixture.add("include/available_classes.php", &classes)?;
    let settings = format!(
        "<?php

return [
    'socket' => '{}',
    'user' => 'root',
    'password' => '',
    'database' => 'resident',
    'connections' => {},
];
",
        database.socket.display(),
        DATABASE_CONNECTIONS / lab.php_processes(),
    );
    fixture.add("include/settings.php", &settings)?;
    Ok(fixture)
}
