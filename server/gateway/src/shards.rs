//! [`Shards`]: the threads of the server, and [`ShardHandle`]: the way to one of them.
//!
//! Each has an event loop, connections and a gateway (`G`) of its own. The first is the lead: it has the
//! admin socket, the tasks, the key-value store and the signals, and it decides about reloads. Called by
//! everything that concerns all threads. Invariants: what one thread needs of another is work that runs
//! there; it never waits for work that may wait for it: the lead waits for the others, and these for the
//! lead only in requests of clients.

use outboard_config::{App, Config, Count, Mode};
use outboard_reactor::{MailboxReceiver, MailboxSender, Reply, mailbox, reply, spawn};
use outboard_supervisor::cpu;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Work for another thread.
type Work<G> = Box<dyn FnOnce(&Rc<G>) + Send>;

/// The work that is sent to a thread.
pub(crate) type WorkReceiver<G> = MailboxReceiver<Work<G>>;

/// See the module.
pub(crate) struct ShardHandle<G: 'static>(MailboxSender<Work<G>>);

impl<G> Clone for ShardHandle<G> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<G> fmt::Debug for ShardHandle<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShardHandle")
    }
}

impl<G> ShardHandle<G> {
    /// A handle, and what is sent by it.
    pub(crate) fn new() -> (Self, WorkReceiver<G>) {
        let (sender, receiver) = mailbox();
        (Self(sender), receiver)
    }

    /// Runs a task there. Its result is `None` if the thread has ended, or ends before.
    pub(crate) fn run<T, F>(&self, work: impl FnOnce(Rc<G>) -> F + Send + 'static) -> Reply<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (back, reply) = reply();
        let start: Work<G> = Box::new(move |gateway| {
            let work = work(gateway.clone());
            spawn(async move { back.send(work.await) });
        });
        // If the thread has ended, `back` is dropped, and so the reply is `None`.
        let _ = self.0.send(start);
        reply
    }
}

/// The other threads, as one of them knows them.
#[derive(Debug)]
pub(crate) struct Shards<G: 'static> {
    /// Those that the lead leads; empty on the others.
    followers: RefCell<Vec<ShardHandle<G>>>,
    /// The lead, on the others.
    lead: RefCell<Option<ShardHandle<G>>>,
    /// The lead, on its own thread: for what runs on any thread.
    own: RefCell<Option<ShardHandle<G>>>,
    /// All threads in their order, once they serve.
    all: RefCell<Vec<ShardHandle<G>>>,
}

impl<G> Default for Shards<G> {
    fn default() -> Self {
        Self {
            followers: RefCell::default(),
            lead: RefCell::default(),
            own: RefCell::default(),
            all: RefCell::default(),
        }
    }
}

impl<G> Shards<G> {
    /// On the lead: the others have started.
    pub(crate) fn set_followers(&self, followers: Vec<ShardHandle<G>>) {
        self.followers.replace(followers);
    }

    /// On the lead: the way to it from the others.
    pub(crate) fn set_own(&self, own: ShardHandle<G>) {
        self.own.replace(Some(own));
    }

    /// On the lead: the same.
    pub(crate) fn own(&self) -> Option<ShardHandle<G>> {
        self.own.borrow().clone()
    }

    /// On each thread: the ways to all, in their order.
    pub(crate) fn set_all(&self, all: Vec<ShardHandle<G>>) {
        self.all.replace(all);
    }

    /// Whether it can be reached: at the start, threads serve before they know each other.
    pub(crate) fn knows(&self, index: usize) -> bool {
        index < self.all.borrow().len()
    }

    /// One of them.
    pub(crate) fn other(&self, index: usize) -> Option<ShardHandle<G>> {
        self.all.borrow().get(index).cloned()
    }

    /// On another thread.
    pub(crate) fn set_lead(&self, lead: ShardHandle<G>) {
        self.lead.replace(Some(lead));
    }

    /// The lead; `None` on its own thread.
    pub(crate) fn lead(&self) -> Option<ShardHandle<G>> {
        self.lead.borrow().clone()
    }

    /// Runs a task on each thread but the lead's, all at the same time. The results are in their order,
    /// without those of threads that have ended.
    pub(crate) async fn on_followers<T, F, W>(&self, work: W) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        W: FnOnce(Rc<G>) -> F + Clone + Send + 'static,
    {
        let started: Vec<Reply<T>> =
            self.followers.borrow().iter().map(|shard| shard.run(work.clone())).collect();
        let mut results = Vec::new();
        for reply in started {
            results.extend(reply.await);
        }
        results
    }
}

/// The number of threads for a configuration. Development mode has a single one.
pub(crate) fn count(config: &Config) -> usize {
    if config.development.is_some() {
        return 1;
    }
    let wanted = match config.threads {
        Count::Auto => of_cores(cpu::cores()),
        Count::Fixed(count) => count as usize,
    };
    config.apps.iter().map(most_for).fold(wanted, usize::min).max(1)
}

/// The number of threads on so many cores. On two, one thread beside PHP costs less per request than two
/// that each share a core with it (decision 0020).
fn of_cores(cores: usize) -> usize {
    if cores == 2 { 1 } else { cores }
}

/// The most threads that an app can be served by. Its raw connections are on one thread. A worker with
/// several requests at a time is hardly ever idle, so that it could be lent: each thread needs one.
fn most_for(app: &App) -> usize {
    match (&app.mode, app.pool.max) {
        (Mode::Worker(worker), _) if worker.starts_server => 1,
        (Mode::Worker(worker), Count::Fixed(max)) if worker.concurrency > 1 => max as usize,
        _ => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn count_of(text: &str) -> usize {
        count(&Config::parse(text, Path::new("/tmp/test.toml")).expect("a valid file"))
    }

    /// A folder beside [`SCRIPT`], since a script of worker mode is no file below the root.
    const APP: &str = concat!("[app.a]\nroot = \"", env!("CARGO_MANIFEST_DIR"), "/src\"\n");
    const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

    #[test]
    fn there_are_as_many_threads_as_are_set_or_as_there_are_cores() {
        assert_eq!(count_of(&format!("threads = 3\n{APP}")), 3);
        assert_eq!(count_of(APP), of_cores(cpu::cores()));
        assert_eq!(count_of(&format!("threads = \"auto\"\n{APP}")), count_of(APP));
        assert_eq!([1, 2, 3, 64].map(of_cores), [1, 1, 3, 64]);
    }

    #[test]
    fn each_thread_has_a_worker_that_processes_several_requests() {
        let of = |concurrency: u32, max: u32| {
            count_of(&format!(
                "threads = 4\n{APP}mode = \"worker\"\n\
                 worker = {{ script = \"{SCRIPT}\", concurrency = {concurrency} }}\n\
                 pool = {{ min = 1, max = {max} }}\n"
            ))
        };
        assert_eq!((of(1, 1), of(2, 1), of(2, 3), of(2, 8)), (4, 1, 3, 4));
    }
}
