//! [`Followers`]: the threads that follow the lead, as the lead commands them.
//!
//! Owned by the server. Invariants: a generation is active on all threads or on none; the end of a
//! thread that was not ordered to end is the end of the server.

use super::follower::{Command, FollowerSettings, Seed, follow};
use super::generation_builder::GenerationBuilder;
use crate::gateway::Gateway;
use crate::listeners::JoinedListener;
use crate::server_error::ServerError;
use crate::shards::ShardHandle;
use outboard_buffer::MemoryLimits;
use outboard_reactor::{self as reactor, MailboxSender, Reply, ReplySender, Share, mailbox, reply};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

/// See the module.
#[derive(Default)]
pub(super) struct Followers {
    commands: Vec<MailboxSender<Command>>,
}

impl Followers {
    /// Starts all threads but the lead's, whose builder this is. Returns the ways to their gateways, too.
    ///
    /// # Errors
    /// The system allows no more threads.
    pub(super) fn start(
        builder: &GenerationBuilder,
        memory: &Arc<MemoryLimits>,
        lead: &ShardHandle<Gateway>,
    ) -> io::Result<(Self, Vec<ShardHandle<Gateway>>)> {
        let (mut followers, mut handles) = (Self::default(), Vec::new());
        let count = builder.share.count;
        for index in 1..count {
            let (handle, work) = ShardHandle::new();
            let (sender, commands) = mailbox();
            let settings = FollowerSettings {
                share: Share { index, count },
                memory: memory.clone(),
                server: builder.server.clone(),
                name: builder.name.clone(),
                host_binary: builder.host_binary.clone(),
                privileges: builder.privileges.clone(),
                lead: lead.clone(),
                work,
                commands,
            };
            let thread = thread::Builder::new().name(format!("outboard-{}", index + 1));
            thread.spawn(move || run(settings))?;
            followers.commands.push(sender);
            handles.push(handle);
        }
        Ok((followers, handles))
    }

    /// Opens a generation on all threads, and waits until all are ready.
    ///
    /// # Errors
    /// The first failure. [`Self::give_up`] must follow.
    pub(super) async fn prepare(&self, seed: &Seed) -> Result<(), ServerError> {
        let prepared =
            self.command(|prepared| Command::Prepare { seed: Box::new(seed.clone()), prepared });
        let mut outcome = Ok(());
        for prepared in prepared {
            let prepared = prepared.await.unwrap_or_else(|| Err("a thread has ended".to_owned()));
            outcome = outcome.and(prepared);
        }
        outcome.map_err(ServerError::setup)
    }

    /// Activates the prepared generation on all threads, with these listeners.
    pub(super) async fn activate(&self, listeners: impl Fn() -> Vec<JoinedListener>) {
        let command = |activated| Command::Activate { listeners: listeners(), activated };
        for activated in self.command(command) {
            activated.await;
        }
    }

    /// Gives the prepared generation up on all threads.
    pub(super) fn give_up(&self) {
        self.send(|| Command::GiveUp);
    }

    /// Completes the requests of all threads and ends them; each replies at its end.
    pub(super) fn drain(&self, is_upgraded: bool) -> Vec<Reply<()>> {
        self.command(|drained| Command::Drain { is_upgraded, drained })
    }

    fn send(&self, command: impl Fn() -> Command) {
        for sender in &self.commands {
            // A thread that has ended has ended the server.
            let _ = sender.send(command());
        }
    }

    fn command<T: Send>(&self, command: impl Fn(ReplySender<T>) -> Command) -> Vec<Reply<T>> {
        let send = |sender: &MailboxSender<Command>| {
            let (back, reply) = reply();
            // As above.
            let _ = sender.send(command(back));
            reply
        };
        self.commands.iter().map(send).collect()
    }
}

/// Each thread gets the ways to all, so that connections can move.
pub(super) async fn introduce(
    gateway: &Gateway,
    lead: ShardHandle<Gateway>,
    followers: Vec<ShardHandle<Gateway>>,
) {
    gateway.shards.set_followers(followers.clone());
    let all = [vec![lead], followers].concat();
    gateway.shards.set_all(all.clone());
    gateway.shards.on_followers(|gateway| async move { gateway.shards.set_all(all) }).await;
}

/// Runs the loop of a thread. Without one of its threads the server would refuse a part of its clients.
fn run(settings: FollowerSettings) {
    let outcome = catch_unwind(AssertUnwindSafe(|| reactor::run(follow(settings))));
    match outcome {
        Ok(Ok(())) => return,
        Ok(Err(error)) => eprintln!("outboard: the event loop of a thread failed: {error}"),
        // The panic has written its message.
        Err(_) => {}
    }
    std::process::abort();
}
