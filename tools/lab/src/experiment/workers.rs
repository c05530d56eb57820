//! Eleven workloads, from two bytes to a page with classes, cache, files and queries, over 100, 500
//! and 1,000 connections: worker scripts against Apache with mod_php and php-fpm.
//!
//! All run the same functions; `site/workloads` documents what is kept between requests. Slices are
//! short and few, so a comparison counts only if the slices of two stacks do not overlap.

use crate::error::Result;
use crate::experiment::class_tree;
use crate::experiment::peers::Comparison;
use crate::fixture::Fixture;
use crate::lab::Lab;
use crate::mariadb::MariaDb;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::Rounds;
use crate::stack::{Stack, check_same_responses};
use crate::verdict::Verdict;
use crate::{apache, nginx};

/// The first word of every target.
const SUBJECT: &str = "workloads";

const CONNECTION_COUNTS: [usize; 3] = [100, 500, 1_000];

/// One process per connection and some to spare: Apache's best case.
const APACHE_PROCESSES: usize = 1_050;

/// Enough for concurrent waits, few enough not to overload the processors.
const FPM_CHILDREN: usize = 50;

/// Concurrent requests of all of outboard's workers together: the largest number of connections.
const CONCURRENCY: usize = 1_000;

/// Database connections of all of outboard's workers together: as many as Apache has.
const DATABASE_CONNECTIONS: usize = 1_000;

/// A workload with its name in tables.
struct Workload {
    name: &'static str,
    path: &'static str,
}

const WORKLOADS: [Workload; 12] = [
    Workload { name: "1 two bytes", path: "/test_01.php" },
    Workload { name: "2 autoloader", path: "/test_02.php" },
    Workload { name: "3 100 classes", path: "/test_03.php" },
    Workload { name: "4 query, new connection", path: "/test_04.php" },
    Workload { name: "5 query, persistent connection", path: "/test_05.php" },
    Workload { name: "6 query, cached", path: "/test_06.php" },
    Workload { name: "7 classes + 10,000 cache reads", path: "/test_07.php" },
    Workload { name: "8 … + 10 files", path: "/test_08.php" },
    Workload { name: "9 … + 20 × SLEEP(0.01)", path: "/test_09.php" },
    Workload { name: "9 in parallel", path: "/test_09_parallel.php" },
    Workload { name: "10 50 classes, 3 × SLEEP(0.01)", path: "/test_10.php" },
    Workload { name: "11 classes, cache, 2 queries", path: "/test_11.php" },
];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let database = MariaDb::of_run(lab)?;
    database.execute(include_str!("../../site/workloads/database.sql"))?;
    let workers = lab.php_processes();
    let fixture = prepare(lab, &database, DATABASE_CONNECTIONS / workers)?;
    let setup = Setup::worker(&fixture, "worker.php", workers, CONCURRENCY / workers);
    let setup = Setup { root: fixture.writable("empty")?, ..setup };
    let outboard = Outboard::launch(lab, &setup)?;
    let root = fixture.public();
    let peers = [
        apache::with_mod_php(lab, &root, APACHE_PROCESSES)?,
        nginx::with_fpm_children(lab, &root, FPM_CHILDREN)?,
    ];
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain(&peers).collect();
    let mut comparison = Comparison::new(lab, report, SUBJECT, &database.group, &CONNECTION_COUNTS);
    for workload in WORKLOADS {
        let length_bytes = match check_same_responses(&stacks, workload.path) {
            Ok(length_bytes) => length_bytes,
            Err(error) => {
                comparison.unequal.push(workload.name);
                report.notes.push(format!("workload {}: {error}", workload.name));
                continue;
            }
        };
        let request = RequestSpec::get(workload.path).expecting(length_bytes);
        comparison.measure(lab, report, workload.name, &stacks, &request)?;
    }
    comparison.report(report, &peers);
    report.verdicts.push(parallel_verdict(&comparison.measured));
    Ok(())
}

/// The scripts, a tree of generated classes, and a script per workload for the peers.
fn prepare(lab: &Lab, database: &MariaDb, connections: usize) -> Result<Fixture> {
    let (socket, connections) = (database.socket.to_string_lossy(), connections.to_string());
    let values = [("SOCKET", &*socket), ("CONNECTIONS", &connections)];
    let fixture = Fixture::unpack(lab, "workloads", &values)?;
    fixture.writable("files")?;
    fixture.add("classes.php", &class_tree::add(&fixture, "classes")?)?;
    for number in 2..=11 {
        fixture.add(&format!("public/test_{number:02}.php"), &script(number))?;
    }
    // The peers cannot run queries concurrently.
    fixture.add("public/test_09_parallel.php", &script(9))?;
    Ok(fixture)
}

fn script(number: usize) -> String {
    format!("<?php\nrequire dirname(__DIR__) . '/classic.php';\necho workload({number});\n")
}

/// The effect of concurrent queries on the time of one request.
fn parallel_verdict(all: &[(String, Rounds)]) -> Verdict {
    let target = "workload 9 in parallel, c=100: p50 below that of one query after the other";
    let p50_ms = |workload: &Workload| {
        let title = format!("{} c={}", workload.name, CONNECTION_COUNTS[0]);
        let rounds = all.iter().find(|(of, _)| *of == title).map(|(_, rounds)| rounds);
        let series = rounds.and_then(|rounds| rounds.of(outboard::NAME))?;
        Some(series.median(|slice| slice.load.latency.p50_us) / 1e3)
    };
    let [sequential, parallel] = [&WORKLOADS[8], &WORKLOADS[9]].map(p50_ms);
    let Some((sequential, parallel)) = sequential.zip(parallel) else {
        return Verdict::not_measured(target, NOT_BUILT);
    };
    let measured = format!("{parallel:.0} ms against {sequential:.0} ms");
    Verdict::exact(target, parallel < sequential, measured)
}
