//! A worker: one PHP process that handles the requests of its ring.
//!
//! Called by `boot` in a forked child. Invariants: nothing slow happens between the fork and
//! `Ready`; the process exits between requests, unless its state is damaged.

use crate::engine;
use crate::engine::request::Scratch;
use crate::exchange::Exchange;
use crate::exit::{self, ExitReason};
use crate::kept_memory::wipe;
use crate::link::Link;
use crate::worker_fds::WorkerFds;
use crate::{backtrace, worker_script};
use outboard_ring::control::WorkerScript;
use outboard_ring::frame::Tag;
use outboard_ring::request::RequestView;
use outboard_ring::response::{Done, Outcome};
use outboard_ring::spsc::Corrupt;
use std::cell::RefCell;
use std::rc::Rc;

/// Handles requests until the gateway stops it.
pub(crate) fn run(app: &str, number: u64, fds: WorkerFds, script: Option<&WorkerScript>) -> ! {
    let link = fds.connect(app, number);
    if script.is_none_or(|script| script.concurrency <= 1) {
        link.borrow_mut().batch_responses();
    }
    let served = match script {
        None => serve(link),
        Some(script) => worker_script::serve(script, link),
    };
    exit::end(number, served)
}

fn serve(link: Rc<RefCell<Link>>) -> Result<ExitReason, Corrupt> {
    let mut frame = Vec::new();
    let mut scratch = Scratch::default();
    let mut exchange = Exchange::new(link.clone());
    link.borrow_mut().ready()?;
    while let Some(tag) = next(&link, &mut frame)? {
        let done = handle(&mut exchange, tag, &frame, &mut scratch)?;
        wipe(&mut frame);
        exchange.done(done)?;
        if done.leaving {
            return Ok(ExitReason::Tainted);
        }
    }
    Ok(ExitReason::Stopped)
}

/// Waits for a request; `None` after the order to stop.
fn next(link: &RefCell<Link>, frame: &mut Vec<u8>) -> Result<Option<Tag>, Corrupt> {
    let mut link = link.borrow_mut();
    loop {
        if let Some(tag) = link.next_request(frame)? {
            return Ok(Some(tag));
        }
        if link.is_stopped() {
            return Ok(None);
        }
        if link.prepare_sleep()? {
            link.bell().wait();
        }
    }
}

fn handle(
    exchange: &mut Exchange,
    tag: Tag,
    frame: &[u8],
    scratch: &mut Scratch,
) -> Result<Done, Corrupt> {
    let view = RequestView::decode(frame)?;
    exchange.begin(tag, view.fixed.content_length.unwrap_or(0));
    backtrace::set_request(tag);
    // SAFETY: only the callbacks use `exchange` until `run` returns.
    let result = unsafe { engine::request::run(&view, tag, (&raw mut *exchange).cast(), scratch) };
    let panicked = exchange.take_panicked();
    Ok(Done {
        outcome: if panicked { Outcome::Failed } else { result.outcome },
        leaving: result.leaving || panicked,
        takes_snapshot: result.takes_snapshot,
        handled: result.handled && !panicked,
        peak_memory_bytes: result.peak_memory_bytes,
    })
}
