//! What others measured and published, years ago and on other machines: the systems whose ideas
//! this one unites. Shown beside today's numbers, never compared with them.

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;

/// One publication.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Published {
    /// Whose, and when.
    pub source: String,
    /// On what, and how.
    pub conditions: String,
    /// Its numbers.
    pub figures: Vec<Figure>,
}

/// One line of a publication.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub case: String,
    /// The stack, as its author named it.
    pub stack: String,
    /// Answers per second; `None` where there was no number.
    pub rate: Option<f64>,
    /// The 99th percentile in ms, where it was told.
    pub p99_ms: Option<f64>,
    /// What the author said besides.
    pub remark: String,
    /// The experiment and the stack that are today's counterpart, when there is one.
    pub today: Option<(String, String)>,
}

type Line =
    (&'static str, &'static str, f64, f64, &'static str, Option<(&'static str, &'static str)>);

impl Published {
    /// What was published about the subject of an experiment.
    pub fn of(experiment: Experiment) -> Option<Self> {
        let (source, conditions, lines): (&str, &str, &[Line]) = match experiment {
            Experiment::Offload => (OFFLOAD.0, OFFLOAD.1, OFFLOAD_LINES),
            Experiment::PageCache => (PAGE_CACHE.0, PAGE_CACHE.1, PAGE_CACHE_LINES),
            Experiment::Entity => (ENTITY.0, ENTITY.1, ENTITY_LINES),
            Experiment::Framework => (FRAMEWORK.0, FRAMEWORK.1, FRAMEWORK_LINES),
            Experiment::Workers => return Some(workers()),
            _ => return None,
        };
        let figures = lines.iter().map(figure).collect();
        Some(Self { source: source.into(), conditions: conditions.into(), figures })
    }
}

fn figure(&(case, stack, rate, p99_ms, remark, today): &Line) -> Figure {
    let told = |number: f64| (number > 0.0).then_some(number);
    Figure {
        case: case.into(),
        stack: stack.into(),
        rate: told(rate),
        p99_ms: told(p99_ms),
        remark: remark.into(),
        today: today.map(|(experiment, stack)| (experiment.into(), stack.into())),
    }
}

const OFFLOAD: (&str, &str) = (
    "hugozhu/async_php, April 2012",
    "OpenResty with one worker, php-fpm; ab -n 1000 -c 100; a backend that sleeps",
);

const OFFLOAD_LINES: &[Line] = &[
    ("1 ms", "curl in PHP", 800.0, 0.0, "", Some(("offload, 1 ms, c=100", "nginx+php-fpm"))),
    ("1 ms", "fetch in Lua", 900.0, 0.0, "", Some(("offload, 1 ms, c=100", "nginx+lua+php-fpm"))),
    (
        "10 ms",
        "curl in PHP",
        313.28,
        422.0,
        "p50 290 ms, max 450 ms",
        Some(("offload, 10 ms, c=100", "nginx+php-fpm")),
    ),
    (
        "10 ms",
        "fetch in Lua",
        506.41,
        219.0,
        "p50 194 ms, max 241 ms",
        Some(("offload, 10 ms, c=100", "nginx+lua+php-fpm")),
    ),
    ("30 ms", "curl in PHP", 150.0, 0.0, "", Some(("offload, 30 ms, c=100", "nginx+php-fpm"))),
    ("30 ms", "fetch in Lua", 300.0, 0.0, "", Some(("offload, 30 ms, c=100", "nginx+lua+php-fpm"))),
];

const PAGE_CACHE: (&str, &str) = (
    "xinlogs.com, “php eaccelerator vs fastcgi_cache”, January 2012",
    "one core of an i7-2600, 256 MB, PHP 5.3.8, Tengine 1.2.1, emlog 4.1; ab -n 3000 -c 10",
);

const PAGE_CACHE_LINES: &[Line] = &[
    ("phpinfo", "PHP", 396.97, 36.0, "max 2,432 ms", Some(("phpinfo c=10", "php-fpm, no opcache"))),
    ("phpinfo", "eAccelerator", 420.87, 39.0, "", Some(("phpinfo c=10", "nginx+php-fpm"))),
    (
        "phpinfo",
        "fastcgi_cache",
        4566.43,
        4.0,
        "hits",
        Some(("phpinfo c=10", "nginx fastcgi_cache")),
    ),
    (
        "blog home page",
        "PHP",
        56.83,
        348.0,
        "max 18,091 ms",
        Some(("blog home c=10", "php-fpm, no opcache")),
    ),
    (
        "blog home page",
        "eAccelerator",
        129.43,
        129.0,
        "max 13,655 ms",
        Some(("blog home c=10", "nginx+php-fpm")),
    ),
    (
        "blog home page",
        "fastcgi_cache",
        5189.68,
        3.0,
        "hits",
        Some(("blog home c=10", "nginx fastcgi_cache")),
    ),
];

const ENTITY: (&str, &str) = (
    "highload-dht, a report of stage 2, 2022",
    "64 connections, a fixed rate of 15,000 PUT per second; wrk2",
);

const ENTITY_LINES: &[Line] = &[
    (
        "PUT",
        "queue 32, refuse the newest",
        15_000.0,
        17.4,
        "p99.9 50.4 ms; 465 answers other than 2xx",
        None,
    ),
    (
        "PUT",
        "queue 32, drop the oldest",
        15_000.0,
        16.2,
        "p99.9 29.7 ms; 482 answers other than 2xx",
        None,
    ),
    (
        "PUT",
        "asynchronous, tuned",
        13_043.0,
        0.0,
        "three times the synchronous server",
        Some(("PUT 15,000/s c=64", "outboard")),
    ),
];

const FRAMEWORK: (&str, &str) = (
    "Tencent spf 2.1.3, September 2016",
    "Xeon X3440, 8 threads, 8 GB; ab -k -c 100 -n 5000000, 23 bytes of body",
);

const FRAMEWORK_LINES: &[Line] = &[
    (
        "23 bytes",
        "nginx + php-fpm 7.0.8",
        16_963.24,
        6.0,
        "c=50, and no connection was kept",
        Some(("framework c=100", "nginx+php-fpm")),
    ),
    ("23 bytes", "Swoole", 112_218.85, 2.0, "", None),
    ("23 bytes", "spf", 115_398.47, 2.0, "", Some(("framework c=100", "outboard, worker"))),
    ("23 bytes", "spf, MVC", 93_453.19, 3.0, "", Some(("framework c=100", "outboard, MVC"))),
];

const WORKERS: (&str, &str) = (
    "kenashkov/swoole-performance-tests, October 2019",
    "Swoole 4.4.10 and PHP 7.3 with 24 workers, Apache 2.4 prefork; X5690, 6 cores; \
     ab -k -n 10000, the better of two runs; MySQL on another host",
);

/// Swoole's and mod_php's rate at 100 connections, and how mod_php fared at 1,000.
const WORKERS_LINES: [(&str, f64, f64, &str); 11] = [
    ("1 two bytes", 66308.0, 25705.0, "182 failed at c=1000"),
    ("2 autoloader", 52451.0, 11559.0, "161 failed at c=1000"),
    ("3 100 classes", 53625.0, 2073.0, "238 failed at c=1000"),
    ("4 query, new connection", 1804.0, 1314.0, ""),
    ("5 query, kept connection", 4163.0, 2327.0, "gave up at c=1000"),
    ("6 query, cached", 53499.0, 25141.0, "107 failed at c=1000"),
    ("7 classes + 10,000 cache reads", 15195.0, 228.0, "gave up at c=1000"),
    ("8 … + 10 files", 845.0, 220.0, "gave up at c=1000"),
    ("9 … + 20 × SLEEP(0.01)", 285.0, 141.0, "gave up at c=1000"),
    ("10 50 classes, 3 × SLEEP(0.01)", 1919.0, 1194.0, ""),
    ("11 classes, cache, 2 queries", 2288.0, 1250.0, "gave up at c=1000"),
];

fn workers() -> Published {
    let lines = WORKERS_LINES.iter().flat_map(|&(case, swoole, mod_php, remark)| {
        let today = format!("{case} c=100");
        [("Swoole", swoole, "", "outboard"), ("mod_php", mod_php, remark, "apache+mod_php")].map(
            |(stack, rate, remark, counterpart)| Figure {
                case: case.into(),
                stack: stack.into(),
                rate: Some(rate),
                p99_ms: None,
                remark: remark.into(),
                today: Some((today.clone(), counterpart.into())),
            },
        )
    });
    Published { source: WORKERS.0.into(), conditions: WORKERS.1.into(), figures: lines.collect() }
}
