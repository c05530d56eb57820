//! The spawner process: handles requests, starts hosts and reaps them.
//!
//! Called by the hidden command `outboard spawner` with its end of the socket as standard input.
//! Invariants: one thread; every request that has a response is answered, in order; a child is killed and
//! reaped by its handle, so a pid is never reused for another process.

use crate::grants::Grants;
use crate::message::{Request, Response};
use crate::{control_group, log_file, privileges};
use outboard_ring::control::{self, ControlGroup};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How often killed hosts are reaped.
const REAP_KILLED_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// An app has one host, or two with tasks, and twice as many during a reload.
const CHILDREN_MAX: usize = 4096;

/// Serves a gateway until it closes the socket.
///
/// # Errors
/// Standard input is not a socket, or the first request is not to begin.
pub fn run() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin).is_err() {
        return Err(io::Error::other("this command is for `outboard serve` to start"));
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // Signals to the process group of the gateway must not reach the spawner.
    rustix::process::setsid()?;
    rustix::thread::set_name(c"outboard-spawner")?;
    let Some((Request::Begin(grants), _)) = control::receive(&control)? else {
        return Err(io::Error::other("the first request must be Begin"));
    };
    privileges::drop_all_but_needed()?;
    control::send(&control, &Response::Done, &[])?;
    Server { control, grants, children: BTreeMap::new(), exiting: Vec::new(), next: 0 }.serve()
}

/// The same from the first request on, in a thread of a test.
#[cfg(test)]
pub(crate) fn serve(control: OwnedFd, grants: Grants) -> io::Result<()> {
    Server { control, grants, children: BTreeMap::new(), exiting: Vec::new(), next: 0 }.serve()
}

#[derive(Debug)]
struct Server {
    control: OwnedFd,
    grants: Grants,
    children: BTreeMap<u64, Child>,
    /// Killed and not reaped yet, which a busy disk may delay.
    exiting: Vec<Child>,
    next: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            // They exit with this process in any case (PR_SET_PDEATHSIG).
            let _ = child.kill();
        }
    }
}

/// A response and its descriptor, or a failure.
type Outcome = Result<(Response, Option<OwnedFd>), Response>;

impl Server {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            // The gateway learns of the exit of others from their sockets, and requests their status.
            let timeout = (!self.exiting.is_empty()).then_some(&REAP_KILLED_EVERY);
            match poll(&mut [PollFd::new(&self.control, PollFlags::IN)], timeout) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => {
                    let Some((request, descriptors)) = control::receive(&self.control)? else {
                        return Ok(());
                    };
                    if let Some(outcome) = self.handle(request, descriptors) {
                        let (response, opened) = outcome.unwrap_or_else(|failed| (failed, None));
                        let descriptors: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
                        control::send(&self.control, &response, &descriptors)?;
                    }
                }
                Err(error) => return Err(error.into()),
            }
            self.reap();
        }
    }

    /// `None` for a request without a response.
    fn handle(&mut self, request: Request, descriptors: Vec<OwnedFd>) -> Option<Outcome> {
        Some(match request {
            Request::Kill(number) => {
                if let Some(child) = self.children.get_mut(&number) {
                    // Killing a reaped child fails.
                    let _ = child.kill();
                }
                return None;
            }
            Request::Forget(number) => {
                if let Some(mut child) = self.children.remove(&number) {
                    let _ = child.kill();
                    self.exiting.push(child);
                }
                return None;
            }
            Request::Status(number) => {
                let child = self.children.get_mut(&number);
                let status = child.and_then(|child| child.try_wait().ok().flatten());
                Ok((Response::Exited(status.map(ExitStatusExt::into_raw)), None))
            }
            Request::Begin(_) => Err(refused("the spawner has begun already")),
            Request::Start { program, uid, gid, group } => {
                self.start(&program, (uid, gid), group.as_ref(), descriptors)
            }
            Request::Read(path) => self.read(&path),
            Request::Append(path) => self.append(&path),
            Request::Remove(path) => self.remove(&path),
        })
    }

    fn start(
        &mut self,
        program: &Path,
        user: (u32, u32),
        group: Option<&ControlGroup>,
        descriptors: Vec<OwnedFd>,
    ) -> Outcome {
        self.grants.check_start(program, user).map_err(refused)?;
        let Ok([input, output]) = <[OwnedFd; 2]>::try_from(descriptors) else {
            return Err(refused("a start comes with two descriptors"));
        };
        if self.children.len() + self.exiting.len() >= CHILDREN_MAX {
            return Err(refused("there are too many PHP hosts"));
        }
        let second = output.try_clone().map_err(failed)?;
        let log = output.try_clone().map_err(failed)?;
        let mut child = Command::new(program)
            .arg("--user")
            .arg(format!("{}:{}", user.0, user.1))
            .env_clear()
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(second))
            .spawn()
            .map_err(failed)?;
        control_group::place_or_print(group, child.id(), &log);
        let exit = match exit_of(&child) {
            Ok(exit) => exit,
            Err(error) => {
                let _ = child.kill();
                self.exiting.push(child);
                return Err(failed(error));
            }
        };
        let (number, pid) = (self.next, child.id());
        self.next += 1;
        self.children.insert(number, child);
        Ok((Response::Started { number, pid }, Some(exit)))
    }

    fn read(&self, path: &Path) -> Outcome {
        self.grants.check_file(path).map_err(refused)?;
        let file = File::open(path).map_err(failed)?;
        Ok((Response::Opened, Some(file.into())))
    }

    fn append(&self, path: &Path) -> Outcome {
        self.grants.check_log(path).map_err(refused)?;
        let file = log_file::open_log(path).map_err(failed)?;
        Ok((Response::Opened, Some(file.into())))
    }

    fn remove(&self, path: &Path) -> Outcome {
        self.grants.check_leftover(path).map_err(refused)?;
        std::fs::remove_file(path).map_err(failed)?;
        Ok((Response::Done, None))
    }

    /// Reaps children. The handle of one that is not forgotten stays, so that its number is not reused.
    fn reap(&mut self) {
        for child in self.children.values_mut() {
            let _ = child.try_wait();
        }
        self.exiting.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

/// A descriptor that is readable once the child has exited. The child is not reaped yet, so the pid is its
/// own.
fn exit_of(child: &Child) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn refused(why: impl Into<String>) -> Response {
    Response::Failed { why: why.into(), errno: None }
}

fn failed(error: io::Error) -> Response {
    Response::Failed { why: error.to_string(), errno: error.raw_os_error() }
}
