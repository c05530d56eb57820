//! Exits of processes: how they are described, and what their last output says.
//!
//! Called by the manager once the zygote has reaped a worker, or has exited. It calls no other part.

use super::core::PoolCore;
use super::worker::Worker;
use super::worker_output::OutputReader;
use crate::exchange::Exchange;
use crate::output_lines;
use outboard_reactor::now_ms;
use std::ops::RangeInclusive;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;

/// Of signal(7) and exit(3).
const SIGNALS: RangeInclusive<i32> = 1..=64;
const CODES: RangeInclusive<i32> = 0..=255;

/// Logs the output of a worker that was not read before its exit was reported.
pub(super) fn log_last_output(core: &Rc<PoolCore>, number: u64) {
    let unread = core.with_worker(number, |worker| {
        worker.has_exited = true;
        worker.output.take().map(|output| (output, worker.allowance.clone()))
    });
    if let Some(Some((output, allowance))) = unread {
        let reader = OutputReader { core: core.clone(), number: Some(number), allowance };
        output_lines::log_remaining(&reader, &output);
    }
}

/// Counts and logs an unexpected exit.
pub(super) fn worker_crashed(core: &PoolCore, worker: &Worker, text: String, request: Option<u64>) {
    let was_ready = worker.process.lifecycle.ready_ms().is_some();
    let text = if was_ready { text } else { worker.startup_output.explain(&text) };
    core.counters.borrow_mut().crashes += 1;
    core.log.log_crash(worker, &text, request);
    let mut php = core.php.borrow_mut();
    if was_ready {
        php.record_crash(now_ms());
        return;
    }
    php.record_failed_start(now_ms());
    php.failure.get_or_insert(text);
}

/// A failure of a start with the last lines that its processes have printed.
pub(super) fn explain_start(core: &Rc<PoolCore>, failure: &str) -> String {
    let output = core.php.borrow_mut().take_output();
    if let Some(output) = output {
        output_lines::log_remaining(&OutputReader::of_zygote(core.clone()), &output);
    }
    let (members, php) = (core.members.borrow(), core.php.borrow());
    let starting = members.roster.own().filter(|worker| worker.start_us().is_none());
    let mut outputs = starting.map(|worker| &worker.startup_output).chain([php.startup_output()]);
    outputs
        .find(|output| !output.is_empty())
        .map_or_else(|| failure.to_owned(), |output| output.explain(failure))
}

/// Describes the requests of a worker that has exited.
pub(super) fn describe_activity(failed: &[Rc<Exchange>]) -> String {
    match failed {
        [] => "idle".to_owned(),
        [only] => format!("processing {}", only.label()),
        [first, others @ ..] => format!("processing {} and {} more", first.label(), others.len()),
    }
}

/// Describes the exit of a process. A zygote may report any numbers: those that no process can have are left out.
pub(crate) fn describe_exit(code: Option<i32>, signal: Option<i32>) -> String {
    let signal = signal.filter(|signal| SIGNALS.contains(signal));
    match (code.filter(|code| CODES.contains(code)), signal.map(ExitStatus::from_raw)) {
        // `signal: 11 (SIGSEGV)`
        (_, Some(signal)) => format!("was killed by {}", signal.to_string().replacen(':', "", 1)),
        (Some(code), None) => format!("exited with code {code}"),
        (None, None) => "exited".to_owned(),
    }
}
