//! The system calls that are denied, by rule; the names of rules appear in logs.
//!
//! Read by [`crate::filter`], and by the host's monitor, which names what was denied. Invariant: what
//! applications, PHP's extensions or the C library's ordinary functions call is not on the list. Most of it
//! needs capabilities in addition: it is here because the kernel's code behind it is large, seldom used and
//! a frequent source of faults, or because it reaches other processes.

use libc::c_long;

/// Which process is filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A PHP host.
    Php,
    /// A PHP host that starts no programs.
    StrictPhp,
    /// A program of such an app that runs next to PHP: it may start others.
    StrictProgram,
    /// The gateway after it has dropped root, which starts no programs either.
    Server,
    /// The same, where the configuration names a program for certificates.
    ServerWithPrograms,
}

/// A rule, and the calls that it denies whatever their arguments.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) calls: &'static [(&'static str, c_long)],
}

macro_rules! rule {
    ($name:literal: $($call:ident),* $(,)?) => {
        Rule { name: $name, calls: &[$((stringify!($call), libc::$call)),*] }
    };
}

const DENIED: [Rule; 8] = [
    // process_vm_readv(2) is the kernel's check of tracing, which a Landlock domain confines to the app: a
    // worker reads its own frames with it, and the zygote those of a worker that waits.
    rule!("trace": SYS_ptrace, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp, SYS_pidfd_getfd),
    rule!("kernel":
        SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module,
        SYS_reboot, SYS_syslog, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_swapon,
        SYS_swapoff, SYS_acct, SYS_quotactl, SYS_quotactl_fd, SYS_lookup_dcookie, SYS_nfsservctl,
        SYS_vhangup, SYS_fanotify_init, SYS_sethostname, SYS_setdomainname),
    rule!("mount":
        SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount,
        SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr,
        SYS_open_by_handle_at),
    rule!("namespaces": SYS_setns),
    rule!("keyrings": SYS_add_key, SYS_request_key, SYS_keyctl),
    rule!("io_uring": SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register),
    rule!("clock": SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex),
    MACHINE,
];

#[cfg(target_arch = "x86_64")]
const MACHINE: Rule = rule!("kernel":
    SYS_iopl, SYS_ioperm, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl, SYS_modify_ldt);
#[cfg(not(target_arch = "x86_64"))]
const MACHINE: Rule = rule!("kernel":);

const EXEC: Rule = rule!("exec": SYS_execve, SYS_execveat);

/// Those whose arguments decide.
const BY_ARGUMENT: [Rule; 2] = [
    rule!("namespaces": SYS_unshare, SYS_clone),
    rule!("sockets": SYS_socket, SYS_listen, SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_setsockopt),
];

/// The rules of a profile.
pub(crate) fn denied(profile: Profile) -> impl Iterator<Item = &'static Rule> {
    let no_programs = matches!(profile, Profile::StrictPhp | Profile::Server);
    let exec = no_programs.then_some(&EXEC);
    DENIED.iter().chain(exec)
}

/// The rule that denies a system call, by its number on this machine.
pub fn rule_of(number: c_long) -> Option<&'static str> {
    find(number).map(|(rule, _)| rule)
}

/// The name of a system call that a rule denies, such as `ptrace`.
pub fn name_of(number: c_long) -> Option<&'static str> {
    find(number).map(|(_, call)| call.trim_start_matches("SYS_"))
}

fn find(number: c_long) -> Option<(&'static str, &'static str)> {
    let rules = DENIED.iter().chain([&EXEC]).chain(&BY_ARGUMENT);
    let calls = rules.flat_map(|rule| rule.calls.iter().map(|call| (rule.name, call)));
    calls.filter(|(_, (_, other))| *other == number).map(|(rule, (call, _))| (rule, *call)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_call_has_one_rule_and_its_name() {
        assert_eq!(rule_of(libc::SYS_ptrace), Some("trace"));
        assert_eq!(name_of(libc::SYS_ptrace), Some("ptrace"));
        assert_eq!(rule_of(libc::SYS_execve), Some("exec"));
        assert_eq!(rule_of(libc::SYS_socket), Some("sockets"));
        assert_eq!(rule_of(libc::SYS_unshare), Some("namespaces"));
        assert_eq!(rule_of(libc::SYS_read), None);
        let rules = DENIED.iter().chain([&EXEC]).chain(&BY_ARGUMENT);
        let mut all: Vec<c_long> = rules.flat_map(|rule| rule.calls).map(|call| call.1).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count, "a call is denied by two rules");
    }
}
