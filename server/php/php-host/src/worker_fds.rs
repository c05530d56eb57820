//! [`WorkerFds`]: the descriptors of a fork order, from which a worker's link is created.
//!
//! Taken by the zygote in the forked child. Invariant: nothing slow happens here, between the fork and
//! `Ready`.

use crate::direct::Direct;
use crate::link::Link;
use crate::{backtrace, engine, exit, process};
use outboard_ring::channel::WorkerChannel;
use outboard_ring::control::BACKTRACE_SIGNAL;
use outboard_ring::doorbell::{Awaited, Doorbell};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

/// See the module.
#[derive(Debug)]
pub(crate) struct WorkerFds {
    pub(crate) memory: OwnedFd,
    pub(crate) bell: OwnedFd,
    pub(crate) gateway_bell: OwnedFd,
    pub(crate) output: OwnedFd,
    /// Where direct connections come from.
    pub(crate) direct: Option<OwnedFd>,
}

impl WorkerFds {
    /// Creates the worker's link, or exits.
    pub(crate) fn connect(self, app: &str, number: u64) -> Rc<RefCell<Link>> {
        match connect(app, number, self) {
            Ok(link) => link,
            Err(error) => {
                eprintln!("outboard-php: worker {number} cannot start: {error}");
                exit::leave(exit::CODE_SETUP);
            }
        }
    }
}

fn connect(app: &str, number: u64, fds: WorkerFds) -> io::Result<Rc<RefCell<Link>>> {
    rustix::stdio::dup2_stdout(&fds.output)?;
    rustix::stdio::dup2_stderr(&fds.output)?;
    drop(fds.output);
    process::set_title(&format!("outboard: {app} worker {number}"), &format!("{app}/{number}"));
    let channel = WorkerChannel::map(&fds.memory)?;
    drop(fds.memory);
    backtrace::set_sink(channel.backtrace_sink());
    engine::announce_death_to(channel.dying_mark().as_ptr(), fds.gateway_bell.as_raw_fd());
    engine::announce_debugger_to(channel.debugged_mark().as_ptr());
    engine::backtrace::install(BACKTRACE_SIGNAL);
    engine::start_time_limit()?;
    let bells = (Awaited::from_fd(fds.bell), Doorbell::from_fd(fds.gateway_bell));
    let mut link = Link::new(channel, bells.0, bells.1).map_err(io::Error::other)?;
    if let Some(socket) = fds.direct {
        link.set_direct(Direct::new(socket)?);
    }
    Ok(Rc::new(RefCell::new(link)))
}
