//! The connection of the shared tier: its start, its events, its end.
//!
//! One task for each shard's cache, for as long as it exists. Invariant: the tier is available only
//! once all purges are known that were missed without a connection.

use super::commands::Commands;
use super::known_purges::random_name;
use super::link::{Disconnected, Input, Link, LinkEvent, Reply};
use super::message::Message;
use super::received_purges::messages;
use super::{LocalTiers, SharedTier, UNEXPECTED};
use outboard_config::PageCacheShared;
use outboard_log::Level;
use outboard_reactor::{now_ms, sleep, spawn};
use outboard_resp::Value;
use outboard_upstream::Destination;
use std::rc::{Rc, Weak};

/// Pauses before the attempts to connect; the last one repeats.
const PAUSES_MS: [u64; 4] = [100, 300, 1_000, 3_000];
/// How long a connection attempt may take.
const CONNECT_MS: u64 = 5_000;
/// How long a reply may take before the connection is closed.
const REPLY_MS: u64 = 3_000;

impl SharedTier {
    /// Maintains the connection while the cache exists.
    pub(crate) async fn run(self: Rc<Self>, local: Weak<dyn LocalTiers>) {
        let mut attempts = 0;
        while local.strong_count() > 0 {
            let (why, was_available) = self.connect(&local).await;
            self.unavailable.replace(why);
            self.wake_settling();
            if was_available || attempts == 0 {
                let (server, why) = (&self.configured.host, self.unavailable.borrow());
                let text = format!("the pages of the page cache are not shared: {server}: {why}");
                self.log(Level::Warn, &text);
            }
            attempts = if was_available { 1 } else { attempts + 1 };
            sleep(PAUSES_MS[attempts.min(PAUSES_MS.len()) - 1]).await;
        }
    }

    /// One connection from start to end: why it ended, and whether the tier was available.
    async fn connect(self: &Rc<Self>, local: &Weak<dyn LocalTiers>) -> (String, bool) {
        let PageCacheShared { host, port, tls_verified, .. } = &self.configured;
        let (host, port, tls_verified) = (host.clone(), *port, *tls_verified);
        let to = Destination { host, port, tls_verified };
        let mut channel = match self.client.dial(&to, now_ms() + CONNECT_MS).await {
            Ok(channel) => channel,
            Err(error) => return (error.message, false),
        };
        let (link, mut input) = (Rc::new(Link::default()), Input::default());
        self.spawn_with(local, &link, async |tier, local, link| {
            if let Err(why) = tier.join(&*local, &link).await {
                link.disconnect(&why);
            }
        });
        let why = loop {
            match link.next_event(&mut channel, &mut input, REPLY_MS).await {
                LinkEvent::Ended(why) => break why,
                LinkEvent::Pushed(pushed) => self.receive(local, &link, &pushed),
                LinkEvent::Idle if local.strong_count() == 0 => break String::new(),
                LinkEvent::Idle if self.is_available() => self.check_for_missed(local, &link),
                LinkEvent::Idle => {}
            }
        };
        link.disconnect(&why);
        (why, self.link.take().is_some())
    }

    /// Learns epoch and purges, and makes the tier available.
    async fn join(self: &Rc<Self>, local: &dyn LocalTiers, link: &Rc<Link>) -> Result<(), String> {
        success(Commands::greet(link, &self.configured)).await?;
        if self.configured.database > 0 {
            success(Commands::select(link, self.configured.database)).await?;
        }
        let info = success(Commands::info(link)).await?;
        self.commands.subscribe(link);
        let before = self.known.now();
        let joined = success(self.commands.join(link, run_id(&info), &random_name())).await?;
        let (epoch, generation, latest) = joined_state(&joined).ok_or(UNEXPECTED)?;
        let latest = messages(latest).collect();
        self.known.join(local, &before, &epoch, generation, latest);
        self.epoch.replace(epoch);
        let unconfirmed: Vec<_> = self.unconfirmed.borrow().iter().cloned().collect();
        unconfirmed.into_iter().for_each(|broadcast| self.send(link, broadcast));
        self.link.replace(Some(link.clone()));
        self.log(Level::Info, "the pages of the page cache are shared");
        // Messages that were pushed before this were ignored.
        Ok(self.catch_up(local, link).await.ok_or(UNEXPECTED)?)
    }

    fn receive(self: &Rc<Self>, local: &Weak<dyn LocalTiers>, link: &Rc<Link>, pushed: &[Value]) {
        let [kind, _, text] = pushed else { return };
        if kind.as_bytes() != Some(b"message") || !self.is_available() {
            return;
        }
        let message = text.as_bytes().and_then(Message::decoded);
        let Some((message, tiers)) = message.zip(local.upgrade()) else { return };
        if !self.apply(&*tiers, link, message) {
            self.check_for_missed(local, link);
        }
    }

    fn check_for_missed(self: &Rc<Self>, local: &Weak<dyn LocalTiers>, link: &Rc<Link>) {
        self.spawn_with(local, link, async |tier, local, link| {
            tier.catch_up(&*local, &link).await;
        });
    }

    fn spawn_with(
        self: &Rc<Self>,
        local: &Weak<dyn LocalTiers>,
        link: &Rc<Link>,
        work: impl AsyncFnOnce(Rc<Self>, Rc<dyn LocalTiers>, Rc<Link>) + 'static,
    ) {
        let Some(local) = local.upgrade() else { return };
        let (tier, link) = (self.clone(), link.clone());
        spawn(async move { work(tier, local, link).await });
    }
}

/// The reply, if it is not an error.
async fn success(reply: Rc<Reply>) -> Result<Value, String> {
    match reply.wait().await {
        Ok(Value::Error(why)) => Err(why),
        Ok(value) => Ok(value),
        Err(Disconnected) => Err("it closed the connection".to_owned()),
    }
}

/// Epoch, generation and latest purges, as the command `join` returns them.
fn joined_state(joined: &Value) -> Option<(String, u64, &[Value])> {
    let [epoch, generation, latest] = joined.as_array()? else { return None };
    let epoch = String::from_utf8_lossy(epoch.as_bytes()?).into_owned();
    Some((epoch, generation.as_integer()?.try_into().ok()?, latest.as_array()?))
}

/// The identifier of the server's run.
fn run_id(info: &Value) -> &[u8] {
    let text = info.as_bytes().unwrap_or_default();
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.find_map(|line| line.strip_prefix(b"run_id:")).unwrap_or_default().trim_ascii()
}
