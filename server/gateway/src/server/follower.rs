//! A thread of the server that follows the lead: its loop, its generations, its end.
//!
//! Started by [`super::followers`], which sends it [`Command`]s. Invariants: it does what the lead does,
//! in the lead's order: opens a generation, activates it or gives it up, drains; its listeners have
//! addresses that the lead has bound.

use super::drain::drain;
use super::generation_builder::GenerationBuilder;
use super::generation_shards::GenerationShards;
use super::log_files::flush_logs;
use super::prepared::Prepared;
use crate::gateway::{Gateway, SharedByThreads};
use crate::generation::Generation;
use crate::listeners::{self, JoinedListener};
use crate::logs::Sinks;
use crate::privileges::Privileges;
use crate::shards::{ShardHandle, WorkReceiver};
use outboard_buffer::{Memory, MemoryLimits};
use outboard_config::Config;
use outboard_log::Level;
use outboard_reactor::{self as reactor, MailboxReceiver, ReplySender, Share, contain, spawn};
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// A command of the lead.
pub(super) enum Command {
    /// Open a generation, and wait until its pools are ready.
    Prepare { seed: Box<Seed>, prepared: ReplySender<Result<(), String>> },
    /// Activate what was prepared, with these listeners, and drain its predecessor.
    Activate { listeners: Vec<JoinedListener>, activated: ReplySender<()> },
    /// Give up what was prepared.
    GiveUp,
    /// Complete running requests and end.
    Drain { is_upgraded: bool, drained: ReplySender<()> },
}

/// What a generation is opened from.
#[derive(Clone)]
pub(super) struct Seed {
    pub(super) number: u32,
    pub(super) config: Config,
    pub(super) shared: GenerationShards,
}

/// What the thread itself is started from.
pub(super) struct FollowerSettings {
    pub(super) share: Share,
    pub(super) memory: Arc<MemoryLimits>,
    pub(super) server: Arc<SharedByThreads>,
    pub(super) name: Option<String>,
    pub(super) host_binary: PathBuf,
    pub(super) privileges: Arc<Privileges>,
    pub(super) lead: ShardHandle<Gateway>,
    pub(super) work: WorkReceiver<Gateway>,
    pub(super) commands: MailboxReceiver<Command>,
}

/// The state of the thread.
struct Follower {
    builder: GenerationBuilder,
    /// From the first generation on.
    gateway: Option<Rc<Gateway>>,
    prepared: Option<Prepared>,
    lead: ShardHandle<Gateway>,
    /// Until the first generation is active.
    work: Option<WorkReceiver<Gateway>>,
}

/// Follows the lead until it has drained.
pub(super) async fn follow(settings: FollowerSettings) {
    let FollowerSettings { share, memory, server, name, host_binary, privileges, .. } = settings;
    let builder = GenerationBuilder {
        name,
        host_binary,
        memory: Memory::of_shard(&memory),
        server,
        rings: Rc::default(),
        recent: Rc::default(),
        privileges,
        share,
        link: None,
    };
    let FollowerSettings { lead, work, commands, .. } = settings;
    reactor::watch_memory(builder.rings.source());
    let (gateway, prepared, work) = (None, None, Some(work));
    let mut follower = Follower { builder, gateway, prepared, lead, work };
    let mut next = None;
    loop {
        let command = match next.take() {
            Some(command) => command,
            None => commands.next().await,
        };
        match command {
            Command::Prepare { seed, prepared } => {
                // A server that stops does not wait for PHP to start.
                match unless(commands.next(), follower.prepare(*seed)).await {
                    Ok(outcome) => prepared.send(outcome),
                    Err(command) => next = Some(command),
                }
            }
            Command::Activate { listeners, activated } => {
                follower.activate(listeners);
                activated.send(());
            }
            Command::GiveUp => follower.prepared = None,
            Command::Drain { is_upgraded, drained } => {
                if let Some(gateway) = follower.gateway.take() {
                    drain(&gateway, is_upgraded).await;
                    gateway.sinks.borrow().all().for_each(|sink| sink.finish());
                }
                return drained.send(());
            }
        }
    }
}

impl Follower {
    async fn prepare(&mut self, seed: Seed) -> Result<(), String> {
        let Seed { number, config, shared } = seed;
        let present = self.gateway.as_ref().map(|gateway| gateway.generation());
        let opened = self.builder.open(number, config, present.as_deref(), &shared).await;
        let (generation, sinks) = opened.map_err(|error| error.to_string())?;
        if let Some(gateway) = &self.gateway {
            gateway.list_pools(&generation);
        }
        let prepared = Prepared::new(generation, sinks);
        prepared.generation.ready().await.map_err(|error| error.to_string())?;
        self.prepared = Some(prepared);
        Ok(())
    }

    fn activate(&mut self, listeners: Vec<JoinedListener>) {
        let Some((generation, sinks)) = self.prepared.take().map(Prepared::activate) else {
            return;
        };
        let drain_timeout_ms = generation.config.drain_timeout_ms;
        let gateway = match &self.gateway {
            Some(gateway) => {
                gateway.swap(generation, sinks, drain_timeout_ms);
                gateway.clone()
            }
            None => self.start(generation, sinks),
        };
        listeners::join(&gateway, listeners);
    }

    /// Begins to serve with the first generation.
    fn start(&mut self, generation: Generation, sinks: Sinks) -> Rc<Gateway> {
        let GenerationBuilder { memory, server, share, .. } = &self.builder;
        let gateway = Gateway::new(generation, sinks, memory.clone(), server, *share);
        gateway.shards.set_lead(self.lead.clone());
        gateway.ready.set(true);
        spawn(flush_logs(gateway.clone()));
        if let Some(work) = self.work.take() {
            spawn(do_work(gateway.clone(), work));
        }
        self.gateway.insert(gateway).clone()
    }
}

/// Completes `work`, unless `other` completes before.
async fn unless<T, O>(
    other: impl Future<Output = O>,
    work: impl Future<Output = T>,
) -> Result<T, O> {
    let (mut other, mut work) = (pin!(other), pin!(work));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => other.as_mut().poll(context).map(Err),
    })
    .await
}

/// Does the work that the other threads send.
pub(super) async fn do_work(gateway: Rc<Gateway>, work: WorkReceiver<Gateway>) {
    loop {
        let work = work.next().await;
        if contain(|| work(&gateway)).is_err() {
            gateway.server.log(Level::Error, "work for another thread made the gateway panic");
        }
    }
}
