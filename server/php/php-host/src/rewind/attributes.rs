//! [`Attributes`]: what else the kernel has for a process, and only native code changes unnoticed.
//!
//! PHP's functions and the C library's are watched where they are called (`sapi/process/changes.c`,
//! `sapi/process/calls.c`). Code that a script calls through FFI may call the kernel itself, so after a request
//! that has done so everything is compared with what it was when the worker began. Recorded only where scripts
//! may use FFI. Invariant: what differs is put back, or the worker takes no further request.

use super::irreversible::Irreversible;
use super::mappings::{self, Mapping, Name};
use super::snapshot::PAGE_BYTES;
use super::writes::PageMap;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;

unsafe extern "C" {
    fn outboard_native_is_possible() -> bool;
    fn outboard_native_was_called() -> bool;
}

/// Whether scripts may call native code.
pub(super) fn are_needed() -> bool {
    // SAFETY: reads settings of the engine.
    unsafe { outboard_native_is_possible() }
}

/// Whether this request has called native code.
pub(super) fn may_have_changed() -> bool {
    // SAFETY: reads a variable.
    unsafe { outboard_native_was_called() }
}

/// Lines of `/proc/self/status` that no other process changes, and the passing of time does not.
const STATUS: [&str; 17] = [
    "Name:",
    "Uid:",
    "Gid:",
    "Groups:",
    "SigPnd:",
    "ShdPnd:",
    "CapInh:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "CapAmb:",
    "NoNewPrivs:",
    "Seccomp:",
    "Seccomp_filters:",
    "VmLck:",
    "VmPin:",
    "CoreDumping:",
];

const FILES: [&str; 4] = [
    "/proc/self/timers",
    "/proc/self/oom_score_adj",
    "/proc/self/coredump_filter",
    "/proc/self/autogroup",
];

const NAMESPACES: [&str; 8] =
    ["cgroup", "ipc", "mnt", "net", "pid_for_children", "time_for_children", "user", "uts"];

/// Of linux/prctl.h.
const PR_GET_IO_FLUSHER: libc::c_int = 58;

/// Requests of prctl(2) that take no argument and return a value.
const VALUES: [libc::c_int; 9] = [
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_KEEPCAPS,
    libc::PR_GET_TIMING,
    libc::PR_GET_SECUREBITS,
    libc::PR_GET_TIMERSLACK,
    libc::PR_MCE_KILL_GET,
    libc::PR_GET_NO_NEW_PRIVS,
    libc::PR_GET_THP_DISABLE,
    PR_GET_IO_FLUSHER,
];

/// Signals of the kernel; 32 and 33 are the C library's own.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

const RESOURCES: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

/// See the module.
#[derive(Debug)]
pub(super) struct Attributes {
    /// What cannot be put back, each with its name.
    fixed: Vec<(&'static str, Vec<u8>)>,
    actions: Vec<(i32, Action)>,
    limits: Vec<Rlimit>,
    priority: i32,
    /// The host's descriptors, and what they are of.
    files: Vec<(RawFd, String)>,
    /// A hash of the private memory that is in no snapshot and differs from its file: what the dynamic linker
    /// has written.
    code: u64,
}

/// Handler, flags and mask, as bytes; where the handler returns to is the C library's.
type Action = (usize, i32, [u8; size_of::<libc::sigset_t>()]);

impl Attributes {
    /// Of this process; `descriptors` are those that a request may not close.
    pub(super) fn record(descriptors: &[RawFd]) -> io::Result<Self> {
        let file = |number: &RawFd| Some((*number, link_of(*number)?));
        Ok(Self {
            fixed: fixed(),
            actions: SIGNALS.filter_map(|signal| Some((signal, action_of(signal)?))).collect(),
            limits: RESOURCES.iter().map(|resource| getrlimit(*resource)).collect(),
            priority: priority(),
            files: descriptors.iter().filter_map(file).collect(),
            code: hash_of_code(&mappings::read()?)?,
        })
    }

    /// The code is what it is now: the worker has loaded a library between two requests.
    pub(super) fn accept_code(&mut self, mappings: &[Mapping]) -> io::Result<()> {
        self.code = hash_of_code(mappings)?;
        Ok(())
    }

    /// Puts back what can be; else says what the request has changed.
    pub(super) fn restore(&self) -> Result<(), Irreversible> {
        stop_timers();
        for (signal, action) in &self.actions {
            if action_of(*signal).as_ref() != Some(action) {
                set_action(*signal, action);
            }
        }
        for (resource, limit) in RESOURCES.iter().zip(&self.limits) {
            if getrlimit(*resource) != *limit && setrlimit(*resource, *limit).is_err() {
                return Err(Irreversible::Native("a limit"));
            }
        }
        if priority() != self.priority {
            // SAFETY: a plain system call.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.priority) };
        }
        self.check()
    }

    fn check(&self) -> Result<(), Irreversible> {
        if priority() != self.priority {
            return Err(Irreversible::Native("the priority"));
        }
        for (then, now) in self.fixed.iter().zip(fixed()) {
            if *then != now {
                return Err(Irreversible::Native(then.0));
            }
        }
        if self.files.iter().any(|(number, file)| link_of(*number).as_ref() != Some(file)) {
            return Err(Irreversible::Native("a descriptor of the host"));
        }
        Ok(())
    }

    /// Once the mappings are what they were: whether the code is, too.
    pub(super) fn check_code(&self) -> Result<(), Irreversible> {
        let now = mappings::read().map_err(|_| Irreversible::Kernel("/proc/self/maps"))?;
        match hash_of_code(&now) {
            Ok(code) if code == self.code => Ok(()),
            _ => Err(Irreversible::Native("code")),
        }
    }
}

fn fixed() -> Vec<(&'static str, Vec<u8>)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_known = |line: &&str| STATUS.iter().any(|name| line.starts_with(name));
    let status: Vec<&str> = status.lines().filter(is_known).collect();
    let mut all = vec![("the identity or rights", status.join("\n").into_bytes())];
    for path in FILES {
        all.push((path, fs::read(path).unwrap_or_default()));
    }
    let place =
        |path: String| fs::metadata(path).map_or([0; 2], |status| [status.dev(), status.ino()]);
    let namespaces = NAMESPACES.map(|name| place(format!("/proc/self/ns/{name}")));
    all.push(("a namespace", namespaces.iter().flatten().flat_map(|n| n.to_ne_bytes()).collect()));
    let root = place("/".to_owned());
    all.push(("the root", root.iter().flat_map(|number| number.to_ne_bytes()).collect()));
    all.push(("the session", session()));
    all.push(("a property of prctl(2)", properties()));
    all
}

fn session() -> Vec<u8> {
    // SAFETY: plain system calls, which change nothing.
    let ids = unsafe {
        [
            libc::getsid(0),
            libc::getpgid(0),
            libc::sched_getscheduler(0),
            libc::personality(0xffff_ffff),
            libc::syscall(libc::SYS_ioprio_get, 1, 0) as i32,
        ]
    };
    ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

fn properties() -> Vec<u8> {
    let mut death_signal: libc::c_int = 0;
    // SAFETY: these requests change nothing; the last one writes an integer.
    let values = unsafe {
        libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut death_signal);
        VALUES.map(|value| libc::prctl(value, 0, 0, 0, 0))
    };
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the kernel fills in the structure, for which zeros are valid as well.
    let stack = unsafe {
        libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr());
        stack.assume_init()
    };
    let numbers = [stack.ss_sp.addr() as u64, stack.ss_size as u64, stack.ss_flags as u64];
    let values = values.iter().chain([&death_signal]).flat_map(|value| value.to_ne_bytes());
    values.chain(numbers.iter().flat_map(|number| number.to_ne_bytes())).collect()
}

/// The C library sets this flag itself.
const SA_RESTORER: i32 = 0x0400_0000;

fn action_of(signal: i32) -> Option<Action> {
    // SAFETY: the call fills in the structure, for which zeros are valid as well.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0).then_some(action)?
    };
    // SAFETY: a set of signals is an array of integers.
    let mask = unsafe { std::mem::transmute_copy(&action.sa_mask) };
    Some((action.sa_sigaction, action.sa_flags & !SA_RESTORER, mask))
}

fn set_action(signal: i32, (handler, flags, mask): &Action) {
    // SAFETY: an action that this process has had.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = *handler;
        action.sa_flags = *flags;
        action.sa_mask = std::mem::transmute_copy(mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// A worker that was just forked has none.
fn stop_timers() {
    for timer in [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF] {
        // SAFETY: zeros stop the timer.
        unsafe {
            let never: libc::itimerval = std::mem::zeroed();
            libc::setitimer(timer, &raw const never, std::ptr::null_mut());
        }
    }
}

fn priority() -> i32 {
    // SAFETY: changes nothing.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

fn link_of(number: RawFd) -> Option<String> {
    let target = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    Some(target.to_string_lossy().into_owned())
}

/// Of what is private, not writable and not as in its file.
fn hash_of_code(all: &[Mapping]) -> io::Result<u64> {
    let is_code = |mapping: &&Mapping| {
        mapping.is_private
            && !mapping.is_writable()
            && mapping.protection & libc::PROT_READ != 0
            && mapping.name == Name::Other
    };
    let mut page_map = PageMap::open()?;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add =
        |word: u64| hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(7);
    for mapping in all.iter().filter(is_code) {
        for page in page_map.copies(&mapping.addresses)? {
            add(page as u64);
            let words = PAGE_BYTES / size_of::<u64>();
            // SAFETY: the page is mapped and readable, and nothing writes to it.
            let words = unsafe { std::slice::from_raw_parts(page as *const u64, words) };
            words.iter().for_each(|word| add(*word));
        }
    }
    Ok(hash)
}
