//! [`Turns`]: which instructions of a thread are for a request, and which ones only look whether time has passed.
//!
//! Called by [`super`] for each step. While a request is stepped, time stands still for its processes
//! ([`super::clock`]), but not for the kernel's waits: they end without a reason, and the threads wait again. Invariant:
//! what a thread does between two waits is a request's if the first has returned events, or if it calls the kernel for
//! more than to wait.

use std::collections::HashMap;
use std::time::Instant;

use nix::libc::{
    ETIMEDOUT, FUTEX_CMD_MASK, FUTEX_WAIT, FUTEX_WAIT_BITSET, SYS_epoll_pwait, SYS_epoll_pwait2,
    SYS_epoll_wait, SYS_futex, SYS_poll, SYS_ppoll, SYS_pselect6, SYS_select,
};
use nix::unistd::Pid as Tid;

use super::QUIET;
use super::stepper::Step;

/// So many turns that are no request's mean that there is none.
const IDLE_TURNS: usize = 4;

/// The threads.
#[derive(Default)]
pub(super) struct Turns {
    threads: HashMap<Tid, Turn>,
    /// Turns that have begun since the last instruction of a request, and when that was.
    since_request: usize,
    last_request: Option<Instant>,
}

#[derive(Default)]
struct Turn {
    /// Its last instruction was a system call.
    is_in_kernel: bool,
    /// That was a wait: what it returns if it times out.
    waits: Option<i64>,
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
        let waited = turn.waits.take();
        if let Some(timed_out) = waited {
            turn.has_timed_out = step.registers.rax as i64 == timed_out;
        }
        turn.is_in_kernel = is_system_call;
        if is_system_call {
            turn.waits = waits(step);
            turn.has_timed_out &= turn.waits.is_some() || looks(step);
        }
        match turn.has_timed_out {
            true if waited.is_some() => {
                self.since_request += 1;
                Part::NewTurn
            }
            true => Part::Turn,
            false => {
                (self.since_request, self.last_request) = (0, Some(Instant::now()));
                Part::Request
            }
        }
    }

    /// Whether threads only look at the time: one that waits for some ms does so for seconds now.
    pub(super) fn are_idle(&self) -> bool {
        let is_idle = |turn: &Turn| turn.is_in_kernel || turn.has_timed_out;
        self.since_request >= IDLE_TURNS
            && self.last_request.is_none_or(|at| at.elapsed() >= QUIET)
            && self.threads.values().all(is_idle)
    }
}

/// Whether a system call looks for events and does not wait.
fn looks(step: &Step) -> bool {
    [SYS_epoll_wait, SYS_epoll_pwait, SYS_poll].contains(&(step.registers.rax as i64))
}

/// Whether a system call waits: what it returns if it times out.
fn waits(step: &Step) -> Option<i64> {
    let registers = &step.registers;
    let waits = match registers.rax as i64 {
        number if number == SYS_epoll_wait || number == SYS_epoll_pwait => registers.r10 != 0,
        number if number == SYS_poll => registers.rdx != 0,
        // A deadline is a time of the real clock, so it is over at once.
        number if number == SYS_futex => {
            let operation = registers.rsi as i32 & FUTEX_CMD_MASK;
            let waits = [FUTEX_WAIT, FUTEX_WAIT_BITSET].contains(&operation);
            return waits.then_some(-i64::from(ETIMEDOUT));
        }
        number => [SYS_epoll_pwait2, SYS_ppoll, SYS_select, SYS_pselect6].contains(&number),
    };
    waits.then_some(0)
}
