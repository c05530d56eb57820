//! The monitor: a process beside the zygote that answers denied system calls with `EPERM` and logs them.
//!
//! Started by the sandbox before PHP. The kernel stops a call that a rule denies and notifies the monitor
//! (seccomp_unotify(2)), whichever process of the app made it: a worker, or a program that PHP started,
//! which a signal handler would not survive. Calls that are permitted never come here. Invariants: the
//! monitor only reads notifications and prints, which no rule denies, so it cannot wait for itself; if it is
//! killed, denied calls fail with `ENOSYS`; it ends with the zygote, and wait(2) does not show it to scripts.

use crate::process;
use outboard_sandbox::{Filter, name_of, rule_of};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// The short name of monitors, which is not that of any worker.
pub(crate) const NAME: &str = "sandbox-monitor";

/// How often the same call is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A newer kernel may have longer structures.
const BUFFER_WORDS: usize = 64;

/// Installs the filter with a monitor.
///
/// # Errors
/// The kernel cannot notify, or the process that started the server has a monitor of its own.
pub(super) fn start(filter: &Filter, app: &str) -> io::Result<()> {
    if !sizes_fit() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let listener = install(filter)?;
    let zygote = std::process::id();
    // SAFETY: the process has one thread, so the child's copy is complete. Without a signal for its exit
    // the child is none that wait(2) of a script finds. The argument order differs between machines only
    // for those that are 0.
    match unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } {
        -1 => {
            // Every denied call fails with ENOSYS from here on.
            eprintln!("outboard-php: the sandbox logs nothing: {}", io::Error::last_os_error());
            Ok(())
        }
        0 => watch(listener, app, zygote),
        _ => Ok(()),
    }
}

fn sizes_fit() -> bool {
    let mut sizes =
        libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
    // SAFETY: the kernel fills in the structure, which outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes)
    };
    let fits = |bytes: u16| usize::from(bytes) <= BUFFER_WORDS * size_of::<u64>();
    result == 0 && fits(sizes.seccomp_notif) && fits(sizes.seccomp_notif_resp)
}

/// Returns the descriptor that has the notifications.
fn install(filter: &Filter) -> io::Result<OwnedFd> {
    process::forbid_new_privileges()?;
    let instructions = filter.with_action(libc::SECCOMP_RET_USER_NOTIF);
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(io::Error::other)?,
        filter: instructions.as_ptr().cast_mut().cast(),
    };
    // Older kernels slow down a process with a filter unless it forgoes that (spec_store_bypass).
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the kernel copies the program and its instructions, which outlive the call and have its
    // layout (`repr(C)` in both crates).
    let fd = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which has no other owner; the kernel sets close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// In the child: never returns.
fn watch(listener: OwnedFd, app: &str, zygote: u32) -> ! {
    if !process::die_with(zygote) {
        std::process::exit(1);
    }
    let listener = listener.as_raw_fd();
    // SAFETY: nothing in this process uses any other descriptor but the standard ones again, and the end
    // of the zygote's control socket must not stay open here.
    unsafe {
        libc::close_range(3, (listener - 1).cast_unsigned(), 0);
        libc::close_range((listener + 1).cast_unsigned(), u32::MAX, 0);
    }
    process::set_title(&format!("outboard: {app} sandbox"), NAME);
    let mut log = Log::default();
    while let Ok(()) = next(listener, &mut log) {}
    // SAFETY: exit handlers are the zygote's.
    unsafe { libc::_exit(0) }
}

fn next(listener: i32, log: &mut Log) -> io::Result<()> {
    let mut buffer = [0_u64; BUFFER_WORDS];
    // SAFETY: the buffer has room for the kernel's structure, is aligned for it and zeroed, as it requires.
    let received =
        unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, buffer.as_mut_ptr()) };
    if received == -1 {
        let error = io::Error::last_os_error();
        // ENOENT: the process was killed meanwhile.
        return match error.raw_os_error() {
            Some(libc::EINTR | libc::ENOENT) => Ok(()),
            _ => Err(error),
        };
    }
    // SAFETY: the kernel has filled in the structure at the start of the buffer.
    let call = unsafe { &*buffer.as_ptr().cast::<libc::seccomp_notif>() };
    let mut reply = [0_u64; BUFFER_WORDS];
    // SAFETY: as above; the fields are plain numbers.
    unsafe {
        let reply = &mut *reply.as_mut_ptr().cast::<libc::seccomp_notif_resp>();
        reply.id = call.id;
        reply.error = -libc::EPERM;
        // It fails if the process was killed meanwhile.
        libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut *reply);
    }
    log.denied(i64::from(call.data.nr), call.pid);
    Ok(())
}

/// What was logged, by the number of the call; there are no more than rules have calls.
#[derive(Default)]
struct Log(BTreeMap<i64, (Instant, u64)>);

impl Log {
    /// The line of a call, unless the same was logged shortly before.
    fn denied(&mut self, number: i64, pid: u32) {
        let now = Instant::now();
        let count = match self.0.get_mut(&number) {
            Some((since, count)) if now - *since < LOG_INTERVAL => {
                *count += 1;
                return;
            }
            Some((_, count)) => *count,
            None => 0,
        };
        self.0.insert(number, (now, 0));
        let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let more = if count > 0 {
            format!(", and {count} times since that was last logged")
        } else {
            String::new()
        };
        eprintln!(
            "sandbox: {} (process {pid}) may not call {}: rule {}{more}",
            program.trim().escape_default(),
            name_of(number).unwrap_or("a system call"),
            rule_of(number).unwrap_or("unknown"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_structures_fit() {
        assert!(sizes_fit());
    }
}
