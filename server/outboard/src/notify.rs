//! Notifications to the service manager (sd_notify(3)) and sockets that it passes
//! (sd_listen_fds(3)).
//!
//! Used by `outboard serve`. Without `NOTIFY_SOCKET` or `LISTEN_FDS` in the environment there are no
//! notifications and no sockets. A failed notification is not an error: the manager has time-outs.

use outboard_gateway::server_event::ServerEvent;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The notification socket of the service manager.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    /// Connected; `None`: no service manager.
    socket: Option<UnixDatagram>,
}

/// The first descriptor that the service manager passes.
const FIRST_SOCKET: i32 = 3;

impl ServiceManager {
    /// The service manager that started this process, if there is one.
    pub(crate) fn of_environment() -> Self {
        let path = std::env::var("NOTIFY_SOCKET").ok();
        Self { socket: path.and_then(|path| connect(&path).ok()) }
    }

    /// Sends a lifecycle event in the format of sd_notify(3).
    pub(crate) fn on_event(&self, event: &ServerEvent) {
        match event {
            ServerEvent::Ready(ready) => {
                let pid = std::process::id();
                let at = ready.listeners.join(" ");
                self.say(&format!("READY=1\nMAINPID={pid}\nSTATUS=serving on {at}"));
            }
            ServerEvent::Reloading => {
                let now = clock_gettime(ClockId::Monotonic);
                let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
                self.say(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=reloading"));
            }
            ServerEvent::Reloaded(Ok(number)) => {
                self.say(&format!("READY=1\nSTATUS=generation {number} is active"));
            }
            // Nothing has changed, but without READY the manager would assume that the reload hangs.
            ServerEvent::Reloaded(Err(why)) => {
                let why = why.lines().next().unwrap_or_default();
                self.say(&format!("READY=1\nSTATUS=reload failed: {why}"));
            }
            ServerEvent::Alive => self.say("WATCHDOG=1"),
            // It is in this unit, and the main process from now on (sd_notify(3)).
            ServerEvent::HandedOver { pid } => {
                self.say(&format!("MAINPID={pid}\nSTATUS=process {pid} has taken over"));
            }
            ServerEvent::Stopping => self.say("STOPPING=1\nSTATUS=finishing running requests"),
        }
    }

    fn say(&self, words: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(words.as_bytes());
        }
    }
}

fn connect(path: &str) -> io::Result<UnixDatagram> {
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The interval of watchdog notifications: half of the manager's time-out (sd_watchdog_enabled(3)).
pub(crate) fn alive_every_ms() -> Option<u64> {
    let patience_us: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    let whose = std::env::var("WATCHDOG_PID").ok();
    let is_ours = whose.is_none_or(|pid| pid == std::process::id().to_string());
    (is_ours && patience_us > 0).then_some((patience_us / 2000).max(1))
}

/// The sockets that the manager has bound for this process.
///
/// # Errors
/// A sentence about sockets that were announced and cannot be used.
pub(crate) fn handed_over() -> Result<Vec<OwnedFd>, String> {
    let is_ours =
        std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    let count: Option<i32> = std::env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok());
    let Some(count) = count.filter(|_| is_ours) else { return Ok(Vec::new()) };
    // Duplicates through the process's own pidfd, because the owner of a bare number is unknown.
    let ourselves = pidfd_open(getpid(), PidfdFlags::empty());
    let take = |number: i32| {
        let process = ourselves.as_ref().map_err(|error| *error)?;
        pidfd_getfd(process, number, PidfdGetfdFlags::empty())
    };
    let sockets: Result<_, _> =
        (FIRST_SOCKET..FIRST_SOCKET.saturating_add(count)).map(take).collect();
    sockets.map_err(|error| format!("the sockets of LISTEN_FDS cannot be used: {error}"))
}

#[cfg(test)]
mod tests;
