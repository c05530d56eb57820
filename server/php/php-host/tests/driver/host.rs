//! A zygote that forks workers on the gateway's orders.

use super::{PATIENCE, Worker, settings};
use outboard_ring::channel::{Capacities, GatewayChannel};
use outboard_ring::control::{self, Event, HostSettings, Order};
use outboard_ring::doorbell::{Awaited, Doorbell};
use outboard_ring::frame::FrameKind;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

/// A running zygote.
pub struct Host {
    /// `None`: a sibling, which another one has forked.
    process: Option<Child>,
    control: Option<OwnedFd>,
    pub started: Event,
    /// What the start of the script has read, with the list of files.
    pub boot_read: Option<(Event, Vec<OwnedFd>)>,
    next_worker: u64,
}

/// Starts the binary and sends the start order; `started` is the event that it replies with.
pub fn start(settings: HostSettings) -> Host {
    start_by(Command::new(env!("CARGO_BIN_EXE_outboard-php")), settings)
}

/// The same, and what it has printed until it replied.
pub fn start_printing(settings: HostSettings) -> (Host, String) {
    let (output, output_end) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
    rustix::io::ioctl_fionbio(&output_end, false).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_outboard-php"));
    program.stdout(output_end.try_clone().unwrap()).stderr(output_end);
    let host = start_by(program, settings);
    let mut printed = Vec::new();
    // It blocks at the end if the host still runs.
    let _ = File::from(output).read_to_end(&mut printed);
    (host, String::from_utf8_lossy(&printed).into_owned())
}

fn start_by(mut program: Command, settings: HostSettings) -> Host {
    let (ours, theirs) = control::pair().unwrap();
    let process = program.stdin(Stdio::from(theirs)).spawn().unwrap();
    drop(program);
    control::send(&ours, &Order::Start { settings: Box::new(settings) }, &[]).unwrap();
    let first = receive(&ours).expect("the zygote replies");
    let (boot_read, started) = match first {
        read @ (Event::BootRead { .. }, _) => {
            (Some(read), receive_event(&ours).expect("the zygote reports its start"))
        }
        (started, _) => (None, started),
    };
    Host { process: Some(process), control: Some(ours), started, boot_read, next_worker: 1 }
}

fn receive_event(control: &OwnedFd) -> Option<Event> {
    receive(control).map(|(event, _)| event)
}

fn receive(control: &OwnedFd) -> Option<(Event, Vec<OwnedFd>)> {
    let mut ready = [PollFd::new(control, PollFlags::IN)];
    assert_ne!(poll(&mut ready, Some(&PATIENCE)).unwrap(), 0, "no event came");
    control::receive(control).unwrap()
}

impl Host {
    /// With the default settings.
    pub fn new() -> Self {
        Self::with(settings())
    }

    pub fn with(settings: HostSettings) -> Self {
        let host = start(settings);
        assert!(matches!(host.started, Event::Started { .. }), "{:?}", host.started);
        host
    }

    pub fn control(&self) -> &OwnedFd {
        self.control.as_ref().unwrap()
    }

    pub fn pid(&self) -> u32 {
        match (&self.process, &self.started) {
            (Some(process), _) => process.id(),
            (None, Event::Started { pid, .. }) => pid.cast_unsigned(),
            (None, other) => panic!("{other:?}"),
        }
    }

    /// The same as the system calls have it.
    pub fn raw_pid(&self) -> i32 {
        self.pid().cast_signed()
    }

    /// Orders something without descriptors.
    pub fn order(&self, order: &Order) {
        control::send(self.control(), order, &[]).unwrap();
    }

    /// Forks a sibling, with the read end of its output.
    pub fn split(&self, sibling: u64) -> (Self, File) {
        let (ours, theirs) = control::pair().unwrap();
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let descriptors = [theirs.as_fd(), output_end.as_fd()];
        control::send(self.control(), &Order::Split { sibling }, &descriptors).unwrap();
        drop((theirs, output_end));
        let started = receive_event(&ours).expect("the sibling reports its start");
        let (process, boot_read) = (None, None);
        let host = Self { process, control: Some(ours), started, boot_read, next_worker: 1 };
        let pid = host.raw_pid();
        assert_eq!(self.event(), Event::Split { sibling, pid });
        (host, output.into())
    }

    pub fn event(&self) -> Event {
        receive_event(self.control()).expect("an event")
    }

    pub fn signal(&self, worker: u64, signal: i32) {
        self.order(&Order::Signal { worker, signal });
    }

    /// Forks a worker and waits until it is ready.
    pub fn fork(&mut self) -> Worker {
        let mut worker = self.fork_unready(Capacities::default());
        let (header, _) = worker.frame();
        assert_eq!(header.kind, FrameKind::Ready);
        worker
    }

    pub fn fork_unready(&mut self, capacities: Capacities) -> Worker {
        let number = self.next_worker;
        self.next_worker += 1;
        let (channel, memory) = GatewayChannel::create(capacities, 1).unwrap();
        let bell = Doorbell::new().unwrap();
        let awaited = Awaited::new(&bell).unwrap();
        let gateway_bell = Doorbell::new().unwrap();
        let own_bell = Awaited::new(&gateway_bell).unwrap();
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let descriptors =
            [memory.as_fd(), awaited.as_fd(), gateway_bell.as_fd(), output_end.as_fd()];
        let order = Order::Fork { worker: number };
        control::send(self.control(), &order, &descriptors).unwrap();
        drop(output_end);
        let pid = match self.event() {
            Event::Forked { worker, pid } if worker == number => pid,
            other => panic!("expected the fork of {number}, got {other:?}"),
        };
        Worker {
            number,
            pid,
            channel,
            bell,
            own_bell,
            _gateway_bell: gateway_bell,
            output: output.into(),
            generation: 0,
            expanded: VecDeque::new(),
        }
    }

    /// Closes the control socket and waits for the zygote's exit; for that of a sibling only its parent
    /// can wait.
    pub fn close(&mut self) {
        self.control = None;
        if let Some(process) = &mut self.process {
            process.wait().unwrap();
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.control = None;
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
