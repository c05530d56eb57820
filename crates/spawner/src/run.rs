//! The process: hears orders, starts hosts, reaps them.
//!
//! Called by the hidden command `outboard spawner` with its end of the socket as standard input.
//! Invariants: one thread; every order is answered, in turn; a child is killed and reaped by the
//! handle that it was started with, so no number can come to mean another process.

use crate::grants::Grants;
use crate::order::{Answer, Order};
use crate::{place, privileges};
use outboard_ring::control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How long a host that has ended by itself may stay a zombie.
const REAP_EVERY: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Serves a gateway until that is gone.
///
/// # Errors
/// The socket is none, or the first order is not to begin.
pub fn run() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin).is_err() {
        return Err(io::Error::other("this command is for `outboard serve` to start"));
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // What a terminal or a service manager says to the gateway's process group is not for it.
    rustix::process::setsid()?;
    rustix::thread::set_name(c"outboard-spawner")?;
    let Some((Order::Begin(grants), _)) = control::receive(&control)? else {
        return Err(io::Error::other("the first order must be to begin"));
    };
    privileges::keep_what_is_needed()?;
    control::send(&control, &Answer::Done, &[])?;
    Server { control, grants, children: BTreeMap::new(), leaving: Vec::new(), next: 0 }.serve()
}

#[derive(Debug)]
struct Server {
    control: OwnedFd,
    grants: Grants,
    children: BTreeMap<u64, Child>,
    /// Killed, and not reaped yet: nobody waits for them, a busy disk may hold them up.
    leaving: Vec<Child>,
    next: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in self.children.values_mut() {
            // They leave with this process in any case (PR_SET_PDEATHSIG).
            let _ = child.kill();
        }
    }
}

/// What is answered, and the descriptor that goes with it.
type Answered = Result<(Answer, Option<OwnedFd>), Answer>;

impl Server {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let ready = poll(&mut [PollFd::new(&self.control, PollFlags::IN)], Some(&REAP_EVERY));
            match ready {
                Ok(ready) => {
                    self.reap();
                    if ready == 0 {
                        continue;
                    }
                    let Some((order, descriptors)) = control::receive(&self.control)? else {
                        return Ok(());
                    };
                    let (answer, opened) =
                        self.obey(order, descriptors).unwrap_or_else(|failed| (failed, None));
                    let descriptors: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
                    control::send(&self.control, &answer, &descriptors)?;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn obey(&mut self, order: Order, descriptors: Vec<OwnedFd>) -> Answered {
        match order {
            Order::Begin(_) => Err(refused("it has begun")),
            Order::Start { program, uid, gid } => {
                self.grants.check_start(&program, (uid, gid)).map_err(refused)?;
                self.start(&program, (uid, gid), descriptors)
            }
            Order::Kill(number) => {
                if let Some(child) = self.children.get_mut(&number) {
                    child.kill().map_err(failed)?;
                }
                Ok((Answer::Done, None))
            }
            Order::Forget(number) => {
                if let Some(mut child) = self.children.remove(&number) {
                    // It fails for one that was reaped.
                    let _ = child.kill();
                    self.leaving.push(child);
                }
                Ok((Answer::Done, None))
            }
            Order::Look(number) => {
                let child = self.children.get_mut(&number);
                let ended = child.and_then(|child| child.try_wait().ok().flatten());
                Ok((Answer::Ended(ended.map(ExitStatusExt::into_raw)), None))
            }
            Order::Read(path) => self.read(&path),
            Order::Append(path) => self.append(&path),
            Order::Remove(path) => {
                self.grants.check_leftover(&path).map_err(refused)?;
                std::fs::remove_file(path).map_err(failed)?;
                Ok((Answer::Done, None))
            }
        }
    }

    fn start(&mut self, program: &Path, user: (u32, u32), descriptors: Vec<OwnedFd>) -> Answered {
        let Ok([input, output]) = <[OwnedFd; 2]>::try_from(descriptors) else {
            return Err(refused("a start comes with two descriptors"));
        };
        let second = output.try_clone().map_err(failed)?;
        let child = Command::new(program)
            .arg("--user")
            .arg(format!("{}:{}", user.0, user.1))
            .env_clear()
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .stderr(Stdio::from(second))
            .spawn()
            .map_err(failed)?;
        let (number, pid) = (self.next, child.id());
        self.next += 1;
        self.children.insert(number, child);
        Ok((Answer::Started { number, pid }, None))
    }

    fn read(&self, path: &Path) -> Answered {
        self.grants.check_file(path).map_err(refused)?;
        let file = File::open(path).map_err(failed)?;
        Ok((Answer::Opened, Some(file.into())))
    }

    fn append(&self, path: &Path) -> Answered {
        self.grants.check_log(path).map_err(refused)?;
        let file = place::open_log(path).map_err(failed)?;
        Ok((Answer::Opened, Some(file.into())))
    }

    /// How those ended that are not forgotten the gateway may ask later.
    fn reap(&mut self) {
        for child in self.children.values_mut() {
            let _ = child.try_wait();
        }
        self.leaving.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

fn refused(why: impl Into<String>) -> Answer {
    Answer::Failed { why: why.into(), errno: None }
}

fn failed(error: io::Error) -> Answer {
    Answer::Failed { why: error.to_string(), errno: error.raw_os_error() }
}
