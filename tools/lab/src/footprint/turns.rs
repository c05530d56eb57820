//! [`Turns`]: which instructions of a thread are for a request, and which ones only look whether time has passed.
//!
//! Called by [`super`] for each step. While a request is stepped, time stands still for its processes
//! ([`super::clock`]), but not for the kernel's waits: they end without a reason, and the threads wait again. Invariant:
//! what a thread does between two waits is a request's if the first has returned events, or if it calls the kernel for
//! more than to wait.

use std::collections::HashMap;

use nix::libc::{
    SYS_epoll_pwait, SYS_epoll_pwait2, SYS_epoll_wait, SYS_poll, SYS_ppoll, SYS_pselect6,
    SYS_select,
};
use nix::unistd::Pid as Tid;

use super::stepper::Step;

/// The threads.
#[derive(Default)]
pub(super) struct Turns {
    threads: HashMap<Tid, Turn>,
}

#[derive(Default)]
struct Turn {
    /// Its last instruction was a wait.
    waits: bool,
    has_timed_out: bool,
}

/// What a step belongs to.
pub(super) enum Part {
    /// A request.
    Request,
    /// A turn that has begun now, and may be a request's.
    NewTurn,
    /// Such a turn.
    Turn,
}

impl Turns {
    /// What the instruction that a thread is about to execute belongs to.
    pub(super) fn part(&mut self, step: &Step, is_system_call: bool) -> Part {
        let turn = self.threads.entry(step.thread).or_default();
        let is_new = std::mem::take(&mut turn.waits);
        if is_new {
            // The number of events; an interrupted wait is a negative number.
            turn.has_timed_out = step.registers.rax == 0;
        }
        if is_system_call {
            turn.waits = waits(step);
            turn.has_timed_out &= turn.waits || looks(step);
        }
        match turn.has_timed_out {
            true if is_new => Part::NewTurn,
            true => Part::Turn,
            false => Part::Request,
        }
    }
}

/// Whether a system call looks for events and does not wait.
fn looks(step: &Step) -> bool {
    [SYS_epoll_wait, SYS_epoll_pwait, SYS_poll].contains(&(step.registers.rax as i64))
}

/// Whether a system call waits for events.
fn waits(step: &Step) -> bool {
    let registers = &step.registers;
    let timeout_ms = match registers.rax as i64 {
        number if number == SYS_epoll_wait || number == SYS_epoll_pwait => registers.r10,
        number if number == SYS_poll => registers.rdx,
        number => {
            return [SYS_epoll_pwait2, SYS_ppoll, SYS_select, SYS_pselect6].contains(&number);
        }
    };
    timeout_ms != 0
}
