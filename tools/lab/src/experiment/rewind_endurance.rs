//! A million mixed requests to workers that are rewound: nothing grows, none fails, and each response, with a
//! probe of all state at its beginning, is that of a fresh process.
//!
//! The requests are random combinations of the pieces of code by which the host's tests look for what a rewind
//! leaves, and ordinary pages between them. What each must say is asked of workers that are forked for each
//! request. Both ways of finding writes serve half of the requests, and a tenth of each with every rewind compared
//! with the snapshot, byte by byte. Workers are not recycled meanwhile.

use std::collections::BTreeMap;
use std::fs;

use crate::error::{Error, Result};
use crate::fixture::Fixture;
use crate::generator::{self, Task};
use crate::http;
use crate::lab::Lab;
use crate::load::Failures;
use crate::outboard::{NAME, NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::verdict::Verdict;
use outboard_profile::process_table::{Pid, Process, kind_of};

const REQUESTS: u64 = 1_000_000;

const CONNECTIONS: usize = 8;

const WORKERS: usize = 2;

/// Different requests.
const COMBINATIONS: usize = 120;

/// After this part of the requests there is a reading that later ones are compared with.
const WARM_UP_PART: u64 = 10;

/// But not before each worker has learned what it keeps in its caches (php-host/src/rewind/warm_caches.rs), unless
/// that is more than half of them.
const LEARNED_AFTER: u64 = 2_000;

/// Readings on the way, each with a line of progress.
const READINGS: u64 = 10;

/// A rewind by the page map drops its copies of pages after every 128 requests of a worker, so its memory is read
/// so often, with so many requests between, and the least counts.
const CYCLE_READINGS: usize = 160;
const CYCLE_STEP: u64 = 3;

/// Growth that counts as none: the kernel's counts of shared pages are not exact to the page.
const GROWTH_LIMIT_MIB: f64 = 0.5;

/// A share of the requests, and how its workers find writes.
struct Part {
    name: &'static str,
    percent: u64,
    environment: &'static str,
}

const PARTS: [Part; 4] = [
    Part { name: "write protection", percent: 45, environment: "" },
    Part { name: "page map", percent: 45, environment: "OUTBOARD_REWIND_BY_PAGE_MAP = \"1\"" },
    Part {
        name: "write protection, verified",
        percent: 5,
        environment: "OUTBOARD_VERIFY_REWIND = \"1\"",
    },
    Part {
        name: "page map, verified",
        percent: 5,
        environment: "OUTBOARD_REWIND_BY_PAGE_MAP = \"1\"\nOUTBOARD_VERIFY_REWIND = \"1\"",
    },
];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let requests = lab.effort.requests.unwrap_or(REQUESTS / lab.effort.shortening);
    let fixture = Fixture::unpack(lab, "pieces", &[])?;
    let root = fixture.writable("empty")?;
    let forked = Setup::fork(&fixture, "pieces.php", WORKERS).rooted(&root).with(SETTINGS);
    let Some(oracle) = Outboard::launch(lab, &forked)? else {
        for part in &PARTS {
            report.verdicts.push(Verdict::not_measured(&target(part, requests), NOT_BUILT));
        }
        return Ok(());
    };
    let specs = expectations(
        &oracle,
        &paths(&fs::read_to_string(fixture.path("pieces.php")).unwrap_or_default()),
    )?;
    drop(oracle);
    for part in &PARTS {
        endure(lab, report, &fixture, part, (requests, &specs))?;
    }
    Ok(())
}

/// Errors are shown, so that responses say which they are; nothing of a script's run differs from another's.
const SETTINGS: &str = "[app.site.php.ini]\ndisplay_errors = \"1\"\nhtml_errors = \"0\"\n\
    memory_limit = \"128M\"\n[app.site.pool]\nmax_requests = 0\n";

fn target(part: &Part, requests: u64) -> String {
    let count = requests * part.percent / 100;
    format!(
        "rewind by {}, {count} mixed requests: 0 failed, no state carried over, ≤ {GROWTH_LIMIT_MIB} MiB, no \
         descriptor and no mapping more",
        part.name
    )
}

/// Random requests, the same each time.
fn paths(script: &str) -> Vec<String> {
    let lines = script.lines().filter_map(|line| line.strip_prefix("    '"));
    let names: Vec<&str> = lines.filter_map(|line| Some(line.split_once("' => f")?.0)).collect();
    let mut number = 1_u64;
    let mut below = |limit: usize| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as usize % limit
    };
    let combinations = (0..COMBINATIONS).map(|_| {
        let count = 1 + below(3);
        let some: Vec<&str> = (0..count).map(|_| names[below(names.len())]).collect();
        format!("/state,{}", some.join(",").replace(' ', "%20"))
    });
    combinations.collect()
}

/// The requests with what a fresh process responds, and an ordinary page after each.
fn expectations(oracle: &Outboard, paths: &[String]) -> Result<Vec<RequestSpec>> {
    let address = oracle.stack.address;
    let page = http::get(address, "/page")?;
    let mut specs = Vec::new();
    for path in paths {
        let [one, other] = [http::get(address, path)?, http::get(address, path)?];
        if one != other {
            let what = format!("{path}: {} and {}", one.summary(), other.summary());
            return Err(Error::Unexpected { who: NAME.into(), what });
        }
        // The generator counts other statuses as failures.
        if one.status == 200 {
            specs.push(RequestSpec::get(path).expecting_body(&one.body));
            specs.push(RequestSpec::get("/page").expecting_body(&page.body));
        }
    }
    Ok(specs)
}

/// The first request to which the response is another, and both.
fn first_difference(outboard: &Outboard, specs: &[RequestSpec]) -> Result<Option<String>> {
    for spec in specs {
        let response = http::send(outboard.stack.address, spec)?;
        let expected = spec.response.as_deref().unwrap_or_default();
        if response.body != expected {
            let [one, other] = [expected, &response.body].map(String::from_utf8_lossy);
            return Ok(Some(format!("{}: {one:?} expected, {other:?} came", spec.path())));
        }
    }
    Ok(None)
}

/// What the processes of a server have.
#[derive(Debug, PartialEq)]
struct Reading {
    bytes: BTreeMap<Pid, u64>,
    /// By the kind of process: descriptors, those of userfaultfd(2), mappings.
    counts: BTreeMap<String, [usize; 3]>,
    workers: Vec<Pid>,
}

impl Reading {
    fn of(outboard: &Outboard) -> Self {
        outboard.stack.settle();
        let (mut counts, mut bytes) = (BTreeMap::<String, [usize; 3]>::new(), BTreeMap::new());
        for pid in outboard.stack.group.pids() {
            let Some(process) = Process::read(pid).filter(|process| !process.zombie) else {
                continue;
            };
            bytes.insert(pid, own_bytes(pid));
            let own = counts.entry(kind_of(&process.name)).or_default();
            let descriptors =
                fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
            for descriptor in descriptors {
                own[0] += 1;
                let target = fs::read_link(descriptor.path()).unwrap_or_default();
                own[1] += usize::from(target.to_string_lossy().contains("userfaultfd"));
            }
            own[2] +=
                fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default().lines().count();
        }
        let mut workers = outboard.workers();
        workers.sort_unstable();
        Self { bytes, counts, workers }
    }

    /// The least over a cycle of requests, which are sent meanwhile.
    fn of_cycle(outboard: &Outboard, task: &Task, failures: &mut Failures) -> Result<Self> {
        let mut least = Self::of(outboard);
        for _ in 0..CYCLE_READINGS {
            *failures += generator::run_count(task, CYCLE_STEP)?.load.failures;
            let now = Self::of(outboard);
            for (pid, bytes) in &mut least.bytes {
                *bytes = now.bytes.get(pid).map_or(*bytes, |now| (*now).min(*bytes));
            }
            least = Self { bytes: least.bytes, ..now };
        }
        Ok(least)
    }

    fn mib(&self) -> f64 {
        self.bytes.values().sum::<u64>() as f64 / 1_048_576.0
    }

    fn describe(&self) -> String {
        let counts = self.counts.iter().map(|(kind, [descriptors, watches, mappings])| {
            format!(
                "{kind}: {descriptors} descriptors, {watches} of userfaultfd, {mappings} mappings"
            )
        });
        format!("{:.2} MiB; {}", self.mib(), counts.collect::<Vec<_>>().join("; "))
    }

    /// Whether there is no more than before, in the same workers.
    fn is_flat(&self, before: &Self) -> bool {
        let is_less = |(kind, now): (&String, &[usize; 3])| {
            before
                .counts
                .get(kind)
                .is_some_and(|then| now.iter().zip(then).all(|(now, then)| now <= then))
        };
        self.mib() - before.mib() <= GROWTH_LIMIT_MIB
            && self.workers == before.workers
            && self.counts.iter().all(is_less)
    }
}

/// The anonymous memory of a process, with its part of what it shares after a fork. Pages of files are there whether a
/// process has mapped them or not: those of libraries, and those of the snapshot's file, of which workers come to map all
/// that any request writes.
fn own_bytes(pid: Pid) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let own = rollup.lines().filter(|line| line.starts_with("Pss_Anon:"));
    let kib = own.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.sum::<u64>() * 1024
}

fn endure(
    lab: &mut Lab,
    report: &mut Report,
    fixture: &Fixture,
    part: &Part,
    (requests, specs): (u64, &[RequestSpec]),
) -> Result<()> {
    let count = requests * part.percent / 100;
    let environment = format!("{SETTINGS}[app.site.php.env]\n{}\n", part.environment);
    let root = fixture.writable("empty")?;
    let setup = Setup::rewind(fixture, "pieces.php", WORKERS).rooted(&root).with(&environment);
    let Some(outboard) = Outboard::launch(lab, &setup)? else { return Ok(()) };
    let task_of = |specs: &[RequestSpec]| Task {
        requests: specs.to_vec(),
        ..Task::get(outboard.stack.address, "/", CONNECTIONS)
    };
    // Ordinary pages alone during a reading: a large one would be in it or not.
    let (task, pages) = (task_of(specs), task_of(&specs[specs.len().saturating_sub(1)..]));
    let warm_up = (count / WARM_UP_PART).max(LEARNED_AFTER).min(count / 2);
    let (mut sent, mut failures, mut first) = (0, Failures::default(), None);
    for _ in 0..2 * WORKERS {
        if let Some(difference) = first_difference(&outboard, specs)? {
            report.notes.push(format!("{}: {difference}", part.name));
            break;
        }
    }
    for reading in 1..=READINGS {
        let until = count * reading / READINGS;
        failures += generator::run_count(&task, until - sent)?.load.failures;
        sent = until;
        let now = Reading::of(&outboard);
        lab.progress(&format!(
            "{}: {sent:>8} requests, {failures} failed; {}",
            part.name,
            now.describe()
        ));
        if first.is_none() && sent >= warm_up {
            first = Some(Reading::of_cycle(&outboard, &pages, &mut failures)?);
        }
    }
    let last = Reading::of_cycle(&outboard, &pages, &mut failures)?;
    let first = first.as_ref().unwrap_or(&last);
    let is_flat = last.is_flat(first);
    let replaced = if last.workers == first.workers { "" } else { "; workers were replaced" };
    let measured = format!(
        "{failures} failed{replaced}; {} after {warm_up} requests; {}",
        first.describe(),
        last.describe()
    );
    let holds = is_flat && failures.total() == 0;
    report.verdicts.push(Verdict::exact(&target(part, requests), holds, measured));
    Ok(())
}
