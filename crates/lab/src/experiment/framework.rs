//! 23 bytes with validators, as a framework's demonstration page answers them: by a script per
//! request under php-fpm, by a resident script, and by a framework in it.
//!
//! The framework is to come; the two others are measured already.

use crate::ask::Ask;
use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator;
use crate::lab::Lab;
use crate::nginx;
use crate::outboard::{Outboard, Setup};
use crate::report::{Report, State};
use crate::slice::interleave;
use crate::stack::{Stack, check_same_answers};

const CONNECTIONS: usize = 100;

const PATH: &str = "/index.php";

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let fixture = Fixture::unpack(lab, "framework", &[])?;
    let workers = lab.php_processes();
    let setup = Setup::worker(&fixture, "worker.php", workers, 1).named("outboard, worker");
    let setup = Setup { root: fixture.writable("empty")?, ..setup };
    let outboard = Outboard::launch(lab, &setup)?;
    let fpm = nginx::with_fpm(lab, &fixture.public())?;
    let stacks: Vec<&Stack> = outboard.iter().map(|o| &o.stack).chain([&fpm]).collect();
    let ask = Ask::get(PATH).expecting(check_same_answers(&stacks, PATH)?);
    let seconds = lab.effort.short_slice_seconds();
    let load = |stack: &Stack| generator::load(stack.address, &ask, CONNECTIONS, seconds);
    report.add_rounds("framework c=100", &interleave(lab, &stacks, load)?);
    let what = "the framework (controllers, views) does not exist yet; its peers were measured";
    report.conclude(State::SubjectMissing { what: what.into() });
    Ok(())
}
