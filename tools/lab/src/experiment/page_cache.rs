//! A page rendered for every visitor, and a cached one: without opcache, with it, from nginx's
//! cache, from Varnish and from Outboard's page cache.
//!
//! Three pages: the work of phpinfo() in a single file, 1 KiB, and the home page of a WordPress, which
//! compiles hundreds of files. All caches are warm before anything is counted. Outboard is measured
//! with and without its page cache. Finally the guarantees of a cache are checked.

mod promises;

use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::mariadb::MariaDb;
use crate::outboard::{Outboard, Setup};
use crate::report::{Report, State};
use crate::request_spec::RequestSpec;
use crate::site::date_back;
use crate::slice::{Rounds, Turns};
use crate::stack::{Stack, check_same_responses};
use crate::statistics::paired_ratio;
use crate::system::write;
use crate::verdict::Verdict;
use crate::wordpress::{HOME, WordPress};
use crate::{http, nginx, varnish};

const CONNECTIONS: usize = 10;
const CACHED: &str = "outboard, page cache";

/// The fewest pairs that can distinguish a stack from each of five others.
const PAIRS: usize = 8;

/// A page's title and path, and the CPU of a hit relative to nginx's.
const PAGES: [(&str, &str, f64); 3] = [
    ("phpinfo c=10", "/phpinfo.php", 0.6),
    ("1 KiB c=10", "/kibibyte.php", 0.5),
    ("blog home c=10", HOME, 0.6),
];

/// Does the work of phpinfo() and returns as many bytes, but the same on every server.
const PHPINFO: &str = "<?php
ob_start();
phpinfo();
ob_end_clean();
echo str_repeat(\"0123456789abcdef\\n\", 3300);
";

const KIBIBYTE: &str = "<?php echo str_repeat('0123456789abcdef', 64);";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let database = MariaDb::of_run(lab)?;
    let site = WordPress::of_run(lab, &database)?;
    for (name, content) in [("phpinfo.php", PHPINFO), ("kibibyte.php", KIBIBYTE)] {
        let script = site.root.join(name);
        write(&script, content)?;
        date_back(&script)?;
    }
    let fpm = nginx::with_fpm(lab, &site.root)?;
    let setup = Setup::classic(lab, &site.root).named(CACHED);
    let cached = launch_caching(lab, setup, PAGES[0].1)?;
    let outboard = Outboard::start(lab, &site.root)?;
    let mut peers = vec![fpm, nginx::with_fpm_uncached(lab, &site.root)?];
    peers.push(nginx::with_fastcgi_cache(lab, &site.root)?);
    match varnish::with_fpm(lab, &site.root) {
        Ok(varnish) => peers.push(varnish),
        Err(error) => report.notes.push(format!("page-cache without Varnish: {error}")),
    }
    let subjects = [&cached, &outboard].into_iter().flatten();
    let stacks: Vec<&Stack> = subjects.map(|o| &o.stack).chain(&peers).collect();
    let seconds = lab.effort.short_slice_seconds();
    let turns = Turns { slices: lab.effort.slices.max(PAIRS), shared: Some(&database.group) };
    for (title, path, limit) in PAGES {
        let request = RequestSpec::get(path).expecting(check_same_responses(&stacks, path)?);
        let load = |stack: &Stack| generator::load(stack, &request, CONNECTIONS, seconds);
        let rounds = turns.take(lab, &stacks, load)?;
        report.add_rounds(title, &rounds);
        report.verdicts.extend(judge(title, path, limit, &rounds));
    }
    if cached.is_none() {
        let what = "the gateway has no page cache; its peers were measured".into();
        report.conclude(State::SubjectMissing { what });
    }
    promises::run(lab, report)
}

/// A hit against nginx's, and for the blog against rendering the page.
fn judge(title: &str, path: &str, limit: f64, rounds: &Rounds) -> Vec<Verdict> {
    let Some(hit) = rounds.of(CACHED) else { return Vec::new() };
    let mut verdicts = Vec::new();
    if let Some(nginx) = rounds.of(nginx::CACHING) {
        let target = format!("{title}: CPU of a hit ≤ {limit} × nginx fastcgi_cache's");
        verdicts.push(Verdict::ratio(&target, limit, paired_ratio(&hit.cpu_us(), &nginx.cpu_us())));
    }
    if let Some(fpm) = rounds.of(nginx::FPM).filter(|_| path == HOME) {
        let target = format!("{title}: hits per second ≥ 500 × pages of nginx+php-fpm");
        let ratio = paired_ratio(&hit.rates(), &fpm.rates());
        verdicts.push(Verdict::ratio_at_least(&target, 500.0, ratio));
    }
    verdicts
}

/// Outboard with its page cache, if a response for the path says that it was cached.
pub(super) fn launch_caching(lab: &mut Lab, setup: Setup, path: &str) -> Result<Option<Outboard>> {
    let setup = setup.with("page_cache = \"on\"\n");
    let Ok(Some(outboard)) = Outboard::launch(lab, &setup) else { return Ok(None) };
    let request = RequestSpec::get(path);
    http::send(outboard.stack.address, &request)?;
    let (_, head) = http::send_with_head(outboard.stack.address, &request)?;
    Ok((http::field(&head, "x-cache") == Some("HIT")).then_some(outboard))
}
