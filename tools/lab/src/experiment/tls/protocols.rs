//! The protocols of one server against each other: HTTP/2 against HTTP/1.1, HTTP/3 against HTTP/2.
//!
//! The same stack serves a request by each of them in turns, all over TLS.

use super::{HTTP1, LARGE, QUIC_LARGE, QUIC_SHARED, QUIC_SINGLE, SHARED, SINGLE};
use crate::error::Result;
use crate::experiment::page_cache::launch_caching;
use crate::fixture::Fixture;
use crate::generator::{Over, load_by_tls};
use crate::lab::Lab;
use crate::load::Load;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, KIBIBYTE, MEGABYTE, Site};
use crate::slice::{Rounds, Turns, measure};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::tls_listener::TlsListener;
use crate::verdict::Verdict;

/// The CPU of HTTP/2 relative to that of HTTP/1.1.
const HTTP2_LIMIT: f64 = 1.1;
/// The CPU of HTTP/3 relative to that of HTTP/2.
const HTTP3_LIMIT: f64 = 1.5;

/// A request takes a worker script less than a µs.
const WORKERS: usize = 1;

/// One way to load the stack.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    over: Over,
    rate: Option<f64>,
}

/// A table of shapes; all but the last are compared with the last.
struct Table<'a> {
    title: &'static str,
    path: &'static str,
    shapes: &'a [Shape],
    limit: f64,
}

const fn shape(name: &'static str, over: Over) -> Shape {
    Shape { name, over, rate: None }
}

const AGAINST_HTTP1: [Shape; 3] =
    [shape("HTTP/2 10×10", SHARED), shape("HTTP/2 100×1", SINGLE), shape("HTTP/1.1 c=100", HTTP1)];

const AGAINST_HTTP2: [Table<'_>; 4] = [
    Table {
        title: "1 KiB file 10×10",
        path: KIBIBYTE,
        shapes: &[shape("HTTP/3", QUIC_SHARED), shape("HTTP/2", SHARED)],
        limit: HTTP3_LIMIT,
    },
    Table {
        title: "1 KiB file 10×10 at 2000/s",
        path: KIBIBYTE,
        shapes: &[
            Shape { name: "HTTP/3", over: QUIC_SHARED, rate: Some(2_000.0) },
            Shape { name: "HTTP/2", over: SHARED, rate: Some(2_000.0) },
        ],
        limit: HTTP3_LIMIT,
    },
    Table {
        title: "1 KiB file 100×1",
        path: KIBIBYTE,
        shapes: &[shape("HTTP/3", QUIC_SINGLE), shape("HTTP/2", SINGLE)],
        limit: HTTP3_LIMIT,
    },
    Table {
        title: "1 MB file 10×1",
        path: MEGABYTE,
        shapes: &[shape("HTTP/3", QUIC_LARGE), shape("HTTP/2", LARGE)],
        limit: HTTP3_LIMIT,
    },
];

pub(super) fn run(lab: &mut Lab, report: &mut Report, site: &Site) -> Result<()> {
    let files = Setup::classic(lab, &site.root).named("files");
    compare(lab, report, files, &AGAINST_HTTP2, |lab, setup| Outboard::launch(lab, &setup))?;
    let fixture = Fixture::unpack(lab, "worker", &[])?;
    let worker = Setup::worker(&fixture, "hello.php", WORKERS, 1).named("worker");
    let hello =
        Table { title: "worker hello", path: "/", shapes: &AGAINST_HTTP1, limit: HTTP2_LIMIT };
    compare(lab, report, worker, &[hello], |lab, setup| Outboard::launch(lab, &setup))?;
    let cached = Setup::classic(lab, &site.root).named("cached");
    let hit =
        Table { title: "page cache hit", path: HELLO, shapes: &AGAINST_HTTP1, limit: HTTP2_LIMIT };
    compare(lab, report, cached, &[hit], |lab, setup| launch_caching(lab, setup, HELLO))
}

/// Fills tables of one setup.
fn compare(
    lab: &mut Lab,
    report: &mut Report,
    setup: Setup,
    tables: &[Table<'_>],
    launch: impl FnOnce(&mut Lab, Setup) -> Result<Option<Outboard>>,
) -> Result<()> {
    let tls = TlsListener::new(lab)?.with_http3();
    let outboard = launch(lab, Setup { tls: Some(tls.clone()), ..setup })?;
    for Table { title, path, shapes, limit } in tables {
        let [subjects @ .., reference] = *shapes else { continue };
        let target = |subject: &Shape| {
            format!("{title}, {}: CPU per request ≤ {limit} × {}", subject.name, reference.name)
        };
        let Some(outboard) = &outboard else {
            let missing = subjects.iter().map(|one| Verdict::not_measured(&target(one), NOT_BUILT));
            report.verdicts.extend(missing);
            continue;
        };
        let stack = &outboard.stack;
        let request = RequestSpec::get(path).expecting(check_same_responses(&[stack], path)?);
        lab.progress(title);
        let seconds = lab.effort.slice_seconds;
        let load =
            |shape: Shape| load_by_tls(stack, &tls, &request, shape.over, shape.rate, seconds);
        let rounds = in_turns(lab, stack, shapes, load)?;
        report.add_rounds(&format!("{title} over TLS"), &rounds);
        let series = |shape: &Shape| rounds.of(shape.name).expect("it took its turns");
        for subject in subjects {
            let ratio = paired_ratio(&series(subject).cpu_us(), &series(reference).cpu_us());
            report.verdicts.push(Verdict::ratio(&target(subject), *limit, ratio));
        }
    }
    Ok(())
}

/// Loads of one stack in interleaved rounds, after an uncounted one.
fn in_turns(
    lab: &Lab,
    stack: &Stack,
    shapes: &[Shape],
    load: impl Fn(Shape) -> Result<Load>,
) -> Result<Rounds> {
    shapes.iter().try_for_each(|shape| load(*shape).map(drop))?;
    let names: Vec<&str> = shapes.iter().map(|shape| shape.name).collect();
    let turns = Turns { slices: lab.effort.slices, shared: None };
    turns.among(lab, &names, |index| measure(lab, stack, None, |_| load(shapes[index])))
}
