//! Reloads under load: a new generation of workers takes over without a failed request.

use std::thread;
use std::time::{Duration, Instant};

use crate::background::{Background, load_while};
use crate::error::{Error, Result};
use crate::generator::Task;
use crate::lab::Lab;
use crate::outboard::{NOT_BUILT, Outboard};
use crate::report::Report;
use crate::site::{HELLO, Site};
use crate::statistics::median;
use crate::verdict::Verdict;

const RELOADS: u64 = 20;
const CONNECTIONS: usize = 32;

/// Requests between two reloads.
const BETWEEN: u64 = 2_000;

/// The timeout for a new worker.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let reloads = RELOADS / lab.effort.shortening;
    let target = format!("{reloads} reloads under load: 0 failed requests");
    let site = Site::write(lab)?;
    let Some(outboard) = Outboard::start(lab, &site.root)? else {
        report.verdicts.push(Verdict::not_measured(&target, NOT_BUILT));
        return Ok(());
    };
    let address = outboard.stack.address;
    let task = Task::get(address, HELLO, CONNECTIONS);
    let (account, (times_ms, left_over)) = load_while(&task, |background| {
        let one = |number| reload(lab, &outboard, number, background);
        let times_ms = (0..reloads).map(one).collect::<Result<Vec<f64>>>()?;
        background.await_requests(BETWEEN);
        Ok((times_ms, outboard.workers().len().saturating_sub(lab.php_processes())))
    })?;
    let good = account.statuses.get(&200).copied().unwrap_or(0);
    let failures = account.load.failures;
    let all_good = failures.total() == 0 && account.statuses.len() == 1;
    let measured = format!(
        "{good} responses with status 200, {failures} failed; a reload takes {:.0} ms at the median; old workers \
         still there at the end: {left_over}",
        median(&times_ms)
    );
    report.verdicts.push(Verdict::exact(&target, all_good && good > 0, measured));
    Ok(())
}

/// Reloads under load; returns the time until the first new worker in ms.
fn reload(lab: &Lab, outboard: &Outboard, number: u64, background: &Background) -> Result<f64> {
    background.await_requests(BETWEEN);
    let old = outboard.workers();
    let began = Instant::now();
    outboard.reload()?;
    while outboard.workers().iter().all(|pid| old.contains(pid)) {
        if began.elapsed() > PATIENCE {
            let what = format!("no new worker {PATIENCE:?} after a reload; the old: {old:?}");
            return Err(Error::Unexpected { who: "outboard".into(), what });
        }
        thread::sleep(Duration::from_millis(1));
    }
    let ms = began.elapsed().as_secs_f64() * 1e3;
    lab.progress(&format!("reload {:>2}: {ms:.0} ms", number + 1));
    Ok(ms)
}
