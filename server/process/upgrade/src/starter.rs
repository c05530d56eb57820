//! [`Starter`]: what starts a successor; for a server that drops root's privileges a process of its own, which
//! keeps them.
//!
//! Created before the server does anything else, since the successor needs the rights that this one had at its
//! start. The hidden command `outboard starter` is the process. Invariants: it does nothing but start that
//! one program, with the arguments and the environment of its own start; it ends with its gateway; there is
//! one successor at a time.

use crate::launch::Launch;
use crate::message::{FromStarter, ToStarter};
use crate::successor::Successor;
use outboard_ring::control;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::process::{Child, Stdio};

/// The hidden command of `outboard` that calls [`run`].
pub const COMMAND: &str = "starter";

/// A starter only forks, which takes longer only on a broken machine.
const TIMEOUT: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };
/// How often a successor that has ended is reaped.
const REAP_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// See the module.
#[derive(Debug)]
pub struct Starter(Kind);

#[derive(Debug)]
enum Kind {
    /// The server itself: it keeps the user that started it.
    Own {
        launch: Launch,
        child: RefCell<Option<Child>>,
    },
    Process {
        control: OwnedFd,
        _process: Child,
    },
}

impl Starter {
    /// A starter for the program that this process runs.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn new(launch: Launch) -> io::Result<Self> {
        if !geteuid().is_root() {
            return Ok(Self(Kind::Own { launch, child: RefCell::default() }));
        }
        let (control, of_starter) = control::pair()?;
        let process = launch
            .command()
            .arg(COMMAND)
            .arg("--")
            .args(launch.of_starter())
            .stdin(Stdio::from(of_starter))
            // Those of the successor come with the order to start it.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(Kind::Process { control, _process: process }))
    }

    /// Starts a successor, with the standard output and error of this process.
    ///
    /// # Errors
    /// The program cannot be started, or the starter has ended.
    pub fn start(&self) -> io::Result<Successor> {
        let (control, of_successor) = control::pair()?;
        let pid = match &self.0 {
            Kind::Own { launch, child } => {
                let standard = [
                    of_successor,
                    rustix::stdio::stdout().try_clone_to_owned()?,
                    rustix::stdio::stderr().try_clone_to_owned()?,
                ];
                let started = launch.start(standard)?;
                let pid = started.id();
                child.replace(Some(started));
                pid
            }
            Kind::Process { control, .. } => order_start(control, of_successor.as_fd())?,
        };
        Successor::new(control, pid)
    }

    /// Kills the successor, and reaps it.
    pub fn kill(&self) {
        match &self.0 {
            Kind::Own { child, .. } => {
                if let Some(mut child) = child.take() {
                    let _ = child.kill();
                    // Killed, it ends within milliseconds.
                    let _ = child.wait();
                }
            }
            // Without the starter it is out of reach; it gives up by itself.
            Kind::Process { control, .. } => {
                let _ = control::try_send(control, &ToStarter::Kill, &[]);
            }
        }
    }
}

fn order_start(control: &OwnedFd, successor: BorrowedFd<'_>) -> io::Result<u32> {
    let standard = [successor, rustix::stdio::stdout(), rustix::stdio::stderr()];
    control::try_send(control, &ToStarter::Start, &standard)?;
    if poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&TIMEOUT))? == 0 {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the starter does not respond"));
    }
    match control::receive(control)? {
        Some((FromStarter::Started { pid }, _)) => Ok(pid),
        Some((FromStarter::Failed { why }, _)) => Err(io::Error::other(why)),
        None => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the starter has ended")),
    }
}

/// The process: starts successors with these arguments until the gateway has ended.
///
/// # Errors
/// Standard input is not a socket, or it fails.
pub fn run(title: OsString, arguments: Vec<OsString>) -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    if rustix::net::sockopt::socket_type(stdin).is_err() {
        return Err(io::Error::other("this command is for `outboard serve` to start"));
    }
    let control = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::thread::set_name(c"outboard-starter")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let launch = Launch::of(title, arguments)?;
    let mut child: Option<Child> = None;
    loop {
        let timeout = child.is_some().then_some(&REAP_EVERY);
        match poll(&mut [PollFd::new(&control, PollFlags::IN)], timeout) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                let Some((order, standard)) = control::receive(&control)? else { return Ok(()) };
                match order {
                    ToStarter::Start => {
                        reap(&mut child);
                        let started = start(&launch, &mut child, standard);
                        let response = match started {
                            Ok(pid) => FromStarter::Started { pid },
                            Err(error) => FromStarter::Failed { why: error.to_string() },
                        };
                        control::send(&control, &response, &[])?;
                    }
                    ToStarter::Kill => drop(child.as_mut().map(Child::kill)),
                }
            }
            Err(error) => return Err(error.into()),
        }
        reap(&mut child);
    }
}

fn start(launch: &Launch, child: &mut Option<Child>, standard: Vec<OwnedFd>) -> io::Result<u32> {
    if child.is_some() {
        return Err(io::Error::other("another upgrade is not over yet"));
    }
    let standard = <[OwnedFd; 3]>::try_from(standard)
        .map_err(|_| io::Error::other("a start comes with three descriptors"))?;
    let program = launch.program().display();
    let started = launch.start(standard).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot start {program}: {error}"))
    })?;
    Ok(child.insert(started).id())
}

fn reap(child: &mut Option<Child>) {
    if child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
        *child = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply to an order to start, and what the starter has received.
    fn ordered(reply: Option<FromStarter>) -> (io::Result<u32>, Option<usize>) {
        let (control, starter) = control::pair().unwrap();
        let (_gateway, of_successor) = control::pair().unwrap();
        let is_there = reply.is_some();
        if let Some(reply) = reply {
            control::send(&starter, &reply, &[]).unwrap();
        }
        let starter = is_there.then_some(starter);
        let started = order_start(&control, of_successor.as_fd());
        let received = starter.and_then(|starter| control::receive(&starter).unwrap());
        let descriptors = received.map(|(order, descriptors)| {
            assert!(matches!(order, ToStarter::Start));
            descriptors.len()
        });
        (started, descriptors)
    }

    #[test]
    fn a_successor_is_started_with_its_socket_and_the_outputs() {
        let (started, descriptors) = ordered(Some(FromStarter::Started { pid: 7 }));
        assert_eq!((started.unwrap(), descriptors), (7, Some(3)));
    }

    #[test]
    fn a_start_that_fails_is_an_error_with_its_reason() {
        let (failed, _) = ordered(Some(FromStarter::Failed { why: "no such file".to_owned() }));
        assert_eq!(failed.unwrap_err().to_string(), "no such file");
        let (ended, _) = ordered(None);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn one_successor_is_started_at_a_time_and_with_all_descriptors() {
        let launch = Launch::of("outboard".into(), Vec::new()).unwrap();
        let error = start(&launch, &mut None, Vec::new()).unwrap_err();
        assert!(error.to_string().contains("three descriptors"), "{error}");
        let mut child = Some(std::process::Command::new("true").spawn().unwrap());
        let error = start(&launch, &mut child, Vec::new()).unwrap_err();
        assert!(error.to_string().contains("not over yet"), "{error}");
        while child.is_some() {
            reap(&mut child);
            std::thread::yield_now();
        }
    }
}
