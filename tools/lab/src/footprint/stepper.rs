//! [`Stepper`]: all threads of some processes, executed one instruction at a time by ptrace(2).
//!
//! Called by [`super`]. Invariant: a thread is stopped, or it executes one instruction, in which the kernel
//! may wait; all of them run freely again, where they ran before, when the stepper is dropped. Meanwhile they
//! share one processor with the stepper: a step across processors takes ten times as long, and then the timers
//! of a server expire within a request.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::user_regs_struct;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid as Tid;
use outboard_profile::process_table::{self, Pid};

use super::clock::Clock;
use crate::error::{Error, Result, ResultExt};

/// How long a thread may take to stop: it may be in the kernel where nothing interrupts it.
const STOP: Duration = Duration::from_secs(2);

/// A step takes a few µs: waiting for longer than this sleeps.
const SPIN: Duration = Duration::from_micros(200);

/// The threads.
pub(super) struct Stepper {
    threads: HashMap<Tid, Thread>,
    processors: CpuSet,
    /// What they see of the time.
    pub(super) clock: Clock,
}

struct Thread {
    process: Pid,
    memory: Rc<File>,
    processors: CpuSet,
}

/// A thread that is about to execute an instruction.
pub(super) struct Step {
    /// The thread.
    pub(super) thread: Tid,
    /// Its process.
    pub(super) process: Pid,
    /// The address of the instruction.
    pub(super) address: u64,
    /// All registers before it.
    pub(super) registers: user_regs_struct,
    /// The memory of the process.
    pub(super) memory: Rc<File>,
}

impl Stepper {
    /// Stops all threads of the processes.
    ///
    /// # Errors
    /// The system does not permit it: it needs root or the same user (ptrace(2), PTRACE_MODE_ATTACH).
    pub(super) fn attach(processes: &[Pid]) -> Result<Self> {
        let myself = Tid::from_raw(0);
        let processors = sched_getaffinity(myself).map_err(|error| refused(0, error))?;
        let first = (0..CpuSet::count()).find(|at| processors.is_set(*at).unwrap_or(false));
        let mut one = CpuSet::new();
        let _ = one.set(first.unwrap_or(0));
        let _ = sched_setaffinity(myself, &one);
        let mut stepper = Self { threads: HashMap::new(), processors, clock: Clock::default() };
        for &process in processes {
            let memory = format!("/proc/{process}/mem");
            let memory = Rc::new(open(&memory).context(|| format!("open {memory}"))?);
            for thread in threads_of(process)? {
                ptrace::seize(thread, Options::empty()).map_err(|error| refused(process, error))?;
                let processors = sched_getaffinity(thread).unwrap_or(processors);
                let _ = sched_setaffinity(thread, &one);
                let memory = Rc::clone(&memory);
                stepper.threads.insert(thread, Thread { process, memory, processors });
            }
        }
        for &thread in stepper.threads.keys() {
            stop(thread);
            let _ = ptrace::step(thread, None);
        }
        Ok(stepper)
    }

    /// Steps until no thread has executed an instruction for this long, `visit` returns true, or until the deadline.
    ///
    /// # Errors
    /// waitpid(2) fails.
    pub(super) fn run_until_quiet(
        &mut self,
        quiet: Duration,
        deadline: Instant,
        visit: &mut dyn FnMut(Step) -> bool,
    ) -> Result<()> {
        let mut last = Instant::now();
        while last.elapsed() < quiet && Instant::now() < deadline {
            let status = waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL));
            match status {
                Ok(WaitStatus::StillAlive) if last.elapsed() < SPIN => thread::yield_now(),
                Ok(WaitStatus::StillAlive) => thread::sleep(SPIN),
                Ok(WaitStatus::Stopped(thread, Signal::SIGTRAP)) => {
                    last = Instant::now();
                    let is_done = self.visit(thread, visit);
                    let _ = ptrace::step(thread, None);
                    if is_done {
                        return Ok(());
                    }
                }
                Ok(WaitStatus::Stopped(thread, signal)) => {
                    let _ = ptrace::step(thread, signal);
                }
                Ok(WaitStatus::PtraceEvent(thread, ..)) => {
                    let _ = ptrace::step(thread, None);
                }
                Ok(WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..)) => {
                    self.threads.remove(&thread);
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => {
                    return Err(io::Error::from(error)).context(|| "wait for threads".into());
                }
            }
        }
        Ok(())
    }

    fn visit(&mut self, thread: Tid, visit: &mut dyn FnMut(Step) -> bool) -> bool {
        let (Some(known), Ok(registers)) = (self.threads.get(&thread), ptrace::getregs(thread))
        else {
            return false;
        };
        let step = Step {
            thread,
            process: known.process,
            address: registers.rip,
            registers,
            memory: Rc::clone(&known.memory),
        };
        self.clock.see(&step);
        visit(step)
    }

    /// The command name of a process.
    pub(super) fn name(&self, process: Pid) -> String {
        process_table::Process::read(process)
            .map_or_else(|| process.to_string(), |process| process.name)
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        for (&thread, known) in &self.threads {
            release(thread);
            let _ = sched_setaffinity(thread, &known.processors);
        }
        let _ = sched_setaffinity(Tid::from_raw(0), &self.processors);
    }
}

fn open(memory: &str) -> io::Result<File> {
    File::options().read(true).write(true).open(memory)
}

fn threads_of(process: Pid) -> Result<Vec<Tid>> {
    let directory = format!("/proc/{process}/task");
    let entries = fs::read_dir(&directory).context(|| format!("read {directory}"))?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.map(Tid::from_raw).collect())
}

/// Interrupts a thread and waits until it has stopped.
fn stop(thread: Tid) -> Option<WaitStatus> {
    let _ = ptrace::interrupt(thread);
    let deadline = Instant::now() + STOP;
    loop {
        match waitpid(thread, Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL)) {
            Ok(WaitStatus::StillAlive) if Instant::now() < deadline => thread::yield_now(),
            Ok(WaitStatus::StillAlive) | Err(_) => return None,
            Ok(status) => return Some(status),
        }
    }
}

/// Lets a thread run freely. The trap of a system call that an interruption has ended is pending, and would
/// kill the process without a tracer: it is taken first.
fn release(thread: Tid) {
    while let Some(status) = stop(thread) {
        if matches!(status, WaitStatus::Stopped(..)) || !has_pending_trap(thread) {
            break;
        }
        let _ = ptrace::cont(thread, None);
    }
    let _ = ptrace::detach(thread, None);
}

fn has_pending_trap(thread: Tid) -> bool {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    pending.unwrap_or(0) & 1 << (Signal::SIGTRAP as u32 - 1) != 0
}

fn refused(process: Pid, error: Errno) -> Error {
    Error::Io { action: format!("trace process {process} (as root?)"), source: error.into() }
}
