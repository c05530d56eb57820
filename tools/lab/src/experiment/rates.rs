//! hello.php at rates from low to beyond any stack's capacity: the rate from which latency rises.
//!
//! An open loop: latency counts from when a request was due. The report draws latency against rate,
//! with a line per stack.

use crate::error::Result;
use crate::generator;
use crate::lab::Lab;
use crate::outboard::Outboard;
use crate::report::Report;
use crate::request_spec::RequestSpec;
use crate::site::{HELLO, Site};
use crate::slice::Turns;
use crate::stack::{Stack, check_same_responses};
use crate::{apache, nginx};

const CONNECTIONS: usize = 64;

/// Requests a second.
const RATES: [u32; 6] = [500, 1_000, 2_000, 4_000, 8_000, 16_000];

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let site = Site::write(lab)?;
    let outboard = Outboard::start(lab, &site.root)?;
    let peers = [
        nginx::with_fpm(lab, &site.root)?,
        apache::with_mod_php(lab, &site.root, apache::PROCESSES)?,
    ];
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain(&peers).collect();
    let request = RequestSpec::get(HELLO).expecting(check_same_responses(&stacks, HELLO)?);
    let seconds = lab.effort.short_slice_seconds();
    let turns = Turns { slices: if lab.effort.is_quick() { 2 } else { 5 }, shared: None };
    for rate in RATES {
        let title = format!("hello at {rate}/s c={CONNECTIONS}");
        lab.progress(&title);
        let rounds = turns.take(lab, &stacks, |stack| {
            generator::load_at(stack, &request, CONNECTIONS, seconds, f64::from(rate))
        })?;
        report.add_rows(&title, &rounds);
    }
    Ok(())
}
