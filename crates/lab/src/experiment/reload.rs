//! Reloads under load: a new generation of workers takes over and no request is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{self, Plan};
use crate::error::{Error, Result};
use crate::experiment::NOT_BUILT;
use crate::lab::Lab;
use crate::outboard::Outboard;
use crate::report::Report;
use crate::site::{HELLO, Site};
use crate::statistics::median;
use crate::verdict::Verdict;

const RELOADS: u64 = 20;
const CONNECTIONS: usize = 32;

/// Requests between two reloads.
const BETWEEN: u64 = 2_000;

/// How long the old workers may take to be gone.
const REPLACEMENT: Duration = Duration::from_secs(30);

pub(super) fn run(lab: &mut Lab, report: &mut Report) -> Result<()> {
    let reloads = RELOADS / lab.effort.shortening;
    let bar = format!("{reloads} reloads under load: 0 failed requests");
    let site = Site::write(lab)?;
    let Some(outboard) = Outboard::start(lab, &site.root)? else {
        report.verdicts.push(Verdict::not_measured(&bar, NOT_BUILT));
        return Ok(());
    };
    let address = outboard.stack.address;
    let plan = Plan { address, path: HELLO, numbered: false, connections: CONNECTIONS };
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let go_on = |number| {
        sent.store(number, Ordering::Relaxed);
        !stop.load(Ordering::Relaxed)
    };
    let (account, times_ms) = thread::scope(|scope| {
        let load = scope.spawn(|| client::run(&plan, go_on));
        let times_ms: Result<Vec<f64>> = (0..reloads)
            .map(|number| {
                await_requests(&sent);
                reload(lab, &outboard, number)
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        (load.join().expect("the client does not panic"), times_ms)
    });
    let (account, times_ms) = (account?, times_ms?);
    let good = account.statuses.get(&200).copied().unwrap_or(0);
    let all_good = account.failures.total() == 0 && account.unusual.is_empty();
    let measured = format!(
        "{good} answers with status 200, {}; a reload takes {:.0} ms at the median",
        account.failures,
        median(&times_ms)
    );
    report.verdicts.push(Verdict::exact(&bar, all_good && good > 0, measured));
    Ok(())
}

/// Lets the load go on between two reloads. Bounded: a server that answers nothing is found out
/// by the account.
fn await_requests(sent: &AtomicU64) {
    let (goal, began) = (sent.load(Ordering::Relaxed) + BETWEEN, Instant::now());
    while sent.load(Ordering::Relaxed) < goal && began.elapsed() < REPLACEMENT {
        thread::sleep(Duration::from_millis(1));
    }
}

/// One reload, until every worker is a new one; how long that took in ms.
fn reload(lab: &Lab, outboard: &Outboard, number: u64) -> Result<f64> {
    let old = outboard.workers();
    let began = Instant::now();
    outboard.reload()?;
    loop {
        let now = outboard.workers();
        if !now.is_empty() && now.iter().all(|pid| !old.contains(pid)) {
            break;
        }
        if began.elapsed() > REPLACEMENT {
            let what = format!("old workers still there after {REPLACEMENT:?}: {old:?} → {now:?}");
            return Err(Error::Unexpected { who: "outboard reload".into(), what });
        }
        thread::sleep(Duration::from_millis(10));
    }
    let ms = began.elapsed().as_secs_f64() * 1e3;
    lab.progress(&format!("reload {:>2}: {ms:.0} ms", number + 1));
    Ok(ms)
}
