//! The connection that what is shared needs: its begin, its end, and what it has to tell meanwhile.
//!
//! One task for each cache, as long as there is the cache. Invariant: the connection counts as there
//! only when all is known that was missed without it.

use super::commands::Commands;
use super::link::{Input, Link, Lost, News, Reply};
use super::message::Message;
use super::{Commons, messages, some_name};
use crate::page_cache::PageCache;
use outboard_config::PageCacheShared;
use outboard_log::Level;
use outboard_page_cache::PurgeLog;
use outboard_reactor::{now_ms, sleep, spawn, wake};
use outboard_resp::Value;
use outboard_upstream::Destination;
use std::rc::{Rc, Weak};

/// Pauses before another attempt to connect, from the first to all after the last.
const PAUSES_MS: [u64; 4] = [100, 300, 1_000, 3_000];
/// How long a connection may take.
const CONNECT_MS: u64 = 5_000;
/// How long a reply may take before the connection is given up.
const REPLY_MS: u64 = 3_000;

impl Commons {
    /// Gets to know what there is to know, and is there from then on.
    async fn join(self: &Rc<Self>, cache: &PageCache, link: &Rc<Link>) -> Result<(), String> {
        said(Commands::greet(link, &self.configured)).await?;
        if self.configured.database > 0 {
            said(Commands::select(link, self.configured.database)).await?;
        }
        let info = said(Commands::info(link)).await?;
        self.commands.subscribe(link);
        let joined = said(self.commands.join(link, run_of(&info), &some_name())).await?;
        let odd = || "it answers oddly".to_owned();
        let Some([epoch, generation, latest]) = joined.as_array() else { return Err(odd()) };
        let epoch = epoch.as_bytes().map(String::from_utf8_lossy).ok_or_else(odd)?;
        let (generation, latest) =
            generation.as_integer().zip(latest.as_array()).ok_or_else(odd)?;
        let generation = u64::try_from(generation).map_err(|_| odd())?;
        let is_known = *self.epoch.borrow() == *epoch && self.known.borrow().latest() <= generation;
        if is_known {
            self.hear_all(cache, latest);
        } else {
            let mut known = PurgeLog::since(generation.saturating_sub(latest.len() as u64));
            for message in messages(latest) {
                known.note(message.generation, message.selector);
            }
            self.forget_all(cache, known);
            self.epoch.replace(epoch.into_owned());
        }
        let unconfirmed: Vec<_> = self.unconfirmed.borrow().iter().cloned().collect();
        unconfirmed.into_iter().for_each(|broadcast| self.send(link, broadcast));
        self.link.replace(Some(link.clone()));
        self.log(Level::Info, "the pages of the page cache are shared");
        // What was pushed before this was done was not heard.
        self.catch_up(cache, link).await.ok_or_else(odd)
    }

    /// Keeps the connection as long as there is the cache that it is for.
    pub(in crate::page_cache) async fn run(self: Rc<Self>, cache: Weak<PageCache>) {
        let mut attempts = 0;
        while cache.strong_count() > 0 {
            let (why, was_there) = self.connect(&cache).await;
            self.away.replace(why);
            self.settling.take().into_iter().for_each(wake);
            if was_there || attempts == 0 {
                let (server, away) = (&self.configured.host, self.away.borrow());
                let text = format!("the pages of the page cache are not shared: {server}: {away}");
                self.log(Level::Warn, &text);
            }
            attempts = if was_there { 1 } else { attempts + 1 };
            sleep(PAUSES_MS[attempts.min(PAUSES_MS.len()) - 1]).await;
        }
    }

    /// One connection from its begin to its end: why it ended, and whether it was of use.
    async fn connect(self: &Rc<Self>, cache: &Weak<PageCache>) -> (String, bool) {
        let PageCacheShared { host, port, tls_verified, .. } = &self.configured;
        let (host, port, tls_verified) = (host.clone(), *port, *tls_verified);
        let to = Destination { host, port, tls_verified };
        let mut channel = match self.client.dial(&to, now_ms() + CONNECT_MS).await {
            Ok(channel) => channel,
            Err(error) => return (error.message, false),
        };
        let (link, mut input) = (Rc::new(Link::default()), Input::default());
        self.with_cache(cache, &link, async |commons, cache, link| {
            if let Err(why) = commons.join(&cache, &link).await {
                link.give_up(&why);
            }
        });
        let why = loop {
            match link.converse(&mut channel, &mut input, REPLY_MS).await {
                News::Broken(why) => break why,
                News::Pushed(pushed) => self.pushed(cache, &link, &pushed),
                News::Quiet if cache.strong_count() == 0 => break String::new(),
                News::Quiet if self.is_there() => self.look_after(cache, &link),
                News::Quiet => {}
            }
        };
        link.give_up(&why);
        (why, self.link.take().is_some())
    }

    fn pushed(self: &Rc<Self>, cache: &Weak<PageCache>, link: &Rc<Link>, pushed: &[Value]) {
        let [kind, _, text] = pushed else { return };
        if kind.as_bytes() != Some(b"message") || !self.is_there() {
            return;
        }
        let message = text.as_bytes().and_then(Message::decoded);
        let Some((message, known)) = message.zip(cache.upgrade()) else { return };
        if !self.hear(&known, message) {
            self.look_after(cache, link);
        }
    }

    /// Finds out whether anything was missed.
    fn look_after(self: &Rc<Self>, cache: &Weak<PageCache>, link: &Rc<Link>) {
        self.with_cache(cache, link, async |commons, cache, link| {
            commons.catch_up(&cache, &link).await;
        });
    }

    fn with_cache(
        self: &Rc<Self>,
        cache: &Weak<PageCache>,
        link: &Rc<Link>,
        work: impl AsyncFnOnce(Rc<Self>, Rc<PageCache>, Rc<Link>) + 'static,
    ) {
        let Some(cache) = cache.upgrade() else { return };
        let (commons, link) = (self.clone(), link.clone());
        spawn(async move { work(commons, cache, link).await });
    }
}

/// What the server replied, if it is no failure.
async fn said(reply: Rc<Reply>) -> Result<Value, String> {
    match reply.wait().await {
        Ok(Value::Error(why)) => Err(why),
        Ok(value) => Ok(value),
        Err(Lost) => Err("it closed the connection".to_owned()),
    }
}

/// What tells one start of the server from another.
fn run_of(info: &Value) -> &[u8] {
    let text = info.as_bytes().unwrap_or_default();
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.find_map(|line| line.strip_prefix(b"run_id:")).unwrap_or_default().trim_ascii()
}
