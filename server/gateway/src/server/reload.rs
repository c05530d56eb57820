//! A reload: a successor of the active generation is opened on all threads and activated when it is
//! ready.
//!
//! Called by the server. Invariant: a reload that fails at any point changes nothing.

use super::app_processes;
use super::development;
use super::follower::Seed;
use super::followers::Followers;
use super::generation_shards::GenerationShards;
use super::lead::Lead;
use super::prepared::Prepared;
use crate::certificates;
use crate::datagrams;
use crate::gateway::Gateway;
use crate::gathering;
use crate::listeners::{self, ConfiguredListener, Fresh};
use crate::server_error::ServerError;
use crate::shards;
use crate::upgrade_link;
use crate::upstream_watch;
use outboard_config::{Config, Diagnostics};
use outboard_http_server::BindError;
use outboard_log::Level;
use outboard_reactor::blocking;
use outboard_stream_server::BoundDatagram;
use std::rc::Rc;

/// Starts a successor of the active generation, waits until it is ready, and activates it. Returns its
/// number.
///
/// # Errors
/// Why it was given up.
pub(super) async fn reload(lead: &Lead) -> Result<u32, ServerError> {
    let Lead { gateway, builder, followers, load, tls, .. } = lead;
    let threads = builder.share.count;
    let (load, opener) = (load.clone(), builder.privileges.opener());
    let state = tls.clone();
    let loaded = blocking(move || {
        let config = load(&|path| opener.read(path))?;
        let certificates = listeners::certificates(&config, &opener, &state);
        Ok::<_, Diagnostics>((config, certificates))
    });
    let (mut config, certificates) = loaded.await.map_err(ServerError::Config)?;
    builder.privileges.set_php_user(&mut config);
    let certificates = certificates.map_err(ServerError::setup)?;
    let configured = ConfiguredListener::with(&config, certificates.clone());
    if shards::count(&config) != threads {
        let text = format!("{threads} threads remain: another number takes effect with a restart");
        gateway.server.log(Level::Warn, &text);
    }
    let present = gateway.generation();
    let number = present.number + 1;
    let shared = GenerationShards::new(&config, threads, Some(&present));
    let mut seed = Seed { number, config: config.clone(), shared: shared.clone() };
    let attempt = Attempt(Some((followers, &shared)));
    let (successor, sinks) = builder.open(number, config, Some(&present), &shared).await?;
    seed.shared.share(&successor, &sinks);
    gateway.list_pools(&successor);
    let prepared = Prepared::new(successor, sinks);
    prepared.generation.ready().await?;
    followers.prepare(&seed).await?;
    let (fresh, sockets) = bind_new(gateway, &configured, &prepared.generation.config)?;
    attempt.succeed();
    let (successor, sinks) = prepared.activate();
    let drain_timeout_ms = successor.config.drain_timeout_ms;
    listeners::take_over(gateway, &configured, fresh);
    datagrams::take_over(gateway, &successor.config.listeners, sockets);
    gateway.swap(successor, sinks, drain_timeout_ms);
    upgrade_link::share_purges(gateway);
    datagrams::share(gateway);
    upstream_watch::watch(gateway);
    development::configure(gateway);
    app_processes::configure(gateway, builder);
    if let Err(error) = certificates::obtain(gateway, &seed.config, tls) {
        gateway.server.log(Level::Error, &error);
    }
    followers.activate(|| listeners::joined(gateway, &seed.config, &certificates)).await;
    gathering::steer_again(gateway);
    Ok(number)
}

/// A reload that is given up on all threads unless it succeeds. A stop of the server may drop it anywhere.
struct Attempt<'a>(Option<(&'a Followers, &'a GenerationShards)>);

impl Attempt<'_> {
    fn succeed(mut self) {
        self.0 = None;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some((followers, shared)) = self.0 {
            followers.give_up();
            shared.give_up();
        }
    }
}

/// Sockets of addresses that were not bound before.
type NewSockets = (Fresh, Vec<Rc<BoundDatagram>>);

/// Binds the addresses that only the new configuration names.
fn bind_new(
    gateway: &Rc<Gateway>,
    configured: &[ConfiguredListener],
    config: &Config,
) -> Result<NewSockets, BindError> {
    let fresh = listeners::bind_new(gateway, configured, config.io.backlog)?;
    match datagrams::bind_new(gateway, &config.listeners) {
        Ok(sockets) => Ok((fresh, sockets)),
        Err(error) => {
            fresh.abandon(gateway);
            Err(error)
        }
    }
}
