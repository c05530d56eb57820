//! A page made anew for every visitor, and one that is kept: without opcache, with it, from
//! nginx's cache and from Varnish.
//!
//! Two pages: the work of phpinfo() in a single file, and the home page of a WordPress, which
//! compiles hundreds. All caches are warm before anything is counted. Outboard is measured with its
//! page cache if an answer comes from there, and without. Then what a cache must do beside.

mod promises;

use std::path::Path;

use crate::ask::Ask;
use crate::error::Result;
use crate::generator;
use crate::lab::{Lab, write};
use crate::mariadb::MariaDb;
use crate::outboard::{Outboard, Setup};
use crate::report::{Report, State};
use crate::site::date_back;
use crate::slice::{Rounds, Turns};
use crate::stack::{Stack, check_same_answers};
use crate::statistics::paired_ratio;
use crate::verdict::Verdict;
use crate::wordpress::{HOME, WordPress};
use crate::{http, nginx, varnish};

const CONNECTIONS: usize = 10;
const KEPT: &str = "outboard, page cache";

/// The fewest pairs that can tell a stack from each of five others.
const PAIRS: usize = 8;

const PATHS: [(&str, &str); 2] = [("phpinfo c=10", "/phpinfo.php"), ("blog home c=10", HOME)];

/// Does all the work of phpinfo() and answers as many bytes, but the same on every server.
const PHPINFO: &str = "<?php
ob_start();
phpinfo();
ob_end_clean();
echo str_repeat(\"0123456789abcdef\\n\", 3300);
";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let database = MariaDb::of_run(lab)?;
    let site = WordPress::of_run(lab, &database)?;
    let script = site.root.join("phpinfo.php");
    write(&script, PHPINFO)?;
    date_back(&script)?;
    let fpm = nginx::with_fpm(lab, &site.root)?;
    let cached = with_page_cache(lab, &site.root)?;
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
    let turns = Turns { slices: lab.effort.slices.max(PAIRS), beside: Some(&database.group) };
    for (title, path) in PATHS {
        let ask = Ask::get(path).expecting(check_same_answers(&stacks, path)?);
        let load = |stack: &Stack| generator::load(stack, &ask, CONNECTIONS, seconds);
        let rounds = turns.take(lab, &stacks, load)?;
        report.add_rounds(title, &rounds);
        report.verdicts.extend(judge(title, path, &rounds));
    }
    if cached.is_none() {
        let what = "the gateway has no page cache; its peers were measured".into();
        report.conclude(State::SubjectMissing { what });
    }
    promises::run(lab, report)
}

/// A hit against nginx's, and for the blog against making the page.
fn judge(title: &str, path: &str, rounds: &Rounds) -> Vec<Verdict> {
    let Some(hit) = rounds.of(KEPT) else { return Vec::new() };
    let mut verdicts = Vec::new();
    if let Some(nginx) = rounds.of(nginx::CACHING) {
        let bar = format!("{title}: CPU of a hit ≤ 0.7 × nginx fastcgi_cache's");
        verdicts.push(Verdict::ratio(&bar, 0.7, paired_ratio(&hit.cpu_us(), &nginx.cpu_us())));
    }
    if let Some(fpm) = rounds.of(nginx::FPM).filter(|_| path == HOME) {
        let bar = format!("{title}: hits per second ≥ 500 × pages of nginx+php-fpm");
        let ratio = paired_ratio(&hit.rates(), &fpm.rates());
        verdicts.push(Verdict::ratio_at_least(&bar, 500.0, ratio));
    }
    verdicts
}

/// Outboard with its page cache, where it has one: an answer has to say that it was kept.
fn with_page_cache(lab: &mut Lab, root: &Path) -> Result<Option<Outboard>> {
    let setup = Setup::classic(lab, root).named(KEPT).with("page_cache = \"on\"\n");
    let Ok(Some(outboard)) = Outboard::launch(lab, &setup) else { return Ok(None) };
    let ask = Ask::get(PATHS[0].1);
    http::send(outboard.stack.address, &ask)?;
    let (_, head) = http::send_with_head(outboard.stack.address, &ask)?;
    Ok((http::field(&head, "x-cache") == Some("HIT")).then_some(outboard))
}
