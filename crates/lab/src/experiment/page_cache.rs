//! A page made anew for every visitor, and one that is kept: without opcache, with it, from
//! nginx's cache and from Varnish.
//!
//! Two pages: the work of phpinfo() in a single file, and the home page of a WordPress, which
//! compiles hundreds. All caches are warm before anything is counted. The gateway's own page cache
//! is to come; until then outboard is measured without one.

use crate::ask::Ask;
use crate::client;
use crate::error::Result;
use crate::lab::{Lab, write};
use crate::mariadb::MariaDb;
use crate::outboard::Outboard;
use crate::report::{Report, State};
use crate::site::date_back;
use crate::slice::Turns;
use crate::stack::{Stack, check_same_answers};
use crate::wordpress::{HOME, WordPress};
use crate::{nginx, varnish};

const CONNECTIONS: usize = 10;

/// Does all the work of phpinfo() and answers as many bytes, but the same on every server.
const PHPINFO: &str = "<?php
ob_start();
phpinfo();
ob_end_clean();
echo str_repeat(\"0123456789abcdef\\n\", 3300);
";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let database = MariaDb::start(lab)?;
    lab.progress("installing WordPress");
    let site = WordPress::prepare(lab, &database)?;
    let script = site.root.join("phpinfo.php");
    write(&script, PHPINFO)?;
    date_back(&script)?;
    let fpm = nginx::with_fpm(lab, &site.root)?;
    site.install(fpm.address)?;
    let outboard = Outboard::start(lab, &site.root)?;
    let mut peers = vec![fpm, nginx::with_fpm_uncached(lab, &site.root)?];
    peers.push(nginx::with_fastcgi_cache(lab, &site.root)?);
    match varnish::with_fpm(lab, &site.root) {
        Ok(varnish) => peers.push(varnish),
        Err(error) => report.notes.push(format!("page-cache without Varnish: {error}")),
    }
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain(&peers).collect();
    let seconds = lab.effort.short_slice_seconds();
    let turns = Turns { slices: lab.effort.slices, beside: Some(&database.group) };
    for (title, path) in [("phpinfo c=10", "/phpinfo.php"), ("blog home c=10", HOME)] {
        let ask = Ask::get(path).expecting(check_same_answers(&stacks, path)?);
        let load = |stack: &Stack| client::load(stack.address, &ask, CONNECTIONS, seconds);
        report.add_rounds(title, &turns.take(lab, &stacks, load)?);
    }
    let what = "the gateway's page cache does not exist yet; its peers were measured";
    report.conclude(State::SubjectMissing { what: what.into() });
    Ok(())
}
