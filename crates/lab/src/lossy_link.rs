//! [`LossyLink`]: a network of its own, whose one link delays packets and loses some of them.
//!
//! Called by the experiment `loss`. In a network namespace, all packets to [`FAR`] leave by a TUN device and
//! reach the [`relay`], which returns each of them later, or never, with source and destination exchanged: a
//! packet to [`FAR`] arrives at [`NEAR`], as if it came from [`FAR`]. socat opens the device. netem has the same
//! effect with kernels that have it. Invariant: the namespace, its processes and the relay end with the link.

mod relay;

use std::fs::File;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{Error, Result, ResultExt};
use crate::group::Group;
use crate::lab::Lab;
use crate::system::program;
use relay::Fate;

/// The address of servers and clients in the namespace.
pub(crate) const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 95, 0, 1));
/// The address by which a client reaches a server at [`NEAR`] over the link.
pub(crate) const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 95, 0, 2));

/// Loopback ports in the namespace, where no other program runs.
const RELAY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 7_000);
const DEVICE: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 7_001);

/// Of the namespace of the thread that opens it.
const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Longer than any experiment; the janitor ends the process earlier.
const HOLDER_SECONDS: &str = "86400";

/// See the module.
pub(crate) struct LossyLink {
    namespace: File,
    fate: Arc<Fate>,
    relay: Option<JoinHandle<()>>,
    _processes: Group,
}

impl LossyLink {
    /// A link with this delay in each direction, which loses nothing yet.
    pub(crate) fn start(lab: &mut Lab, delay: Duration) -> Result<Self> {
        let ip = program(&["/usr/sbin/ip", "/usr/bin/ip"], "iproute2")?;
        let socat = program(&["/usr/bin/socat"], "socat")?;
        let mut processes = Group::new(lab, "lossy-link")?;
        let namespace = hold_namespace(lab, &mut processes)?;
        let fate = Arc::new(Fate::new(delay));
        let relay = within(&namespace, || {
            run(Command::new(ip).args(["link", "set", "lo", "up"]))?;
            let socket = UdpSocket::bind(RELAY).context(|| "bind the relay of the link".into())?;
            let ends = Arc::clone(&fate);
            let relay = thread::spawn(move || relay::run(&socket, &ends));
            let ((near, port), (device, device_port)) = (RELAY, DEVICE);
            let mut command = Command::new(socat);
            command.arg(format!("TUN:{NEAR}/24,tun-type=tun,iff-no-pi,up"));
            command.arg(format!("UDP4-DATAGRAM:{near}:{port},bind={device}:{device_port}"));
            processes.start(lab, &command)?;
            Ok(relay)
        })?;
        let link = Self { namespace, fate, relay: Some(relay), _processes: processes };
        link.await_device()?;
        Ok(link)
    }

    /// Loses this share of all packets, at random, in both directions.
    pub(crate) fn lose(&self, share: f64) {
        self.fate.lose(share);
    }

    /// Selects the algorithm of TCP in the namespace (tcp(7)); false if the kernel lacks it. To be called
    /// [`within`](Self::within) it.
    pub(crate) fn select_congestion_control(&self, algorithm: &str) -> Result<bool> {
        match std::fs::write(CONGESTION_CONTROL, algorithm) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            written => written
                .context(|| format!("write {algorithm} to {CONGESTION_CONTROL}"))
                .map(|()| true),
        }
    }

    /// Runs this in the namespace: sockets and processes that it creates belong to it.
    pub(crate) fn within<T: Send>(&self, body: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        within(&self.namespace, body)
    }

    fn await_device(&self) -> Result<()> {
        for _ in 0..500 {
            let bound = self.within(|| Ok(UdpSocket::bind((NEAR, 0)).is_ok()))?;
            if bound {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        let what = "no TUN device: is /dev/net/tun there?".to_owned();
        Err(Error::Unexpected { who: "socat".into(), what })
    }
}

impl Drop for LossyLink {
    fn drop(&mut self) {
        self.fate.end();
        if let Some(relay) = self.relay.take() {
            let _ = relay.join();
        }
    }
}

/// A new network namespace, which lasts as long as a process in it or its file.
fn hold_namespace(lab: &mut Lab, processes: &mut Group) -> Result<File> {
    let unshare = program(&["/usr/bin/unshare"], "util-linux")?;
    let mut command = Command::new(unshare);
    processes.start(lab, command.args(["--net", "/bin/sleep", HOLDER_SECONDS]))?;
    let own = link_of(Path::new("/proc/self/ns/net"));
    let path = |pid| format!("/proc/{pid}/ns/net");
    let other = |processes: &Group| {
        let mut pids = processes.pids().into_iter().map(path);
        pids.find(|path| link_of(Path::new(path)).is_some_and(|link| Some(link) != own))
    };
    for _ in 0..500 {
        if let Some(path) = other(processes) {
            return File::open(&path).context(|| format!("open {path}"));
        }
        thread::sleep(Duration::from_millis(10));
    }
    let what = "no network namespace: it takes root".to_owned();
    Err(Error::Unexpected { who: "unshare".into(), what })
}

fn link_of(path: &Path) -> Option<std::path::PathBuf> {
    std::fs::read_link(path).ok()
}

/// Only a thread moves, so it is one that ends afterwards (setns(2)).
fn within<T: Send>(namespace: &File, body: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let enter = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(std::io::Error::from)
            .context(|| "enter the network namespace".into())
    };
    thread::scope(|scope| {
        let inside = scope.spawn(|| enter().and_then(|()| body()));
        inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().context(|| format!("run {command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::Program { program: format!("{command:?}"), output })
}
