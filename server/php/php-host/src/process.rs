//! Properties of the process: parent, user and rights, limits, environment, signals, title.
//!
//! Called by the zygote, and by workers just after the fork. Invariant: all of it runs while the
//! process has a single thread.

use outboard_ring::control::Rlimits;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, dumpable_behavior, getrlimit, set_dumpable_behavior,
    setrlimit,
};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::sync::OnceLock;

fn check(result: i32) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes this process die with `parent`, even if that is killed. False if it has exited already.
///
/// The kernel ties this to the *thread* that forked (`PR_SET_PDEATHSIG` in prctl(2)): the parent
/// must fork from a thread that lives as long as it does.
pub(crate) fn die_with(parent: u32) -> bool {
    receive_at_end_of(parent, libc::SIGKILL)
}

/// Makes this process receive SIGTERM, which it may handle, at the end of `parent`. False if that has
/// exited already.
#[cfg_attr(not(programs), expect(dead_code, reason = "of `outboard-php run`"))]
pub(crate) fn terminate_with(parent: u32) -> bool {
    receive_at_end_of(parent, libc::SIGTERM)
}

/// Wakes this process at the end of its parent even if it is stopped, so that it notices its closed
/// control socket.
pub(crate) fn wake_at_end_of_parent() {
    // SAFETY: a plain system call without pointers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT) };
}

fn receive_at_end_of(parent: u32, signal: i32) -> bool {
    // SAFETY: plain system calls without pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, signal);
        libc::getppid() == parent.cast_signed()
    }
}

pub(crate) fn parent() -> u32 {
    // SAFETY: a plain system call.
    unsafe { libc::getppid() }.cast_unsigned()
}

/// Leaves the terminal's process group: Ctrl-C is for the gateway, which drains. The process leads a
/// session.
pub(crate) fn leave_terminal() {
    // SAFETY: a plain system call; it fails for a group leader, which has no terminal's group.
    unsafe { libc::setsid() };
}

extern "C" fn do_nothing(_signal: i32) {}

/// Ignores termination signals: the gateway decides. Programs that scripts start inherit "ignore",
/// but not a handler.
pub(crate) fn ignore_termination() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: the structure is zeroed and then filled in as sigaction(2) requires; the handler
        // does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = do_nothing as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Restores the default for faults. Rust's handler, which reports stack overflows, does not know
/// PHP's stacks.
pub(crate) fn reset_fault_handlers() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: restores the kernel's default.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Undoes what the parent blocked for itself; blocked signals are inherited by fork and exec.
pub(crate) fn unblock_signals() {
    // SAFETY: sigemptyset(3) initialises the zeroed memory.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

pub(crate) fn close_inherited() {
    // SAFETY: called first, so nothing in this process owns any of these.
    unsafe { libc::close_range(3, u32::MAX, 0) };
}

pub(crate) fn set_environment(variables: &BTreeMap<String, String>) {
    // SAFETY: single-threaded, so nothing reads the environment meanwhile.
    unsafe { libc::clearenv() };
    for (name, value) in variables {
        set_variable(name, value.as_bytes());
    }
}

/// Sets one variable; names and values with a NUL are left out.
pub(crate) fn set_variable(name: &str, value: &[u8]) {
    if let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) {
        // SAFETY: NUL-terminated strings that setenv(3) copies; single-threaded.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
}

pub(crate) fn remove_variable(name: &str) {
    if let Ok(name) = CString::new(name) {
        // SAFETY: a NUL-terminated string; single-threaded.
        unsafe { libc::unsetenv(name.as_ptr()) };
    }
}

/// Gives up root permanently: groups first, the user last (setuid(2)).
pub(crate) fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: plain system calls; an empty group list needs no memory. The name for initgroups
    // the user database's own.
    unsafe {
        let user = libc::getpwuid(uid);
        if user.is_null() {
            check(libc::setgroups(0, std::ptr::null()))?;
        } else {
            check(libc::initgroups((*user).pw_name, gid))?;
        }
        check(libc::setgid(gid))?;
        check(libc::setuid(uid))?;
    }
    Ok(())
}

/// Drops the capabilities that a service manager has granted to the gateway
/// (`AmbientCapabilities=`). Root stays root.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// From here on no program gets further rights by its file, here or in child processes.
pub(crate) fn forbid_new_privileges() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Whether other processes of the same user may trace this one, and this one may open its own memory as a
/// file (`PR_SET_DUMPABLE` in prctl(2)). Forks inherit it, and programs begin with true.
pub(crate) fn set_dumpable(may: bool) -> io::Result<()> {
    let behavior = if may { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    Ok(set_dumpable_behavior(behavior)?)
}

/// Opens a file below `/proc/self` that belongs to root unless this process is dumpable, which it is for this
/// moment. No program of the app may run that could open it meanwhile: see `sandbox::enter_worker`.
pub(crate) fn open_of_self(path: &str) -> io::Result<File> {
    let before = dumpable_behavior()?;
    set_dumpable(true)?;
    let opened = File::open(path);
    set_dumpable_behavior(before)?;
    opened
}

/// Sets the given limits, none above the current hard limit.
pub(crate) fn limit(limits: &Rlimits) -> io::Result<()> {
    let each = [
        (Resource::Nofile, limits.files),
        (Resource::Core, limits.core_bytes),
        (Resource::Nproc, limits.processes),
        (Resource::As, limits.address_space_bytes),
    ];
    for (resource, wanted) in each {
        let Some(wanted) = wanted else { continue };
        let most = getrlimit(resource).maximum.map_or(wanted, |most| most.min(wanted));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// Sets `USER` and `HOME` as php-fpm does, unless the settings have them.
pub(crate) fn add_user_variables() {
    // SAFETY: getpwuid(3) returns NULL or a record that is valid until the next call; the strings
    // are copied at once.
    unsafe {
        let user = libc::getpwuid(libc::geteuid());
        if !user.is_null() {
            add_variable(c"USER", CStr::from_ptr((*user).pw_name));
            add_variable(c"HOME", CStr::from_ptr((*user).pw_dir));
        }
    }
}

fn add_variable(name: &CStr, value: &CStr) {
    // SAFETY: NUL-terminated strings that setenv(3) copies; single-threaded.
    unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 0) };
}

/// The short name of zygotes (`/proc/PID/comm`), which is not that of any worker.
pub(crate) const ZYGOTE_NAME: &str = "outboard-zygote";

/// The memory of the command line (proc_pid_stat(5), fields 48 and 51).
static TITLE_AREA: OnceLock<Option<(usize, usize)>> = OnceLock::new();

fn title_area() -> Option<(usize, usize)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let address = |number: usize| fields.get(number - 3)?.parse::<usize>().ok();
    let (start, end) = (address(48)?, address(51)?);
    (start != 0 && end > start).then_some((start, end))
}

/// Where the stack of the first thread ends and the command line begins.
pub(crate) fn end_of_stack() -> usize {
    let local = 0_u8;
    // Without the command line's address nothing of the stack is known but this.
    let here = std::ptr::from_ref(&local).addr();
    TITLE_AREA.get_or_init(title_area).map_or(here, |(start, _)| start)
}

/// Sets the name that `ps` and `top` show. This overwrites the original environment, which follows
/// the arguments, so the environment must have been set before.
pub(crate) fn set_title(title: &str, short: &str) {
    if let Some((start, end)) = TITLE_AREA.get_or_init(title_area) {
        let len = title.len().min(end - start - 1);
        // SAFETY:
        // * the kernel put arguments and environment into this range of the stack;
        // * nothing reads them any more: arguments are not used, the environment was cleared and
        //   lives on the heap.
        unsafe {
            let area = *start as *mut u8;
            std::ptr::copy_nonoverlapping(title.as_ptr(), area, len);
            std::ptr::write_bytes(area.add(len), 0, end - start - len);
        }
    }
    if let Ok(short) = CString::new(short) {
        // SAFETY: a NUL-terminated string, of which the kernel copies 15 bytes.
        unsafe { libc::prctl(libc::PR_SET_NAME, short.as_ptr()) };
    }
}
