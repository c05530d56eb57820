//! The control socket between the supervisor and a zygote.
//!
//! A `SOCK_SEQPACKET` pair: one JSON message a packet, descriptors as `SCM_RIGHTS`. It carries
//! orders and events of process life only, never requests, so readability wins over speed.
//! Invariant: a message that cannot be understood is an error of the peer, never guessed.

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

/// Largest message; settings with very many ini values are the longest.
const MESSAGE_BYTES: usize = 128 * 1024;
const MOST_DESCRIPTORS: usize = 4;

/// What a zygote needs to know to start PHP for one app.
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
    /// Environment of the workers, complete: nothing is inherited beyond it.
    pub env: BTreeMap<String, String>,
    /// User and group to run as, by number; `None` stays as started.
    pub run_as: Option<(u32, u32)>,
    /// Whether nothing that PHP starts may gain rights by its file (`PR_SET_NO_NEW_PRIVS`).
    pub no_new_privileges: bool,
    /// What the kernel lets PHP's processes have.
    pub rlimits: Rlimits,
    /// The resident script; `None` is classic mode.
    pub worker: Option<WorkerScript>,
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
    /// Its absolute path.
    pub script: PathBuf,
    /// Requests that a worker may have at a time, each in a coroutine.
    pub concurrency: u32,
    /// What keeps one request from the next.
    pub isolation: Isolation,
    /// Whether the functions of FrankenPHP's convention are there as well.
    pub frankenphp: bool,
    /// Where the state that each request finds is written down, for `outboard doctor state`.
    pub state_report: Option<PathBuf>,
}

/// What keeps a worker's requests apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// One process answers many; the engine's state is reset between them.
    Reset,
    /// Each is answered by a fork of the booted script, which then ends. The zygote boots the
    /// script and stops at its call for a request; a worker is ready at once, answers one
    /// request, and says in `Done` that it leaves.
    Fork,
}

/// Supervisor → zygote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Start the engine. The first order; answered by [`Event::Started`] or
    /// [`Event::StartFailed`].
    Start {
        /// How.
        settings: Box<HostSettings>,
    },
    /// Fork a worker. Carries four descriptors: ring memory, where the worker waits to be rung
    /// ([`crate::doorbell::Awaited`]), the doorbell that it rings, and where its stdout and stderr
    /// go.
    Fork {
        /// The number that events about this worker carry; never used twice by a supervisor.
        worker: u64,
    },
    /// Send a signal to a worker. The zygote is its parent, so the pid cannot be another's.
    Signal {
        /// Whom.
        worker: u64,
        /// `SIGKILL`, or the backtrace signal [`BACKTRACE_SIGNAL`].
        signal: i32,
    },
}

/// Asks for a worker's PHP backtrace: `SIGUSR2`. A worker that computes writes it at the engine's
/// next interrupt check; of one that waits in a system call, or does not answer a second order,
/// the zygote reads it from outside. Either way it appears in the worker's ring.
pub const BACKTRACE_SIGNAL: i32 = 12;

/// Zygote → supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The engine runs; forks are quick from now on.
    Started {
        /// `PHP_VERSION`.
        php_version: String,
        /// Whether opcache took the SAPI name and has its memory.
        opcache: bool,
        /// The ini file that was read, if any.
        ini_file: Option<PathBuf>,
        /// `post_max_size` in bytes, so that the gateway can warn of unequal limits.
        post_max_bytes: u64,
        /// What PHP printed while starting (warnings), empty when nothing.
        messages: String,
    },
    /// The engine did not start; the zygote leaves.
    StartFailed {
        /// PHP's own words.
        message: String,
    },
    /// A worker was forked.
    Forked {
        /// Which.
        worker: u64,
        /// Its process id.
        pid: i32,
    },
    /// `fork(2)` failed.
    ForkFailed {
        /// Which.
        worker: u64,
        /// Why.
        message: String,
    },
    /// A worker has gone and was reaped.
    Exited {
        /// Which.
        worker: u64,
        /// Its exit code, when it left by itself.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

/// Both ends of a control socket: the supervisor's, and the zygote's (its standard input).
///
/// # Errors
/// What `socketpair(2)` reports.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends one message.
///
/// # Errors
/// What `sendmsg(2)` reports; `InvalidInput` for a message that is too long.
pub fn send<T: Serialize>(
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
    }
    sendmsg(socket, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message and the descriptors that came with it; `None` when the peer has closed.
///
/// # Errors
/// What `recvmsg(2)` reports (`WouldBlock` on a non-blocking socket); `InvalidData` for a message
/// that this release does not know.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    TEXT.with_borrow_mut(|text| {
        text.resize(MESSAGE_BYTES, 0);
        receive_into(text, socket)
    })
}

thread_local! {
    /// For one message; clearing it for each would cost more than most messages.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn receive_into<T: DeserializeOwned>(
    text: &mut [u8],
    socket: impl AsFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
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
