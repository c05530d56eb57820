//! [`Run`]: executes a plan and collects the counts of its threads.

use crate::interval::Interval;
use crate::plan::{Load, Plan};
use crate::probe::probe;
use crate::recorder::{Message, Recorder, Slice, Totals};
use crate::server_cpu::Accounts;
use crate::share::Share;
use crate::socket::ClosingSocket;
use crate::summary::Summary;
use crate::tls::Tls;
use crate::worker::{Start, Worker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::{fmt, io, thread};

/// Why there is no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The plan is invalid.
    Plan(String),
    /// Nothing listens at the target's address.
    Unreachable {
        /// The address.
        address: String,
        /// The error of connecting.
        error: io::Error,
    },
    /// The CPU time of the server cannot be read.
    Accounts(String),
    /// This machine lacks a resource, such as file descriptors.
    System(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(why) => f.write_str(why),
            Error::Unreachable { address, error } if error.kind() == io::ErrorKind::InvalidData => {
                write!(f, "no TLS with {address}: {error}; --insecure accepts any certificate")
            }
            Error::Unreachable { address, error } => {
                write!(f, "no connection with {address}: {error}; is the server running?")
            }
            Error::Accounts(why) => write!(f, "the server's CPU time cannot be read: {why}"),
            Error::System(error) => write!(f, "the load generator cannot work: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unreachable { error, .. } | Error::System(error) => Some(error),
            Error::Plan(_) | Error::Accounts(_) => None,
        }
    }
}

/// A plan in execution. [`Self::next_interval`] follows it; [`Self::finish`] waits for its end.
#[derive(Debug)]
pub struct Run {
    plan: Arc<Plan>,
    threads: Vec<JoinHandle<()>>,
    messages: Receiver<Message>,
    accounts: Option<Accounts>,
    /// Slices of intervals that some threads have not finished.
    partial: BTreeMap<u64, (usize, Slice)>,
    all: Slice,
    totals: Vec<Totals>,
    /// The sockets of threads that have ended, open until the server's CPU time is read.
    sockets: Vec<ClosingSocket>,
    intervals: Vec<Interval>,
    reported: usize,
}

impl Run {
    /// Checks the plan, checks that the target accepts connections, and starts.
    pub fn start(plan: Plan) -> Result<Self, Error> {
        Self::start_until(plan, Arc::default())
    }

    /// Starts a run that ends as soon as `stop` is set; its result covers the time until then.
    pub fn start_until(plan: Plan, stop: Arc<AtomicBool>) -> Result<Self, Error> {
        if let Some(problem) = plan.problem() {
            return Err(Error::Plan(problem));
        }
        allow_descriptors(plan.connections);
        let address = plan.target.address.to_string();
        let tls = Tls::of(&plan).map_err(Error::Plan)?;
        match probe(&plan.target.address, tls.as_ref()) {
            // This says nothing about the server; the requests will report the same lack of ports.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            probed => probed.map_err(|error| Error::Unreachable { address, error })?,
        }
        let plan = Arc::new(plan);
        let threads = plan.thread_count();
        let start = Arc::new(Start::new(threads, stop));
        let (sender, messages) = channel();
        let interval_ns = plan.interval.as_nanos() as u64;
        let is_open = plan.load != Load::Closed;
        let spawn = |thread| {
            let (plan, start, sender) = (plan.clone(), start.clone(), sender.clone());
            let tls = tls.clone();
            let recorder = Recorder::new(is_open, interval_ns, sender.clone());
            thread::Builder::new().name("load".into()).spawn(move || {
                let outcome = match Worker::new(&plan, tls, Share { thread, threads }, recorder) {
                    Ok(worker) => worker.run(&start),
                    Err(error) => {
                        start.take();
                        Err(error)
                    }
                };
                if let Err(error) = outcome {
                    let _ = sender.send(Message::Failed(error));
                }
            })
        };
        let threads = (0..threads).map(spawn).collect::<io::Result<Vec<_>>>();
        let threads = threads.map_err(Error::System)?;
        // At this point the server has accepted its connections and is idle.
        let accounts = start.give(|| plan.server.as_ref().map(Accounts::read).transpose());
        if accounts.is_err() {
            start.stop.store(true, Ordering::Relaxed);
        }
        Ok(Self {
            accounts: accounts.map_err(Error::Accounts)?,
            plan,
            threads,
            messages,
            partial: BTreeMap::new(),
            all: Slice::new(is_open),
            totals: Vec::new(),
            sockets: Vec::new(),
            intervals: Vec::new(),
            reported: 0,
        })
    }

    /// Waits for the end of the next interval of the time series; `None` after the last.
    pub fn next_interval(&mut self) -> Result<Option<Interval>, Error> {
        while self.reported == self.intervals.len() && self.totals.len() < self.threads.len() {
            let Ok(message) = self.messages.recv() else { break };
            self.handle(message)?;
        }
        let next = self.intervals.get(self.reported).cloned();
        self.reported += usize::from(next.is_some());
        Ok(next)
    }

    fn handle(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Failed(error) => return Err(Error::System(error)),
            Message::Done { totals, sockets } => {
                self.totals.push(*totals);
                self.sockets.extend(sockets);
            }
            Message::Slice { index, slice } => {
                let is_open = slice.service.is_some();
                self.all.merge(&slice);
                let (count, merged) =
                    self.partial.entry(index).or_insert_with(|| (0, Slice::new(is_open)));
                *count += 1;
                merged.merge(&slice);
            }
        }
        // Threads end at about the same time; a finished one adds nothing to later intervals.
        while let Some(first) = self.partial.first_entry() {
            if first.get().0 + self.totals.len() < self.threads.len() {
                break;
            }
            let (index, (_, slice)) = first.remove_entry();
            let ended_ns = self.totals.iter().map(|one| one.ended_ns).max();
            self.push_interval(index, &slice, ended_ns);
        }
        Ok(())
    }

    fn push_interval(&mut self, index: u64, slice: &Slice, ended_ns: Option<u64>) {
        let interval = self.plan.interval.as_secs_f64();
        let at_seconds = index as f64 * interval;
        let left = ended_ns.map_or(interval, |ns| ns as f64 / 1e9 - at_seconds);
        let seconds = left.min(interval);
        // The short rest at the end of a run says nothing.
        if seconds > 0.0 && (seconds > interval / 10.0 || slice.sent > 0) {
            self.intervals.push(Interval::of(slice, at_seconds, seconds));
        }
    }

    /// Waits for the end of the run.
    pub fn finish(mut self) -> Result<Summary, Error> {
        while self.next_interval()?.is_some() {}
        let server = match (&self.accounts, &self.plan.server) {
            (Some(before), Some(processes)) => {
                let after = Accounts::read(processes).map_err(Error::Accounts)?;
                Some(before.until(&after))
            }
            _ => None,
        };
        drop(self.sockets);
        for thread in self.threads {
            thread.join().expect("a worker does not panic");
        }
        Ok(Summary::of(&self.plan, &self.all, self.totals, self.intervals, server))
    }
}

/// Raises the soft limit of descriptors to what the connections need (getrlimit(2)).
fn allow_descriptors(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = connections as u64 + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| needed.min(maximum));
        // If the limit cannot be raised, connections fail and say so.
        let raised = Rlimit { current: Some(current), maximum: limit.maximum };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
