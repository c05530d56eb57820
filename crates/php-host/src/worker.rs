//! A worker: one PHP process that handles the requests of its ring.
//!
//! Called by the zygote in the forked child. Invariants: nothing slow happens between the fork and
//! `Ready`; the process exits between requests, unless its state is damaged.

use crate::engine::{self, Scratch};
use crate::exchange::Exchange;
use crate::link::Link;
use crate::{backtrace, process, worker_script};
use outboard_ring::channel::WorkerChannel;
use outboard_ring::control::{BACKTRACE_SIGNAL, WorkerScript};
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::Tag;
use outboard_ring::request::RequestView;
use outboard_ring::response::{Done, Outcome};
use outboard_ring::spsc::Corrupt;
use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// The descriptors of a fork order.
#[derive(Debug)]
pub(crate) struct WorkerFds {
    pub(crate) memory: OwnedFd,
    pub(crate) bell: OwnedFd,
    pub(crate) gateway_bell: OwnedFd,
    pub(crate) output: OwnedFd,
}

/// Exit code after a violation of the ring's protocol.
pub(crate) const CODE_CORRUPT: i32 = 3;
/// Exit code if the ring could not be set up.
pub(crate) const CODE_SETUP: i32 = 4;

/// Ends the process at once: no destructors, no exit handlers of the zygote.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(code) }
}

/// Handles requests until the gateway stops it.
pub(crate) fn run(app: &str, number: u64, fds: WorkerFds, script: Option<&WorkerScript>) -> ! {
    let link = set_up_or_leave(app, number, fds);
    if script.is_none_or(|script| script.concurrency <= 1) {
        link.borrow_mut().batch_responses();
    }
    let served = match script {
        None => serve(link),
        Some(script) => worker_script::serve(script, link),
    };
    end(number, served)
}

/// Exits with the code for `served`.
pub(crate) fn end(number: u64, served: Result<ExitReason, Corrupt>) -> ! {
    match served {
        Ok(ExitReason::Stopped) => {
            engine::stop();
            leave(0)
        }
        Ok(ExitReason::ForkDone) => leave(0),
        Ok(ExitReason::Tainted) => leave(0),
        Ok(ExitReason::NeverReady) => {
            eprintln!("the worker script ended without a call for a request");
            leave(CODE_SETUP)
        }
        Err(error) => {
            eprintln!("outboard-php: worker {number} exits: {error}");
            leave(CODE_CORRUPT)
        }
    }
}

/// Creates the worker's link from the descriptors of the order.
pub(crate) fn set_up_or_leave(app: &str, number: u64, fds: WorkerFds) -> Rc<RefCell<Link>> {
    match set_up(app, number, fds) {
        Ok(link) => link,
        Err(error) => {
            eprintln!("outboard-php: worker {number} cannot start: {error}");
            leave(CODE_SETUP);
        }
    }
}

fn set_up(app: &str, number: u64, fds: WorkerFds) -> io::Result<Rc<RefCell<Link>>> {
    rustix::stdio::dup2_stdout(&fds.output)?;
    rustix::stdio::dup2_stderr(&fds.output)?;
    drop(fds.output);
    process::set_dumpable(true)?;
    process::set_title(&format!("outboard: {app} worker {number}"), &format!("{app}/{number}"));
    let channel = WorkerChannel::map(&fds.memory)?;
    drop(fds.memory);
    backtrace::set_sink(channel.backtrace_sink());
    engine::install_backtrace(BACKTRACE_SIGNAL);
    engine::start_time_limit()?;
    let bells = (Awaited::from_fd(fds.bell), Doorbell::from_fd(fds.gateway_bell));
    let link = Link::new(channel, bells.0, bells.1).map_err(io::Error::other)?;
    Ok(Rc::new(RefCell::new(link)))
}

/// Why the worker stops.
pub(crate) enum ExitReason {
    /// On the gateway's order.
    Stopped,
    /// A fork has handled its one request.
    ForkDone,
    /// The engine's state is damaged.
    Tainted,
    /// The worker script never called for a request.
    NeverReady,
}

fn serve(link: Rc<RefCell<Link>>) -> Result<ExitReason, Corrupt> {
    let mut frame = Vec::new();
    let mut scratch = Scratch::default();
    let mut exchange = Exchange::new(link.clone());
    link.borrow_mut().ready()?;
    while let Some(tag) = next(&link, &mut frame)? {
        let done = handle(&mut exchange, tag, &frame, &mut scratch)?;
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
    let result = unsafe { engine::run(&view, tag, (&raw mut *exchange).cast(), scratch) };
    let panicked = exchange.take_panicked();
    Ok(Done {
        outcome: if panicked { Outcome::Failed } else { result.outcome },
        leaving: result.leaving || panicked,
        peak_memory_bytes: result.peak_memory_bytes,
    })
}
