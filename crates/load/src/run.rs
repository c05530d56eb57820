//! [`Run`]: a plan being carried out, and the collecting of what its threads count.

use crate::moment::Moment;
use crate::plan::{Load, Plan};
use crate::recorder::{Note, Recorder, Slice, Totals};
use crate::server_cpu::Accounts;
use crate::socket::probe;
use crate::summary::Summary;
use crate::tls::Tls;
use crate::worker::{Share, Start, Worker};
use rustix::fd::OwnedFd;
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
    /// The plan asks for what cannot be.
    Plan(String),
    /// Nobody answers at the target's address.
    Unreachable {
        /// The address.
        address: String,
        /// What connecting to it said.
        error: io::Error,
    },
    /// The CPU time of the server cannot be read.
    Accounts(String),
    /// This machine does not give what is needed, such as file descriptors.
    System(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(why) => f.write_str(why),
            Error::Unreachable { address, error } if error.kind() == io::ErrorKind::InvalidData => {
                write!(f, "no TLS with {address}: {error}; --insecure takes any certificate")
            }
            Error::Unreachable { address, error } => {
                write!(f, "no connection with {address}: {error}; is the server running?")
            }
            Error::Accounts(why) => write!(f, "the server's CPU time cannot be read: {why}"),
            Error::System(error) => write!(f, "the load generator cannot work: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// A plan being carried out. [`Self::next_moment`] follows it; [`Self::finish`] waits for its end.
#[derive(Debug)]
pub struct Run {
    plan: Arc<Plan>,
    threads: Vec<JoinHandle<()>>,
    notes: Receiver<Note>,
    accounts: Option<Accounts>,
    /// Slices of intervals that not all threads have been through.
    partial: BTreeMap<u64, (usize, Slice)>,
    all: Slice,
    totals: Vec<Totals>,
    /// What the threads that have ended leave open until the server's accounts are read.
    sockets: Vec<OwnedFd>,
    moments: Vec<Moment>,
    told: usize,
}

impl Run {
    /// Checks the plan, makes sure that somebody is there, and begins.
    pub fn start(plan: Plan) -> Result<Self, Error> {
        Self::start_until(plan, Arc::default())
    }

    /// The same for a run that ends as soon as `stop` is set; its result is that of the part that
    /// there was.
    pub fn start_until(plan: Plan, stop: Arc<AtomicBool>) -> Result<Self, Error> {
        if let Some(mistake) = plan.mistake() {
            return Err(Error::Plan(mistake));
        }
        allow_descriptors(plan.connections);
        let address = plan.target.address.to_string();
        let tls = Tls::of(&plan).map_err(Error::Plan)?;
        match probe(&plan.target.address, tls.as_ref()) {
            // Nothing is known of the server then; the requests will say the same of this machine.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            probed => probed.map_err(|error| Error::Unreachable { address, error })?,
        }
        let plan = Arc::new(plan);
        let threads = plan.thread_count();
        let start = Arc::new(Start::new(threads, stop));
        let (sender, notes) = channel();
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
                    let _ = sender.send(Note::Failed(error));
                }
            })
        };
        let threads = (0..threads).map(spawn).collect::<io::Result<Vec<_>>>();
        let threads = threads.map_err(Error::System)?;
        // Between the two, the server has accepted its connections and nothing else to do.
        let accounts = start.give(|| plan.server.as_ref().map(Accounts::read).transpose());
        if accounts.is_err() {
            start.stop.store(true, Ordering::Relaxed);
        }
        Ok(Self {
            accounts: accounts.map_err(Error::Accounts)?,
            plan,
            threads,
            notes,
            partial: BTreeMap::new(),
            all: Slice::new(is_open),
            totals: Vec::new(),
            sockets: Vec::new(),
            moments: Vec::new(),
            told: 0,
        })
    }

    /// Waits for the next interval of the time series to be over; `None` after the last.
    pub fn next_moment(&mut self) -> Result<Option<Moment>, Error> {
        while self.told == self.moments.len() && self.totals.len() < self.threads.len() {
            let Ok(note) = self.notes.recv() else { break };
            self.take(note)?;
        }
        let next = self.moments.get(self.told).cloned();
        self.told += usize::from(next.is_some());
        Ok(next)
    }

    fn take(&mut self, note: Note) -> Result<(), Error> {
        match note {
            Note::Failed(error) => return Err(Error::System(error)),
            Note::Done { totals, sockets } => {
                self.totals.push(*totals);
                self.sockets.extend(sockets);
            }
            Note::Slice { index, slice } => {
                let is_open = slice.service.is_some();
                self.all.merge(&slice);
                let (count, merged) =
                    self.partial.entry(index).or_insert_with(|| (0, Slice::new(is_open)));
                *count += 1;
                merged.merge(&slice);
            }
        }
        // Threads end at about the same time; who is done adds nothing to the intervals to come.
        while let Some(first) = self.partial.first_entry() {
            if first.get().0 + self.totals.len() < self.threads.len() {
                break;
            }
            let (index, (_, slice)) = first.remove_entry();
            let ended_ns = self.totals.iter().map(|one| one.ended_ns).max();
            self.tell(index, &slice, ended_ns);
        }
        Ok(())
    }

    fn tell(&mut self, index: u64, slice: &Slice, ended_ns: Option<u64>) {
        let interval = self.plan.interval.as_secs_f64();
        let at_seconds = index as f64 * interval;
        let left = ended_ns.map_or(interval, |ns| ns as f64 / 1e9 - at_seconds);
        let seconds = left.min(interval);
        // The end of a run leaves a sliver that says nothing.
        if seconds > 0.0 && (seconds > interval / 10.0 || slice.sent > 0) {
            self.moments.push(Moment::of(slice, at_seconds, seconds));
        }
    }

    /// Waits for the end of the run.
    pub fn finish(mut self) -> Result<Summary, Error> {
        while self.next_moment()?.is_some() {}
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
        Ok(Summary::of(&self.plan, &self.all, self.totals, self.moments, server))
    }
}

/// Raises the soft limit of descriptors as far as the connections need it (getrlimit(2)).
fn allow_descriptors(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = connections as u64 + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| wanted.min(maximum));
        // Who may not have more learns so from the connections that fail.
        let raised = Rlimit { current: Some(current), maximum: limit.maximum };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
