//! The zygote process as the gateway sees it.
#![allow(missing_docs)]

use outboard_ring::control::{self, Event, HostSettings, Order};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

#[derive(Debug)]
pub struct Zygote {
    control: OwnedFd,
    child: Child,
}

#[derive(Debug)]
pub enum Received {
    Event(Event),
    Nothing,
    Closed,
}

impl Zygote {
    pub fn spawn(host_binary: &Path, settings: HostSettings) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = control::pair()?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&read, true)?;
        let child = Command::new(host_binary)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(write.try_clone()?))
            .stderr(Stdio::from(write))
            .spawn()?;
        let zygote = Self { control: ours, child };
        control::send(&zygote.control, &Order::Start { settings }, &[])?;
        Ok((zygote, read))
    }

    pub fn control_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    pub fn receive(&self) -> io::Result<Received> {
        match control::receive(&self.control) {
            Ok(Some((event, _))) => Ok(Received::Event(event)),
            Ok(None) => Ok(Received::Closed),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(Received::Closed),
            Err(error) => Err(error),
        }
    }

    pub fn fork(&self, worker: u64, descriptors: [BorrowedFd<'_>; 4]) -> io::Result<()> {
        control::send(&self.control, &Order::Fork { worker }, &descriptors)
    }

    pub fn signal(&self, worker: u64, signal: i32) -> io::Result<()> {
        control::send(&self.control, &Order::Signal { worker, signal }, &[])
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
