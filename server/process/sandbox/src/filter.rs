//! The filter of system calls (seccomp(2)): a list of what is denied, everything else is permitted.
//!
//! Called in a process with one thread. Invariants: a denied call fails with `EPERM`; `clone3` fails with
//! `ENOSYS`, because a filter cannot read the flags behind its pointer, and the C library then calls
//! `clone`; numbers of the x32 interface, which would pass a list of numbers, are denied. Calls that no rule
//! names are permitted without running the filter (the kernel computes that once).

use crate::Error;
use crate::system_calls::{self, Profile};
use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen::Dword, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};
use std::collections::BTreeMap;

/// A compiled filter, for seccomp(2).
pub type Program = Vec<sock_filter>;

/// See the module.
#[derive(Debug)]
pub struct Filter(Program);

/// Calls of another interface have this bit in their number.
const X32_BIT: u32 = 0x4000_0000;

/// The flags of new namespaces (clone(2)).
const NEW_NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    // CLONE_NEWTIME: with clone(2) the bit belongs to the signal of the child's exit.
    0x80,
];

/// asm-generic/fcntl.h and asm-generic/sockios.h: who gets the signals of a descriptor.
const F_SETOWN_EX: libc::c_int = 15;
const FIOSETOWN: i64 = 0x8901;
const SIOCSPGRP: i64 = 0x8902;

/// seccomp_data: the number of the call.
const NUMBER_OFFSET: u32 = 0;

/// Classic BPF (linux/bpf_common.h): load a word, compare, return.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

impl Filter {
    /// The filter of a profile.
    ///
    /// # Errors
    /// The machine is none that filters are built for.
    pub fn new(profile: Profile) -> Result<Self, Error> {
        compile(rules(profile).map_err(Error::Filter)?).map(Self).map_err(Error::Filter)
    }

    /// The filter of a profile for processes that have the kernel note writes to their memory: userfaultfd(2)
    /// for their own faults only, by which no system call can be held up.
    ///
    /// # Errors
    /// As [`Filter::new`].
    pub fn with_noted_writes(profile: Profile) -> Result<Self, Error> {
        let mut rules = rules(profile).map_err(Error::Filter)?;
        let others = condition(0, SeccompCmpOp::MaskedEq(USER_MODE_ONLY), 0);
        let others = others.and_then(|others| SeccompRule::new(vec![others]));
        rules.insert(libc::SYS_userfaultfd, vec![others.map_err(Error::Filter)?]);
        compile(rules).map(Self).map_err(Error::Filter)
    }

    /// No signals to a process and its group, for kernels whose Landlock knows no scope of signals (before 6.12).
    /// What sends them by a descriptor, or on input, names its receiver behind a pointer or a number of another
    /// kind: it is denied altogether (pidfd_send_signal(2), `F_SETOWN` of fcntl(2)).
    ///
    /// # Errors
    /// As [`Filter::new`].
    pub fn guarding(process: i32) -> Result<Self, Error> {
        compile(signals_to(process).map_err(Error::Filter)?).map(Self).map_err(Error::Filter)
    }

    /// The instructions, with another action in place of the one that fails with `EPERM`.
    pub fn with_action(&self, action: u32) -> Program {
        let denial = u32::from(DENY);
        let changed = |instruction: &sock_filter| match instruction {
            sock_filter { code: RETURN, k, .. } if *k == denial => {
                sock_filter { k: action, ..*instruction }
            }
            _ => instruction.clone(),
        };
        self.0.iter().map(changed).collect()
    }

    /// Installs the filter for this thread and its future children, which thereby gain no privileges by
    /// programs any more.
    ///
    /// # Errors
    /// The kernel has no filters, or an earlier filter forbids it.
    pub fn apply(&self) -> Result<(), Error> {
        seccompiler::apply_filter(&self.0).map_err(Error::Install)
    }
}

const DENY: SeccompAction = SeccompAction::Errno(libc::EPERM as u32);

/// `UFFD_USER_MODE_ONLY` of linux/userfaultfd.h.
const USER_MODE_ONLY: u64 = 1;

/// Denied calls by number, and for which arguments; none: for all.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(profile: Profile) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for rule in system_calls::denied(profile) {
        rules.extend(rule.calls.iter().map(|(_, number)| (*number, Vec::new())));
    }
    rules.insert(libc::SYS_socket, sockets(profile)?);
    if matches!(profile, Profile::StrictPhp | Profile::StrictProgram) {
        rules.extend(past_ports()?);
    }
    rules.insert(libc::SYS_unshare, new_namespaces(&NEW_NAMESPACES)?);
    rules.insert(libc::SYS_clone, new_namespaces(&NEW_NAMESPACES[..7])?);
    Ok(rules)
}

fn compile(rules: Rules) -> Result<Program, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let compiled: Program =
        SeccompFilter::new(rules, SeccompAction::Allow, DENY, arch)?.try_into()?;
    Ok(before_rules().into_iter().chain(compiled).collect())
}

/// In front of the compiled rules, which follow where nothing here returns.
fn before_rules() -> Vec<sock_filter> {
    let no_such_call = u32::from(SeccompAction::Errno(libc::ENOSYS as u32));
    let clone3 = libc::SYS_clone3 as u32;
    vec![
        instruction(LOAD, 0, 0, NUMBER_OFFSET),
        instruction(JUMP_IF_EQUAL, 1, 0, clone3),
        instruction(JUMP_IF_AT_LEAST, 0, 1, X32_BIT),
        instruction(RETURN, 0, 0, no_such_call),
    ]
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, Dword, operator, value)
}

/// Unix and Internet sockets, and of netlink what lists addresses and routes, which `getaddrinfo` does. The
/// gateway finds the owner of a connection by sock_diag(7), too.
fn sockets(profile: Profile) -> Result<Vec<SeccompRule>, BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let [unix, ip4, ip6, netlink] =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
            .map(|family| family as u64);
    let other = [unix, ip4, ip6, netlink].map(|family| condition(0, Ne, family));
    let mut netlink_protocols = vec![libc::NETLINK_ROUTE];
    if matches!(profile, Profile::Server | Profile::ServerWithPrograms) {
        netlink_protocols.push(libc::NETLINK_SOCK_DIAG);
    }
    let protocols = netlink_protocols.into_iter().map(|one| condition(2, Ne, one as u64));
    let other_netlink = [condition(0, Eq, netlink)].into_iter().chain(protocols);
    // The upper bits of the type are flags.
    let raw =
        |family| [condition(0, Eq, family), condition(1, MaskedEq(0xf), libc::SOCK_RAW as u64)];
    [
        other.into_iter().collect::<Result<Vec<_>, _>>(),
        other_netlink.collect(),
        raw(ip4).into_iter().collect(),
        raw(ip6).into_iter().collect(),
    ]
    .into_iter()
    .map(|conditions| SeccompRule::new(conditions?))
    .collect()
}

/// What reaches the network past the list of ports, which the kernel applies to connect(2) and bind(2) of TCP:
/// other protocols on its addresses, a connection by the first data sent (TCP Fast Open), and listen(2), which
/// binds to any port.
fn past_ports() -> Result<Rules, BackendError> {
    use SeccompCmpOp::{Eq, MaskedEq, Ne};
    let all = |conditions: Vec<Result<SeccompCondition, BackendError>>| {
        SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
    };
    let mut sockets = sockets(Profile::StrictPhp)?;
    for family in [libc::AF_INET, libc::AF_INET6].map(|family| family as u64) {
        let protocols = [libc::IPPROTO_IP, libc::IPPROTO_TCP, libc::IPPROTO_UDP];
        let other = protocols.map(|one| condition(2, Ne, one as u64));
        sockets.push(all([condition(0, Eq, family)].into_iter().chain(other).collect())?);
        // Streams and datagrams are 1 and 2; the upper bits are flags.
        for kind in [0].into_iter().chain(3..=0xf) {
            sockets.push(all(vec![condition(0, Eq, family), condition(1, MaskedEq(0xf), kind)])?);
        }
    }
    let fast_open = libc::MSG_FASTOPEN as u64;
    let sends = |flags| Ok(vec![all(vec![condition(flags, MaskedEq(fast_open), fast_open)])?]);
    let option = |name: libc::c_int| {
        let is_of_tcp = condition(1, Eq, libc::IPPROTO_TCP as u64);
        all(vec![is_of_tcp, condition(2, Eq, name as u64)])
    };
    let options = [libc::TCP_FASTOPEN, libc::TCP_FASTOPEN_CONNECT].map(option);
    Ok(Rules::from([
        (libc::SYS_socket, sockets),
        (libc::SYS_listen, Vec::new()),
        (libc::SYS_sendto, sends(3)?),
        (libc::SYS_sendmsg, sends(2)?),
        (libc::SYS_sendmmsg, sends(3)?),
        (libc::SYS_setsockopt, options.into_iter().collect::<Result<_, _>>()?),
    ]))
}

/// The calls by which a process signals another.
fn signals_to(process: i32) -> Result<Rules, BackendError> {
    let any = |argument, values: &[i64]| {
        let one = |value: &i64| {
            let value = u64::from(*value as u32);
            SeccompRule::new(vec![condition(argument, SeccompCmpOp::Eq, value)?])
        };
        values.iter().map(one).collect::<Result<Vec<_>, _>>()
    };
    let process = i64::from(process);
    let owners = [libc::F_SETOWN, F_SETOWN_EX].map(i64::from);
    Ok(Rules::from([
        // -1 is every process that the user may signal.
        (libc::SYS_kill, any(0, &[process, -process, -1])?),
        (libc::SYS_tkill, any(0, &[process])?),
        (libc::SYS_tgkill, any(0, &[process])?),
        (libc::SYS_rt_sigqueueinfo, any(0, &[process])?),
        (libc::SYS_rt_tgsigqueueinfo, any(0, &[process])?),
        (libc::SYS_pidfd_send_signal, Vec::new()),
        (libc::SYS_fcntl, any(1, &owners)?),
        (libc::SYS_ioctl, any(1, &[FIOSETOWN, SIOCSPGRP])?),
    ]))
}

fn new_namespaces(flags: &[libc::c_int]) -> Result<Vec<SeccompRule>, BackendError> {
    let one = |flag: &libc::c_int| {
        let bit = u64::from(flag.cast_unsigned());
        SeccompRule::new(vec![condition(0, SeccompCmpOp::MaskedEq(bit), bit)?])
    };
    flags.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use rustix::net::{AddressFamily as Family, Protocol, RawProtocol, SocketType, socket};

    fn kind_of(error: rustix::io::Result<impl Sized>) -> Option<Errno> {
        error.err()
    }

    /// In a thread of its own, which ends with it.
    fn filtered<T: Send>(profile: Profile, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let work = move || {
                Filter::new(profile).expect("a filter").apply().expect("the kernel has filters");
                work()
            };
            scope.spawn(work).join().expect("no panic")
        })
    }

    #[test]
    fn kinds_of_sockets_that_applications_open_are_permitted() {
        filtered(Profile::Php, || {
            for family in [Family::UNIX, Family::INET] {
                for kind in [SocketType::STREAM, SocketType::DGRAM] {
                    assert!(socket(family, kind, None).is_ok(), "{family:?} {kind:?}");
                }
            }
            assert!(socket(Family::NETLINK, SocketType::RAW, None).is_ok());
            for family in [Family::PACKET, Family::VSOCK, Family::BLUETOOTH] {
                assert_eq!(kind_of(socket(family, SocketType::DGRAM, None)), Some(Errno::PERM));
            }
            let diag = Some(rustix::net::netlink::SOCK_DIAG);
            let any = Some(Protocol::from_raw(RawProtocol::new(255).unwrap()));
            assert_eq!(kind_of(socket(Family::NETLINK, SocketType::RAW, diag)), Some(Errno::PERM));
            assert_eq!(kind_of(socket(Family::INET, SocketType::RAW, any)), Some(Errno::PERM));
        });
    }

    #[test]
    fn a_strict_process_has_tcp_udp_and_unix_sockets_and_no_listener() {
        filtered(Profile::StrictPhp, || {
            let open = |family, kind: SocketType, protocol: u32| {
                let protocol = RawProtocol::new(protocol).map(Protocol::from_raw);
                kind_of(socket(family, kind, protocol).map(drop))
            };
            for family in [Family::INET, Family::INET6] {
                // ICMP, DCCP, SCTP, UDP-Lite, SMC, MPTCP.
                for protocol in [1, 33, 58, 132, 136, 256, 262] {
                    for kind in [SocketType::STREAM, SocketType::DGRAM] {
                        assert_eq!(open(family, kind, protocol), Some(Errno::PERM), "{protocol}");
                    }
                }
                for kind in [SocketType::RAW, SocketType::SEQPACKET] {
                    assert_eq!(open(family, kind, 0), Some(Errno::PERM));
                }
                for (kind, protocol) in [(SocketType::STREAM, 6), (SocketType::DGRAM, 17)] {
                    assert!(socket(family, kind, None).is_ok());
                    assert_eq!(open(family, kind, protocol), None);
                }
            }
            let tcp = socket(Family::INET, SocketType::STREAM, None).unwrap();
            assert_eq!(kind_of(rustix::net::listen(&tcp, 1)), Some(Errno::PERM));
            let fast_open = rustix::net::SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
            let to = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
            let sent = rustix::net::sendto(&tcp, b"x", fast_open, &to);
            assert_eq!(kind_of(sent.map(drop)), Some(Errno::PERM));
            let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
            let sent = rustix::net::send(&one, b"x", rustix::net::SendFlags::empty());
            assert_eq!((sent, drop(other)), (Ok(1), ()));
        });
    }

    #[test]
    fn a_server_finds_owners_of_connections_and_starts_nothing() {
        filtered(Profile::Server, || {
            let diag = Some(rustix::net::netlink::SOCK_DIAG);
            assert!(socket(Family::NETLINK, SocketType::DGRAM, diag).is_ok());
            let started = std::process::Command::new("/bin/true").status();
            assert_eq!(started.unwrap_err().raw_os_error(), Some(libc::EPERM));
        });
    }

    #[test]
    fn programs_start_and_have_threads_and_no_namespaces() {
        filtered(Profile::Php, || {
            let run = |program: &str, argument: &str| {
                let status = std::process::Command::new(program).arg(argument).status();
                status.expect("it starts").success()
            };
            assert!(run("/bin/echo", ""));
            assert!(!run("/usr/bin/unshare", "--user"));
            std::thread::spawn(|| {}).join().expect("clone3 fails with ENOSYS: clone is called");
        });
    }

    #[test]
    fn a_guarded_process_gets_no_signal_and_others_do() {
        use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group};
        use std::os::unix::process::CommandExt;
        let sleeper =
            || std::process::Command::new("/bin/sleep").arg("60").process_group(0).spawn().unwrap();
        let (mut guarded, mut other) = (sleeper(), sleeper());
        let pid = |child: &std::process::Child| Pid::from_child(child);
        let (to, to_other) = (pid(&guarded), pid(&other));
        let denied = Some(Errno::PERM);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                Filter::guarding(to.as_raw_nonzero().get()).unwrap().apply().unwrap();
                assert_eq!(kind_of(kill_process(to, Signal::KILL)), denied);
                assert_eq!(kind_of(kill_process_group(to, Signal::KILL)), denied);
                let fd = rustix::process::pidfd_open(to, PidfdFlags::empty()).unwrap();
                let sent = rustix::process::pidfd_send_signal(fd, Signal::KILL);
                assert_eq!(kind_of(sent), denied);
                // That of the shell: a small Debian has no /bin/kill.
                let everyone =
                    std::process::Command::new("/bin/sh").args(["-c", "kill -s 0 -- -1"]).output();
                assert!(!everyone.unwrap().status.success());
                assert_eq!(kill_process(to_other, Signal::KILL), Ok(()));
            });
        });
        assert_eq!(guarded.try_wait().unwrap(), None);
        assert!(!other.wait().unwrap().success());
        guarded.kill().unwrap();
        guarded.wait().unwrap();
    }

    #[test]
    fn another_action_replaces_the_denial_only() {
        let filter = Filter::new(Profile::StrictPhp).unwrap();
        let changed = filter.with_action(0x7fc0_0000);
        let count = |program: &Program, action: u32| {
            program.iter().filter(|one| one.code == RETURN && one.k == action).count()
        };
        let denial = u32::from(DENY);
        assert!(count(&filter.0, denial) > 40);
        assert_eq!(count(&changed, 0x7fc0_0000), count(&filter.0, denial));
        assert_eq!(count(&changed, denial), 0);
    }
}
