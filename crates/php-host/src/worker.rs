//! A worker: one PHP process that answers one request after another from its ring.
//!
//! Called by the zygote in the forked child. Invariants: nothing slow happens between the fork and
//! `Ready`; the process leaves between requests only, unless its state cannot be trusted.

use crate::engine::{self, Scratch};
use crate::exchange::{Exchange, Next};
use crate::{backtrace, process};
use outboard_ring::channel::WorkerChannel;
use outboard_ring::control::BACKTRACE_SIGNAL;
use outboard_ring::doorbell::Doorbell;
use outboard_ring::request::RequestView;
use outboard_ring::response::{Done, Outcome};
use outboard_ring::spsc::Corrupt;
use std::io;
use std::os::fd::OwnedFd;

/// What comes with the order to fork.
#[derive(Debug)]
pub(crate) struct WorkerFds {
    pub(crate) memory: OwnedFd,
    pub(crate) bell: OwnedFd,
    pub(crate) gateway_bell: OwnedFd,
    pub(crate) output: OwnedFd,
}

/// Exit code after the gateway broke the ring's protocol.
const CODE_CORRUPT: i32 = 3;
/// Exit code when the ring could not be set up.
const CODE_SETUP: i32 = 4;

/// Ends the process at once: no destructors, no exit handlers of the zygote.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(code) }
}

/// Serves until told to stop.
pub(crate) fn run(app: &str, number: u64, fds: WorkerFds) -> ! {
    let exchange = match set_up(app, number, fds) {
        Ok(exchange) => exchange,
        Err(error) => {
            eprintln!("outboard-php: worker {number} cannot start: {error}");
            leave(CODE_SETUP);
        }
    };
    match serve(exchange) {
        Ok(End::Asked) => {
            engine::stop();
            leave(0)
        }
        Ok(End::Untrusted) => leave(0),
        Err(error) => {
            eprintln!("outboard-php: worker {number} leaves: {error}");
            leave(CODE_CORRUPT)
        }
    }
}

fn set_up(app: &str, number: u64, fds: WorkerFds) -> io::Result<Exchange> {
    rustix::stdio::dup2_stdout(&fds.output)?;
    rustix::stdio::dup2_stderr(&fds.output)?;
    drop(fds.output);
    process::set_title(&format!("outboard: {app} worker {number}"), &format!("{app}/{number}"));
    let channel = WorkerChannel::map(&fds.memory)?;
    drop(fds.memory);
    backtrace::aim_at(channel.backtrace_sink());
    engine::install_backtrace(BACKTRACE_SIGNAL);
    engine::start_time_limit()?;
    let bells = (Doorbell::from_fd(fds.bell), Doorbell::from_fd(fds.gateway_bell));
    Exchange::new(channel, bells.0, bells.1).map_err(io::Error::other)
}

/// Why the loop ended.
enum End {
    /// The gateway said so.
    Asked,
    /// The engine's state cannot be trusted any more.
    Untrusted,
}

fn serve(mut exchange: Exchange) -> Result<End, Corrupt> {
    let mut frame = Vec::new();
    let mut scratch = Scratch::default();
    exchange.ready()?;
    while exchange.next(&mut frame)? == Next::Request {
        let done = answer(&mut exchange, &frame, &mut scratch)?;
        exchange.done(done)?;
        if done.leaving {
            return Ok(End::Untrusted);
        }
    }
    Ok(End::Asked)
}

fn answer(exchange: &mut Exchange, frame: &[u8], scratch: &mut Scratch) -> Result<Done, Corrupt> {
    let view = RequestView::decode(frame)?;
    exchange.expect_body(view.fixed.content_length.unwrap_or(0));
    let tag = exchange.tag();
    backtrace::about(tag);
    // SAFETY: `exchange` is used by the callbacks alone until `run` returns.
    let verdict = unsafe { engine::run(&view, tag, (&raw mut *exchange).cast(), scratch) };
    let panicked = exchange.take_panicked();
    Ok(Done {
        outcome: if panicked { Outcome::Failed } else { verdict.outcome },
        leaving: verdict.leaving || panicked,
        peak_memory_bytes: verdict.peak_memory_bytes,
    })
}
