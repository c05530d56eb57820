//! The zygote process as the gateway sees it: its start, orders, events and end.
//!
//! Called by the manager of a pool. Invariants: the host sees the control socket (standard input),
//! one output pipe and nothing else of the gateway's environment; a dropped [`Zygote`] leaves
//! neither an orphan nor a zombie, and its workers die with it (`PR_SET_PDEATHSIG`).
//!
//! The kernel ties that signal to the *thread* which forked (prctl(2)): spawn from a thread that
//! lives as long as the gateway does.

use outboard_ring::control::{self, Event, HostSettings, Order};
use outboard_spawner::Spawner;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// A started PHP host.
#[derive(Debug)]
pub struct Zygote {
    control: OwnedFd,
    process: Process,
}

/// The process that started it.
#[derive(Debug)]
enum Process {
    /// This process.
    Own(Child),
    /// The spawner, as another user.
    Spawned(outboard_spawner::Child),
}

/// The user that a zygote runs as, and the spawner that may start it.
#[derive(Debug, Clone)]
pub struct AsUser {
    /// The spawner.
    pub spawner: Arc<Spawner>,
    /// User and group, by number.
    pub user: (u32, u32),
}

/// The result of [`Zygote::receive`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// An event; there may be more.
    Event(Event),
    /// Nothing more for now; wait until the socket is readable.
    Nothing,
    /// The zygote has exited or is exiting.
    Closed,
}

impl Zygote {
    /// Starts the host and orders it to start PHP; [`Event::Started`] or [`Event::StartFailed`]
    /// follows. The second value is the non-blocking read end of what the zygote prints: PHP's
    /// own start-up messages, and the dynamic linker's when a library is missing.
    ///
    /// A host that exits at once is not an error here: it shows as [`Received::Closed`], and its
    /// output has its last messages.
    ///
    /// # Errors
    /// [`SpawnError`]: what failed, and what to do about it.
    pub fn spawn(
        host_binary: &Path,
        settings: HostSettings,
    ) -> Result<(Self, OwnedFd), SpawnError> {
        Self::start(settings, |of_host, output| {
            let second = output.try_clone().map_err(SpawnError::Descriptors)?;
            let child = Command::new(host_binary)
                .env_clear()
                .stdin(Stdio::from(of_host))
                .stdout(Stdio::from(output))
                .stderr(Stdio::from(second))
                .spawn();
            child.map(Process::Own).map_err(|error| SpawnError::of_exec(host_binary, error))
        })
    }

    /// The same, as another user. Waits for the spawner.
    ///
    /// # Errors
    /// As [`Zygote::spawn`], or that this user was not granted.
    pub fn spawn_as(
        user: &AsUser,
        host_binary: &Path,
        settings: HostSettings,
    ) -> Result<(Self, OwnedFd), SpawnError> {
        Self::start(settings, |of_host, output| {
            let AsUser { spawner, user } = user;
            let child = spawner.spawn(host_binary, *user, of_host.as_fd(), output.as_fd());
            child.map(Process::Spawned).map_err(|error| SpawnError::of_exec(host_binary, error))
        })
    }

    fn start(
        settings: HostSettings,
        process: impl FnOnce(OwnedFd, OwnedFd) -> Result<Process, SpawnError>,
    ) -> Result<(Self, OwnedFd), SpawnError> {
        let (control, of_host) = control_sockets().map_err(SpawnError::Descriptors)?;
        let (output, output_end) = output_pipe().map_err(SpawnError::Descriptors)?;
        let zygote = Self { control, process: process(of_host, output_end)? };
        match zygote.order(&Order::Start { settings: Box::new(settings) }, &[]) {
            Err(error) if !is_hang_up(&error) => Err(SpawnError::Settings(error)),
            _ => Ok((zygote, output)),
        }
    }

    /// The non-blocking control socket, for epoll.
    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// The next event. Call until it returns [`Received::Nothing`].
    ///
    /// # Errors
    /// What `recvmsg(2)` reports; `InvalidData` for a message that this release does not know.
    /// Either way the zygote is beyond understanding: drop it.
    pub fn receive(&self) -> io::Result<Received> {
        loop {
            return match control::receive(&self.control) {
                Ok(Some((event, _))) => Ok(Received::Event(event)),
                Ok(None) => Ok(Received::Closed),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
                Err(error) if is_hang_up(&error) => Ok(Received::Closed),
                Err(error) => Err(error),
            };
        }
    }

    /// Orders a worker. `descriptors` are: ring memory, where the worker waits to be rung, what it
    /// rings, and where its output goes. Answered by [`Event::Forked`] or
    /// [`Event::ForkFailed`].
    ///
    /// # Errors
    /// What `sendmsg(2)` reports; `WouldBlock` when the zygote has stopped taking orders.
    pub fn fork(&self, worker: u64, descriptors: [BorrowedFd<'_>; 4]) -> io::Result<()> {
        self.order(&Order::Fork { worker }, &descriptors)
    }

    /// Makes the zygote send `signal` to a worker; ignored for a worker that has exited.
    ///
    /// # Errors
    /// As [`Zygote::fork`].
    pub fn signal(&self, worker: u64, signal: i32) -> io::Result<()> {
        self.order(&Order::Signal { worker, signal }, &[])
    }

    fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            match control::send(&self.control, order, descriptors) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Kills the zygote with `SIGKILL`, and thereby its workers; [`Zygote::has_exited`] follows.
    ///
    /// # Errors
    /// What `kill(2)` reports; a zygote that has been reaped is no error.
    pub fn kill(&mut self) -> io::Result<()> {
        match &mut self.process {
            Process::Own(child) => child.kill(),
            Process::Spawned(child) => {
                child.kill();
                Ok(())
            }
        }
    }

    /// Whether the zygote has exited, and reaps it then; never waits.
    pub fn has_exited(&mut self) -> bool {
        match &mut self.process {
            Process::Own(child) => matches!(child.try_wait(), Ok(Some(_))),
            Process::Spawned(child) => child.has_exited(),
        }
    }

    /// The zygote's process id.
    pub fn pid(&self) -> u32 {
        match &self.process {
            Process::Own(child) => child.id(),
            Process::Spawned(child) => child.id(),
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // The spawner kills its own children.
        if let Process::Own(child) = &mut self.process {
            // Both fail only for a child that was reaped.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn control_sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let (control, of_host) = control::pair()?;
    rustix::io::ioctl_fionbio(&control, true)?;
    Ok((control, of_host))
}

/// A pipe for the output of processes: the read end, non-blocking, and the write end, which blocks,
/// because PHP does not expect `EAGAIN` from its standard error.
///
/// # Errors
/// What `pipe2(2)` reports.
pub fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Why a zygote could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// No socket or pipe could be made.
    Descriptors(io::Error),
    /// There is no host at this path.
    Missing(PathBuf),
    /// The host is there but must not, or cannot, be executed.
    Exec {
        /// The host.
        path: PathBuf,
        /// What `execve(2)` or `fork(2)` reported.
        error: io::Error,
    },
    /// The settings could not be handed over.
    Settings(io::Error),
}

impl SpawnError {
    fn of_exec(path: &Path, error: io::Error) -> Self {
        // execve(2) also says ENOENT of a file that is there but whose interpreter is not.
        if error.kind() == io::ErrorKind::NotFound && !path.exists() {
            Self::Missing(path.to_owned())
        } else {
            Self::Exec { path: path.to_owned(), error }
        }
    }

    /// What the operator can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Descriptors(_) => "raise the limit of open files (ulimit -n, LimitNOFILE=)",
            Self::Missing(_) => {
                "install/build it: `cargo build --release -p outboard-php` makes it, next to \
                 `outboard`"
            }
            Self::Exec { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                "make it executable (chmod +x), on a file system that is not mounted noexec"
            }
            Self::Exec { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                "its program interpreter is missing: build it on, or for, this system"
            }
            Self::Exec { error, .. } if error.kind() == io::ErrorKind::Unsupported => {
                "what the server may do as root is settled when root starts it"
            }
            Self::Exec { .. } => "build it again on, or for, this system",
            Self::Settings(_) => "hand PHP fewer ini values and environment variables",
        }
    }
}

impl std::fmt::Display for SpawnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Descriptors(error) => write!(f, "no socket or pipe for the PHP host: {error}")?,
            Self::Missing(path) => write!(f, "the PHP host {} is missing", path.display())?,
            Self::Exec { path, error } => {
                write!(f, "the PHP host {} cannot be started: {error}", path.display())?;
            }
            Self::Settings(error) => write!(f, "the PHP host did not take its settings: {error}")?,
        }
        write!(f, "; {}", self.hint())
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Descriptors(error) | Self::Exec { error, .. } | Self::Settings(error) => {
                Some(error)
            }
            Self::Missing(_) => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
