//! The control socket between the supervisor and a zygote.
//!
//! A `SOCK_SEQPACKET` pair: one JSON message per packet, descriptors as `SCM_RIGHTS`. It carries
//! process management only, never requests, so readability matters more than speed. Invariants: a
//! message that cannot be parsed is an error of the peer; a packet is a whole message.

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// The largest message; settings with many ini values are the longest.
const MESSAGE_BYTES: usize = 128 * 1024;
const DESCRIPTORS_MAX: usize = 5;

/// The settings that a zygote starts PHP with, for one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSettings {
    /// The app's name, for process titles and messages.
    pub app: String,
    /// `DOCUMENT_ROOT`.
    pub document_root: PathBuf,
    /// What `PHP_SAPI` reports.
    pub sapi_name: String,
    /// `php.ini` to read; `None` takes what php-fpm of that version would read.
    pub ini_file: Option<PathBuf>,
    /// Folder of further ini files; `None` as above.
    pub ini_scan_dir: Option<PathBuf>,
    /// ini values that override the files. As php-fpm's `php_admin_value`: a script cannot
    /// change those of [`HostSettings::fixed_ini`].
    pub ini: BTreeMap<String, String>,
    /// ini values that scripts and `.user.ini` cannot change.
    pub fixed_ini: BTreeMap<String, String>,
    /// The complete environment of the workers.
    pub env: BTreeMap<String, String>,
    /// User and group to run as, by number; `None` stays as started.
    pub run_as: Option<(u32, u32)>,
    /// Whether executables cannot gain privileges (`PR_SET_NO_NEW_PRIVS`).
    pub no_new_privileges: bool,
    /// Whether programs of the same user may trace workers (`PR_SET_DUMPABLE`).
    pub dumpable: bool,
    /// Whether what a request has started goes on after it where requests are isolated from each other.
    pub background_programs: bool,
    /// What the PHP processes are confined to; `None`: they are not.
    pub sandbox: Option<Sandbox>,
    /// The control group that the zygote is placed in before it gets these settings.
    pub control_group: Option<ControlGroup>,
    /// Resource limits of the PHP processes.
    pub rlimits: Rlimits,
    /// The worker script; `None`: classic mode.
    pub worker: Option<WorkerScript>,
    /// Whether PHP has Xdebug.
    pub xdebug: Xdebug,
}

/// Whether PHP has the extension Xdebug.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Xdebug {
    /// It has not, even if the ini files load it.
    #[default]
    Never,
    /// If the ini files load it.
    AsConfigured,
    /// It has, and each request connects to the debugger.
    Always,
}

/// A program that a host runs in place of PHP, with the settings of an app's PHP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program, which is looked up in the `PATH` of the settings unless it has a slash, and its arguments.
    pub arguments: Vec<String>,
    /// The working directory.
    pub directory: PathBuf,
}

/// Limits for all processes of an app together (cgroups(7)); `None`: no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// The app, which the group is named after.
    pub app: String,
    /// Memory in bytes, including files that are cached for it.
    pub memory_max_bytes: Option<u64>,
    /// Share of the processors among groups that compute: 1 to 10000, 100 by default.
    pub cpu_weight: Option<u32>,
    /// Processes and threads.
    pub processes_max: Option<u32>,
}

/// What PHP may reach in addition to what PHP itself needs (Landlock, seccomp).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Whether PHP starts no programs, and does not write to the app's directories.
    pub is_strict: bool,
    /// The app's directories: with scripts, and with files that they need.
    pub app_paths: Vec<PathBuf>,
    /// Files and directories that it may only read.
    pub read_paths: Vec<PathBuf>,
    /// Files and directories that it may write.
    pub write_paths: Vec<PathBuf>,
    /// The TCP ports that it may connect to; `None`: all.
    pub connect_ports: Option<Vec<u16>>,
}

/// Limits of processes (setrlimit(2)); `None` leaves what was inherited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimits {
    /// Open descriptors.
    pub files: Option<u64>,
    /// Size of a core dump in bytes.
    pub core_bytes: Option<u64>,
    /// Processes and threads of the user, in all.
    pub processes: Option<u64>,
    /// Address space of each process in bytes.
    pub address_space_bytes: Option<u64>,
}

/// Worker mode: a script that boots once and answers many requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerScript {
    /// The absolute path.
    pub script: PathBuf,
    /// The most requests of a worker at a time, each in a coroutine.
    pub concurrency: u32,
    /// How requests are isolated from each other.
    pub isolation: Isolation,
    /// Whether the files are listed that the start of the script reads, if it boots in the zygote.
    pub lists_files: bool,
    /// Whether `exit()` in a request ends the script, with the destructors of all its objects, before the response
    /// does.
    pub exit_ends_script: bool,
    /// Whether the functions of FrankenPHP exist as well.
    pub frankenphp: bool,
    /// The file for the state at the start of each request, for `outboard doctor state`.
    pub state_report: Option<PathBuf>,
    /// Whether it starts a server itself: the zygote runs it up to its server's start, and forks
    /// workers from there.
    pub starts_server: bool,
    /// The arguments of such a program.
    pub arguments: Vec<String>,
    /// The request that the script sees while it boots, as a frame ([`crate::request`]): it is a script of
    /// classic mode that calls `Outboard\snapshot()`. `None`: it sees none.
    pub boot_request: Option<Vec<u8>>,
}

/// Something of the request that a script has read while it booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRead {
    /// The variable: `_SERVER.HTTP_HOST`, `_COOKIE.lang`, or a whole array such as `_GET`.
    pub name: String,
    /// The script that has read it.
    pub file: String,
    /// The line there.
    pub line: u32,
}

/// How requests of a worker are isolated from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// One process serves many requests; the state of the engine is reset between them.
    Reset,
    /// Each request is served by a fork of the booted script, which then exits. The zygote boots
    /// the script up to its call for a request; a worker is ready at once, serves one request, and
    /// announces in `Done` that it exits. No setting of an app: what a rewind falls back to.
    Fork,
    /// As [`Isolation::Fork`], but a worker puts its memory back after a request instead of exiting. Only
    /// where that is impossible it exits, and announces it.
    Rewind,
}

/// How workers are rewound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    /// How the pages are found that a request has written.
    pub writes_by: WritesBy,
    /// The memory that a rewind covers.
    pub snapshot_bytes: u64,
}

/// How a worker learns which pages it has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WritesBy {
    /// The kernel notes writes (userfaultfd(2), since Linux 6.7).
    WriteProtection,
    /// The kernel's page map is read, which takes longer.
    PageMap,
}

impl WritesBy {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteProtection => "write protection",
            Self::PageMap => "page map",
        }
    }
}

/// Supervisor → zygote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Start the engine. The first order; [`Event::Started`] or [`Event::StartFailed`] follows.
    Start {
        /// The settings.
        settings: Box<HostSettings>,
    },
    /// Run a program in place of PHP. The first order to a host, which ends with the program and all that it has
    /// started. The program is reported as the worker 0, and gets signals as such.
    Run {
        /// Those of the app's PHP.
        settings: Box<HostSettings>,
        /// The program.
        command: Command,
    },
    /// Fork a worker. Carries four descriptors: the memory of the ring, what the worker waits on
    /// ([`crate::doorbell::Awaited`]), the doorbell that it rings, its stdout and stderr;
    /// and a fifth one if the app has direct connections: the socket that they come over ([`crate::direct`]).
    Fork {
        /// The number of the worker in events; a supervisor never reuses one.
        worker: u64,
    },
    /// Send a signal to a worker. The zygote is its parent, so the pid cannot be another's.
    Signal {
        /// The worker.
        worker: u64,
        /// `SIGKILL`, or the backtrace signal [`BACKTRACE_SIGNAL`].
        signal: i32,
    },
    /// Set the cores that a worker may run on (sched_setaffinity(2)).
    Place {
        /// The worker.
        worker: u64,
        /// Their numbers; none: the cores that the zygote had when it started.
        cores: Vec<u16>,
    },
    /// Fork a sibling: a zygote with workers of its own, which shares the started engine. Carries two
    /// descriptors: the sibling's end of a new control socket, and its stdout and stderr. The sibling
    /// reports [`Event::Started`] on that socket and takes orders there until it is closed.
    Split {
        /// The number of the sibling in events; a supervisor never reuses one. Workers have others.
        sibling: u64,
    },
    /// Send `SIGKILL` to a sibling, whose workers die with it.
    KillSibling {
        /// The sibling.
        sibling: u64,
    },
}

/// Requests a PHP backtrace of a worker: `SIGUSR2`. A worker that computes writes it at the next
/// interrupt check of the engine. The zygote reads it from outside if the worker waits in a system
/// call or ignores a second order. Either way it appears in the ring.
pub const BACKTRACE_SIGNAL: i32 = 12;

/// Zygote → supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The engine runs; forks are quick from now on.
    Started {
        /// The zygote's process id.
        pid: i32,
        /// `PHP_VERSION`.
        php_version: String,
        /// Whether opcache accepts the SAPI name and has its memory.
        opcache: bool,
        /// The ini file that was read, if any.
        ini_file: Option<PathBuf>,
        /// `post_max_size` in bytes, so that the gateway can warn of unequal limits.
        post_max_bytes: u64,
        /// With [`Isolation::Rewind`], unless the kernel permits none.
        rewind: Option<Rewind>,
        /// Why it permits none.
        rewind_refused: Option<String>,
        /// What the boot has read of a request, with [`Isolation::Fork`] and [`Isolation::Rewind`].
        request_reads: Vec<RequestRead>,
    },
    /// What the start of the script has read, before [`Event::Started`] or [`Event::StartFailed`] if the
    /// script boots in the zygote. Carries a descriptor if files are listed: their list
    /// ([`crate::boot_files`]).
    BootRead {
        /// The keys of other data that it depends on.
        keys: Vec<String>,
        /// Whether all files are listed.
        is_complete: bool,
        /// For how long the script wants to be used; 0: as configured.
        max_age_s: u64,
    },
    /// The engine did not start; the zygote leaves.
    StartFailed {
        /// The error message of PHP.
        message: String,
    },
    /// A worker was forked.
    Forked {
        /// The worker.
        worker: u64,
        /// Its process id.
        pid: i32,
    },
    /// `fork(2)` failed.
    ForkFailed {
        /// The worker.
        worker: u64,
        /// The error.
        message: String,
    },
    /// A worker has exited and was reaped.
    Exited {
        /// The worker.
        worker: u64,
        /// The exit code, if it exited by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// A sibling was forked. Reported by the zygote that forked it, as its failure and its exit are.
    Split {
        /// The sibling.
        sibling: u64,
        /// Its process id.
        pid: i32,
    },
    /// There is no sibling: `fork(2)` failed, or the script of this zygote starts a server.
    SplitFailed {
        /// The sibling.
        sibling: u64,
        /// The error.
        message: String,
    },
    /// A sibling has exited and was reaped; what is left of its workers has been killed.
    SiblingExited {
        /// The sibling.
        sibling: u64,
        /// The exit code, if it exited by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

/// Both ends of a control socket: the supervisor's, and the zygote's (its standard input).
///
/// # Errors
/// `socketpair(2)` fails.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message.
///
/// # Errors
/// `sendmsg(2)` fails; `InvalidInput` if the message is too long.
pub fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    send_with(SendFlags::empty(), socket, message, descriptors)
}

/// The same without waiting for room in a socket that blocks.
///
/// # Errors
/// As [`send`]; `WouldBlock` if there is no room.
pub fn try_send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    send_with(SendFlags::DONTWAIT, socket, message, descriptors)
}

fn send_with<T: Serialize>(
    flags: SendFlags,
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > MESSAGE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the PHP settings are too long to be handed to the host (128 KiB)",
        ));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    let flags = flags | SendFlags::NOSIGNAL;
    let sent = sendmsg(socket, &[IoSlice::new(&text)], &mut ancillary, flags)?;
    debug_assert_eq!(sent, text.len(), "the socket has packets");
    Ok(())
}

/// Receives one message and its descriptors; `None` if the peer has closed the socket.
///
/// # Errors
/// `recvmsg(2)` fails (`WouldBlock` on a non-blocking socket); `InvalidData` for a message that
/// this release does not know.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    TEXT.with_borrow_mut(|text| {
        text.resize(MESSAGE_BYTES, 0);
        receive_into(text, socket)
    })
}

thread_local! {
    /// The buffer for one message; clearing it each time would cost more than most messages.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn receive_into<T: DeserializeOwned>(
    text: &mut [u8],
    socket: impl AsFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(text)], &mut ancillary, flags)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    let message = serde_json::from_slice(&text[..received.bytes])?;
    Ok(Some((message, descriptors)))
}

#[cfg(test)]
mod tests;
