//! When the process of a script takes its snapshot, is rewound, or ends instead.
//!
//! Called by the C side at the end of the boot and of each request (`sapi/rewind/rewind.c`). Invariant: the gateway
//! learns that a request has ended before its worker is rewound, and whether the worker takes another one.

use super::RunningScript;
use crate::engine::request::RequestResult;
use crate::exit;
use crate::forking::Forking;
use crate::poller::now_us;
use crate::process;
use crate::rewind::{Irreversible, Rewind};
use outboard_ring::channel::WaitCall;
use outboard_ring::frame::Tag;
use std::io;
use std::os::fd::RawFd;

impl RunningScript {
    /// Ends the request with this tag.
    pub(crate) fn done(&mut self, tag: Tag, result: RequestResult) {
        let Some(events) = &mut self.events else { return };
        if self.is_rewinding && !result.leaving {
            events.finish(tag, result.handled);
            self.ended = Some((tag, result));
            return;
        }
        let leaving = result.leaving || self.is_fork;
        events.done(tag, RequestResult { leaving, ..result });
    }

    /// Whether this is a zygote whose workers are rewound, before its snapshot.
    pub(crate) fn takes_snapshot(&self) -> bool {
        self.is_rewinding && self.is_forking()
    }

    /// Whether this process is to be rewound now: a worker that was just forked, or has handled a request.
    /// With `is_damaged` it ends instead.
    pub(crate) fn may_rewind(&mut self, is_damaged: bool) -> bool {
        if !self.is_rewinding || !self.is_fork || self.rewind.is_none() {
            return false;
        }
        if is_damaged {
            self.is_rewinding = false;
            return false;
        }
        // What the gateway sends from now on has not been started if the worker ends instead.
        if let (Some((tag, result)), Some(events)) = (self.ended.take(), &mut self.events) {
            events.done(tag, result);
            return true;
        }
        !self.is_rewound()
    }

    /// Whether the host has opened this descriptor.
    pub(crate) fn is_own_descriptor(&self, number: RawFd) -> bool {
        self.own_descriptors.contains(&number)
    }

    /// Whether this process is a worker that was rewound before.
    pub(crate) fn is_rewound(&self) -> bool {
        self.rewind.as_ref().is_some_and(Rewind::is_ready)
    }

    /// In the zygote: takes the snapshot of its memory; `stack_pointer` is the script's. In a worker: undoes
    /// what the last request has done, or adds to the snapshot what was done since; or exits.
    ///
    /// # Safety
    /// The process has one thread, which runs on a stack in Rust's memory.
    pub(crate) unsafe fn rewind(&mut self, stack_pointer: usize) {
        match &mut self.rewind {
            None => {
                let stack = stack_pointer..process::end_of_stack();
                let leaves = self.forking.as_ref().is_some_and(Forking::leaves_programs);
                // SAFETY: the caller's contract.
                let taken = unsafe { Rewind::take(stack, &self.own_descriptors, leaves) };
                if let Some(forking) = &mut self.forking {
                    let how = taken.as_ref().map(Rewind::describe);
                    forking.set_rewind(how.map_err(ToString::to_string));
                }
                self.rewind = self.usable(taken);
            }
            Some(rewind) if !rewind.is_ready() => {
                // Their numbers are among those that the rewind leaves alone.
                let reserved = self.kept_connections.reserve();
                // SAFETY: the caller's contract.
                let begun = reserved.and_then(|()| unsafe { rewind.begin() });
                self.usable(begun);
            }
            Some(rewind) if rewind.is_adding() => {
                // SAFETY: the caller's contract.
                if let Err(error) = unsafe { rewind.add(stack_pointer..process::end_of_stack()) } {
                    eprintln!(
                        "outboard-php: a worker ends, since its snapshot is not whole: {error}"
                    );
                    exit::leave(0);
                }
            }
            Some(_) => {
                // SAFETY: the caller's contract.
                if let Err(why) = unsafe { self.undo_request() } {
                    eprintln!("outboard-php: a worker ends instead of being rewound: {why}");
                    exit::leave(0);
                }
            }
        }
    }

    /// The snapshot of a worker that is rewound.
    pub(crate) fn rewound(&mut self) -> Option<&mut Rewind> {
        self.rewind.as_mut()
    }

    /// Without a rewind each worker handles one request.
    fn usable<T>(&mut self, result: io::Result<T>) -> Option<T> {
        result
            .inspect_err(|error| {
                self.is_rewinding = false;
                eprintln!(
                    "outboard-php: workers cannot be rewound, so each handles one request: {error}"
                );
            })
            .ok()
    }

    /// # Safety
    /// As [`Self::rewind`].
    unsafe fn undo_request(&mut self) -> Result<(), Irreversible> {
        let (Some(rewind), Some(events)) = (&mut self.rewind, &mut self.events) else {
            return Ok(());
        };
        let since_us = now_us();
        rewind.check()?;
        events.forget_request();
        // SAFETY: the caller's contract.
        let pages = unsafe { rewind.undo() }?;
        let took_us = now_us() - since_us;
        let link = events.link.borrow();
        link.count_wait(WaitCall::Rewind, Some(took_us));
        link.count_rewind(took_us, pages);
        Ok(())
    }

    /// Has the gateway know that the last request was this worker's last.
    pub(super) fn leave_after_request(&mut self) {
        if let (Some((tag, result)), Some(events)) = (self.ended.take(), &mut self.events) {
            events.done(tag, RequestResult { leaving: true, ..result });
        }
    }
}
