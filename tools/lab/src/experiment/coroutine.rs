//! The cost of a waiting coroutine: memory of a worker with 1,000 of them, and without.

use std::thread;
use std::time::Duration;

use crate::background::load_while;
use crate::error::Result;
use crate::fixture::Fixture;
use crate::generator::{self, Task};
use crate::lab::Lab;
use crate::outboard::{NOT_BUILT, Outboard, Setup};
use crate::report::Report;
use crate::verdict::Verdict;
use outboard_profile::process_table::pss_bytes;

const COROUTINES: usize = 1_000;

const LIMIT_KB: f64 = 20.0;

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let target = format!("memory of a waiting coroutine ≤ {LIMIT_KB} kB");
    let fixture = Fixture::unpack(lab, "coroutine", &[])?;
    let setup = Setup::worker(&fixture, "worker.php", 1, COROUTINES);
    let Some(outboard) = Outboard::launch(lab, &setup)? else {
        report.verdicts.push(Verdict::not_measured(&target, NOT_BUILT));
        return Ok(());
    };
    let address = outboard.stack.address;
    generator::run_count(&Task::get(address, "/wait?seconds=0", 10), 1_000)?;
    let memory = || {
        let worker: u64 = outboard.workers().into_iter().map(pss_bytes).sum();
        (worker, outboard.stack.group.pss_bytes().saturating_sub(worker))
    };
    outboard.stack.settle();
    let (worker_before, gateway_before) = memory();
    let task = Task::get(address, "/wait?seconds=4", COROUTINES);
    let (account, (worker, gateway)) = load_while(&task, |background| {
        background.await_requests(COROUTINES as u64);
        // All have been sent; within a second they have reached their sleep().
        thread::sleep(Duration::from_secs(1));
        Ok(memory())
    })?;
    let each_kb =
        |now: u64, before: u64| now.saturating_sub(before) as f64 / 1e3 / COROUTINES as f64;
    let (in_worker, in_gateway) =
        (each_kb(worker, worker_before), each_kb(gateway, gateway_before));
    let failures = account.load.failures;
    let measured = format!(
        "{in_worker:.1} kB in the worker, {in_gateway:.1} kB in the gateway; {failures} failed"
    );
    let holds = in_worker <= LIMIT_KB && failures.total() == 0;
    report.verdicts.push(Verdict::exact(&target, holds, measured));
    Ok(())
}
