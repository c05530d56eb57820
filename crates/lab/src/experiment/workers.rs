//! Eleven workloads, from two bytes to a page with classes, cache, files and queries, over 100, 500
//! and 1,000 connections: worker scripts against Apache with mod_php and php-fpm.
//!
//! All run the same functions; `site/workloads` documents what is kept between requests. Slices are
//! short and few, so a comparison counts only if the slices of two stacks do not overlap.

use std::fmt::Write as _;

use crate::error::Result;
use crate::experiment::quick::connection_counts;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::load::Failures;
use crate::mariadb::MariaDb;
use crate::outboard::{self, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::slice::{Rounds, Series, Turns};
use crate::stack::{Stack, check_same_responses};
use crate::verdict::{Outcome, Verdict};
use crate::{apache, nginx};

const CONNECTION_COUNTS: [usize; 3] = [100, 500, 1_000];

/// One process per connection and some to spare: Apache's best case.
const APACHE_PROCESSES: usize = 1_050;

/// Enough for concurrent waits, few enough not to overload the processors.
const FPM_CHILDREN: usize = 50;

/// Concurrent requests of all of outboard's workers together: the largest number of connections.
const CONCURRENCY: usize = 1_000;

/// Database connections of all of outboard's workers together: as many as Apache has.
const DATABASE_CONNECTIONS: usize = 1_000;

/// The ratio from which two single slices count as faster or slower.
const APART: f64 = 1.1;

const GROUPS: usize = 12;

const CLASSES_PER_GROUP: usize = 10;

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
    let full = !lab.effort.is_quick();
    let turns = Turns { slices: if full { 3 } else { 1 }, shared: Some(&database.group) };
    let seconds = if full { 1.0 } else { 0.4 };
    let counts = connection_counts(lab, report, &CONNECTION_COUNTS);
    let (mut all, mut unequal) = (Vec::new(), Vec::new());
    for workload in WORKLOADS {
        let length_bytes = match check_same_responses(&stacks, workload.path) {
            Ok(length_bytes) => length_bytes,
            Err(error) => {
                unequal.push(workload.name);
                report.notes.push(format!("workload {}: {error}", workload.name));
                continue;
            }
        };
        let request = RequestSpec::get(workload.path).expecting(length_bytes);
        for &connections in counts {
            let title = format!("{} c={connections}", workload.name);
            lab.progress(&title);
            let rounds = turns.take(lab, &stacks, |stack| {
                generator::load(stack, &request, connections, seconds)
            })?;
            report.add_rounds(&title, &rounds);
            all.push((title, rounds));
        }
    }
    report.verdicts.push(run_verdict(&unequal));
    report.verdicts.push(failures_verdict(&all));
    report.verdicts.extend(peers.iter().map(|peer| faster_verdict(&all, peer.name)));
    report.verdicts.push(parallel_verdict(&all));
    Ok(())
}

/// The scripts, a tree of generated classes, and a script per workload for the peers.
fn prepare(lab: &Lab, database: &MariaDb, connections: usize) -> Result<Fixture> {
    let (socket, connections) = (database.socket.to_string_lossy(), connections.to_string());
    let values = [("SOCKET", &*socket), ("CONNECTIONS", &connections)];
    let fixture = Fixture::unpack(lab, "workloads", &values)?;
    fixture.writable("files")?;
    let mut names = "<?php\nreturn [\n".to_owned();
    for group in 1..=GROUPS {
        fixture.add(&format!("classes/Lab/Group{group:02}/Base.php"), &base_class(group))?;
        for number in 1..=CLASSES_PER_GROUP {
            let path = format!("classes/Lab/Group{group:02}/Class{number:02}.php");
            fixture.add(&path, &class(group, number))?;
            let _ = writeln!(names, "    'Lab\\Group{group:02}\\Class{number:02}',");
        }
    }
    fixture.add("classes.php", &(names + "];\n"))?;
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

fn base_class(group: usize) -> String {
    format!(
        "<?php
namespace Lab\\Group{group:02};

abstract class Base
{{
    protected array $options = [];

    public function setOptions(array $options): static
    {{
        $this->options = $options + $this->options;
        return $this;
    }}
}}
"
    )
}

/// A class of about the size of a framework's.
fn class(group: usize, number: usize) -> String {
    let mut text = format!(
        "<?php\nnamespace Lab\\Group{group:02};\n\nfinal class Class{number:02} extends Base\n{{\n"
    );
    for property in 1..=5 {
        let _ = write!(
            text,
            "    private ?string $property{property} = null;

    public function getProperty{property}(): string
    {{
        return $this->property{property} ?? $this->options['property{property}'] ?? '{number}';
    }}

    public function setProperty{property}(string $value): void
    {{
        if (strlen($value) > 255) {{
            throw new \\InvalidArgumentException('property{property} is too long');
        }}
        $this->property{property} = trim($value);
    }}

"
        );
    }
    text + "}\n"
}

fn run_verdict(unequal: &[&str]) -> Verdict {
    let measured = match unequal {
        [] => "all".to_owned(),
        names => format!("not compared, since the responses differ: {}", names.join(", ")),
    };
    Verdict::exact("workloads: every one runs, with equal responses", unequal.is_empty(), measured)
}

fn failures_verdict(all: &[(String, Rounds)]) -> Verdict {
    let target = "workloads: 0 failed requests in any";
    let series: Vec<&Series> = all.iter().filter_map(|(_, r)| r.of(outboard::NAME)).collect();
    if series.is_empty() {
        return Verdict::not_measured(target, NOT_BUILT);
    }
    let mut failures = Failures::default();
    series.iter().for_each(|series| failures += series.failures());
    let responses: u64 = series.iter().map(|series| series.responses()).sum();
    let flawless = series.iter().all(|series| series.is_flawless());
    Verdict::exact(target, flawless, format!("{responses} responses, {failures} failed"))
}

/// Whether outboard has a higher rate than a peer in every workload.
fn faster_verdict(all: &[(String, Rounds)], peer: &str) -> Verdict {
    let target = format!("workloads: faster than {peer} in every one");
    let mut times = Vec::new();
    let (mut slower, mut unclear) = (Vec::new(), Vec::new());
    for (title, rounds) in all {
        let (Some(subject), Some(peer)) = (rounds.of(outboard::NAME), rounds.of(peer)) else {
            return Verdict::not_measured(&target, NOT_BUILT);
        };
        let rate = |series: &Series| series.median(|slice| slice.load.rate());
        times.push(rate(subject) / rate(peer));
        match compare(&subject.rates(), &peer.rates()) {
            Outcome::Pass => {}
            Outcome::Fail => slower.push(title.as_str()),
            _ => unclear.push(title.as_str()),
        }
    }
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    let list = |word: &str, titles: &[&str]| match titles {
        [] => String::new(),
        titles => format!("; {word}: {}", titles.join(", ")),
    };
    let words = [list("slower", &slower), list("unclear", &unclear)].concat();
    let measured = format!("{least:.2} to {most:.0} times as fast{words}");
    let outcome = match (slower.is_empty(), unclear.is_empty()) {
        (false, _) => Outcome::Fail,
        (true, false) => Outcome::Undecided,
        (true, true) => Outcome::Pass,
    };
    Verdict { target, measured, outcome, ratio: None }
}

/// Faster, slower, or undecided: the slices of the two must not overlap. One slice of each shows no
/// scatter, so these have to differ by a ratio.
fn compare(subject: &[f64], peer: &[f64]) -> Outcome {
    let apart = if subject.len() > 1 { 1.0 } else { APART };
    let least = |rates: &[f64]| rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    match () {
        () if least(subject) > most(peer) * apart => Outcome::Pass,
        () if most(subject) * apart < least(peer) => Outcome::Fail,
        () => Outcome::Undecided,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_overlap_decide_nothing() {
        assert_eq!(compare(&[10.0, 12.0], &[5.0, 9.0]), Outcome::Pass);
        assert_eq!(compare(&[10.0, 12.0], &[11.0, 9.0]), Outcome::Undecided);
        assert_eq!(compare(&[1.0, 2.0], &[3.0, 9.0]), Outcome::Fail);
    }

    #[test]
    fn single_slices_have_to_lie_apart() {
        assert_eq!(compare(&[10.0], &[9.8]), Outcome::Undecided);
        assert_eq!(compare(&[9.8], &[10.0]), Outcome::Undecided);
        assert_eq!(compare(&[10.0], &[5.0]), Outcome::Pass);
        assert_eq!(compare(&[5.0], &[10.0]), Outcome::Fail);
    }
}
