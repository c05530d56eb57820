//! The zygote process as the gateway sees it: its start, orders, events and end.
//!
//! Called by the manager of a pool. Invariants: the host sees the control socket (standard input),
//! one output pipe and nothing else of the gateway's environment; a dropped [`Zygote`] leaves
//! neither an orphan nor a zombie, and its workers die with it (`PR_SET_PDEATHSIG`).
//!
//! The kernel ties that signal to the *thread* which forked (prctl(2)): spawn from a thread that
//! lives as long as the gateway does.
//!
//! The first zygote of a pool is a process of its own. It forks the others, its siblings, so that PHP is
//! started once. Only their parent can signal them: its owner orders that on their owners' request.

mod sibling;
mod spawn_error;

use outboard_ring::control::{self, Event, HostSettings, Order};
use outboard_spawner::{Spawner, control_group};
use rustix::pipe::{PipeFlags, pipe_with};
use sibling::Sibling;
pub use sibling::SiblingEnds;
pub use spawn_error::SpawnError;
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// A started PHP host.
#[derive(Debug)]
pub struct Zygote {
    control: OwnedFd,
    /// Those of the last event.
    descriptors: RefCell<Vec<OwnedFd>>,
    process: Process,
}

/// The process that started it.
#[derive(Debug)]
enum Process {
    /// This process.
    Own(Child),
    /// The spawner, as another user.
    Spawned(outboard_spawner::Child),
    /// The first zygote of the pool.
    Sibling(Sibling),
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
        Self::spawn_by(None, host_binary, &Order::Start { settings: Box::new(settings) })
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
        Self::spawn_by(Some(user), host_binary, &Order::Start { settings: Box::new(settings) })
    }

    /// The same with another first order, for hosts without PHP.
    pub(crate) fn spawn_by(
        user: Option<&AsUser>,
        host_binary: &Path,
        order: &Order,
    ) -> Result<(Self, OwnedFd), SpawnError> {
        let group = match order {
            Order::Start { settings } | Order::Run { settings, .. } => &settings.control_group,
            _ => &None,
        };
        let group = group.as_ref();
        let failed = |error| SpawnError::of_exec(host_binary, error);
        Self::start(order, |of_host, output| {
            if let Some(AsUser { spawner, user }) = user {
                let (input, output) = (of_host.as_fd(), output.as_fd());
                let child = spawner.spawn(host_binary, *user, group, input, output);
                return child.map(Process::Spawned).map_err(failed);
            }
            let log = output.try_clone().map_err(SpawnError::Descriptors)?;
            let second = output.try_clone().map_err(SpawnError::Descriptors)?;
            let child = Command::new(host_binary)
                .env_clear()
                .stdin(Stdio::from(of_host))
                .stdout(Stdio::from(output))
                .stderr(Stdio::from(second))
                .spawn()
                .map_err(failed)?;
            control_group::place_or_print(group, child.id(), &log);
            Ok(Process::Own(child))
        })
    }

    fn start(
        order: &Order,
        process: impl FnOnce(OwnedFd, OwnedFd) -> Result<Process, SpawnError>,
    ) -> Result<(Self, OwnedFd), SpawnError> {
        let (control, of_host) = control_sockets().map_err(SpawnError::Descriptors)?;
        let (output, output_end) = output_pipe().map_err(SpawnError::Descriptors)?;
        let process = process(of_host, output_end)?;
        let zygote = Self { control, descriptors: RefCell::default(), process };
        match zygote.order(order, &[]) {
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
                Ok(Some((event, descriptors))) => {
                    self.descriptors.replace(descriptors);
                    Ok(Received::Event(self.learn(event)))
                }
                Ok(None) => Ok(Received::Closed),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
                Err(error) if is_hang_up(&error) => Ok(Received::Closed),
                Err(error) => Err(error),
            };
        }
    }

    /// The descriptors that the last event came with.
    pub fn take_descriptors(&self) -> Vec<OwnedFd> {
        self.descriptors.take()
    }

    /// A sibling's process id is in its report of the start.
    fn learn(&self, event: Event) -> Event {
        if let (Process::Sibling(sibling), Event::Started { pid, .. }) = (&self.process, &event) {
            sibling.started(*pid);
        }
        event
    }

    /// Orders a worker. `descriptors` are: ring memory, where the worker waits to be rung, what it
    /// rings, where its output goes, and perhaps the socket that direct connections come over. Answered by [`Event::Forked`] or
    /// [`Event::ForkFailed`].
    ///
    /// # Errors
    /// What `sendmsg(2)` reports; `WouldBlock` when the zygote has stopped taking orders.
    pub fn fork(&self, worker: u64, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.order(&Order::Fork { worker }, descriptors)
    }

    /// Makes the zygote send `signal` to a worker; ignored for a worker that has exited.
    ///
    /// # Errors
    /// As [`Zygote::fork`].
    pub fn signal(&self, worker: u64, signal: i32) -> io::Result<()> {
        self.order(&Order::Signal { worker, signal }, &[])
    }

    /// Makes the zygote move a worker to these cores, without any: to those that it had at its own start
    /// (sched_setaffinity(2)). Ignored for a worker that has exited; the zygote prints why a core is not
    /// possible.
    ///
    /// # Errors
    /// As [`Zygote::fork`].
    pub fn place(&self, worker: u64, cores: &[u16]) -> io::Result<()> {
        self.order(&Order::Place { worker, cores: cores.to_vec() }, &[])
    }

    /// Orders a sibling, on the first zygote of a pool. Answered by [`Event::Split`] or
    /// [`Event::SplitFailed`]; either way, and if this fails, the sibling's own [`Zygote`] has
    /// [`Received::Closed`] once there is no process.
    ///
    /// # Errors
    /// As [`Zygote::fork`].
    pub fn split(&self, sibling: u64, ends: SiblingEnds) -> io::Result<()> {
        self.order(&Order::Split { sibling }, &ends.descriptors())
    }

    /// Makes the first zygote kill a sibling with `SIGKILL`; ignored for one that has exited.
    ///
    /// # Errors
    /// As [`Zygote::fork`].
    pub fn kill_sibling(&self, sibling: u64) -> io::Result<()> {
        self.order(&Order::KillSibling { sibling }, &[])
    }

    fn order(&self, order: &Order, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            match control::send(&self.control, order, descriptors) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Kills the zygote with `SIGKILL`, and thereby its workers; [`Zygote::has_exited`] follows. A
    /// sibling's kill is requested from the owner of the first zygote ([`Zygote::sibling`]).
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
            Process::Sibling(sibling) => {
                sibling.kill();
                Ok(())
            }
        }
    }

    /// Whether the zygote has exited, and reaps it then; never waits. A sibling has when no process has
    /// its end of the control socket; the first zygote reaps it.
    pub fn has_exited(&mut self) -> bool {
        match &mut self.process {
            Process::Own(child) => matches!(child.try_wait(), Ok(Some(_))),
            Process::Spawned(child) => child.has_exited(),
            Process::Sibling(_) => sibling::is_closed(&self.control),
        }
    }

    /// How the zygote has exited; `None` if it has not, or is a sibling, which the first zygote reaps. Waits for
    /// the spawner, if that has started it.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        match &mut self.process {
            Process::Own(child) => child.try_wait().ok().flatten(),
            Process::Spawned(child) => child.exit_status(),
            Process::Sibling(_) => None,
        }
    }

    /// The zygote's process id; `None` for a sibling until it has reported its start.
    pub fn pid(&self) -> Option<u32> {
        match &self.process {
            Process::Own(child) => Some(child.id()),
            Process::Spawned(child) => Some(child.id()),
            Process::Sibling(sibling) => sibling.pid(),
        }
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        match &mut self.process {
            Process::Own(child) => {
                // Both fail only for a child that was reaped.
                let _ = child.kill();
                let _ = child.wait();
            }
            // The spawner kills its own children.
            Process::Spawned(_) => {}
            // A sibling exits when its socket closes, unless it is stopped.
            Process::Sibling(sibling) => {
                if !sibling::is_closed(&self.control) {
                    sibling.kill();
                }
            }
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

#[cfg(test)]
pub(crate) mod tests;
