//! The keys on the server, and the commands that read and write them.
//!
//! ```text
//!  outboard:NAME:state           hash    epoch, run, generation
//!  outboard:NAME:purges          list    the latest purges, the last one last
//!  outboard:NAME:purges          channel the same, as they are published
//!  outboard:NAME:EPOCH:URL       hash    variant → the generation that it is as new as, and its record
//! ```
//! Invariants: the generation counts the purges of an epoch; a new epoch starts when the state is
//! missing or the server has restarted (it may have loaded data that lacks the latest purges), and no
//! page of an older epoch is found in it.

use super::link::{Link, Reply};
use outboard_config::PageCacheShared;
use std::rc::Rc;

/// The purges that are stored at most for gateways that were disconnected.
const PURGES_MAX: usize = 4096;
/// The variants of a URL at most; one more replaces all of them.
const VARIANTS_MAX: usize = 16;

/// Returns epoch, generation and latest purges; starts an epoch if necessary.
const JOIN: &str = "\
local epoch, run = unpack(redis.call('HMGET', KEYS[1], 'epoch', 'run'))
if not epoch or run ~= ARGV[1] then
  epoch = ARGV[2]
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'run', ARGV[1], 'generation', 0)
end
return {epoch, redis.call('HGET', KEYS[1], 'generation'), redis.call('LRANGE', KEYS[2], 0, -1)}";

/// Numbers a purge, stores and publishes it.
const PURGE: &str = "\
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return redis.error_reply('ERR other epoch') end
local generation = redis.call('HINCRBY', KEYS[1], 'generation', 1)
local message = generation .. ' ' .. ARGV[2]
redis.call('RPUSH', KEYS[2], message)
redis.call('LTRIM', KEYS[2], -ARGV[3], -1)
redis.call('PUBLISH', KEYS[2], message)
return generation";

/// Stores a page.
const PUT: &str = "\
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  redis.call('DEL', KEYS[1])
end
local left = redis.call('PTTL', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], math.max(left, tonumber(ARGV[3])))
return 1";

/// The names of the keys.
#[derive(Debug)]
pub(super) struct Commands {
    prefix: String,
    state: String,
    /// The list and the channel.
    purges: String,
}

impl Commands {
    pub(super) fn new(name: &str) -> Self {
        let prefix = format!("outboard:{name}:");
        Self { state: format!("{prefix}state"), purges: format!("{prefix}purges"), prefix }
    }

    /// Authenticates and selects RESP3.
    pub(super) fn greet(link: &Link, shared: &PageCacheShared) -> Rc<Reply> {
        let user = if shared.user.is_empty() { "default" } else { &shared.user };
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if !shared.password.0.is_empty() {
            hello.extend([&b"AUTH"[..], user.as_bytes(), shared.password.0.as_bytes()]);
        }
        link.request(&hello)
    }

    pub(super) fn select(link: &Link, database: u32) -> Rc<Reply> {
        link.request(&[b"SELECT", database.to_string().as_bytes()])
    }

    /// Contains the identifier of the server's run.
    pub(super) fn info(link: &Link) -> Rc<Reply> {
        link.request(&[b"INFO", b"server"])
    }

    /// Subscribes to purges.
    pub(super) fn subscribe(&self, link: &Link) {
        link.send(&[b"SUBSCRIBE", self.purges.as_bytes()]);
    }

    pub(super) fn join(&self, link: &Link, run: &[u8], fresh_epoch: &str) -> Rc<Reply> {
        link.request(&[
            b"EVAL",
            JOIN.as_bytes(),
            b"2",
            self.state.as_bytes(),
            self.purges.as_bytes(),
            run,
            fresh_epoch.as_bytes(),
        ])
    }

    pub(super) fn purge(&self, link: &Link, epoch: &str, message: &[u8]) -> Rc<Reply> {
        link.request(&[
            b"EVAL",
            PURGE.as_bytes(),
            b"2",
            self.state.as_bytes(),
            self.purges.as_bytes(),
            epoch.as_bytes(),
            message,
            PURGES_MAX.to_string().as_bytes(),
        ])
    }

    /// Epoch and generation.
    pub(super) fn state(&self, link: &Link) -> Rc<Reply> {
        link.request(&[b"HMGET", self.state.as_bytes(), b"epoch", b"generation"])
    }

    /// The latest `count` purges.
    pub(super) fn latest(&self, link: &Link, count: u64) -> Rc<Reply> {
        link.request(&[b"LRANGE", self.purges.as_bytes(), format!("-{count}").as_bytes(), b"-1"])
    }

    /// All variants of a page.
    pub(super) fn get(&self, link: &Link, epoch: &str, url: &[u8]) -> Rc<Reply> {
        link.request(&[b"HVALS", &self.page(epoch, url)])
    }

    pub(super) fn put(
        &self,
        link: &Link,
        epoch: &str,
        url: &[u8],
        variant: u64,
        record: &[u8],
        useful_ms: u64,
    ) {
        link.request(&[
            b"EVAL",
            PUT.as_bytes(),
            b"1",
            &self.page(epoch, url),
            &variant.to_le_bytes(),
            record,
            useful_ms.to_string().as_bytes(),
            VARIANTS_MAX.to_string().as_bytes(),
        ]);
    }

    fn page(&self, epoch: &str, url: &[u8]) -> Vec<u8> {
        [self.prefix.as_bytes(), epoch.as_bytes(), b":", url].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_config::Secret;

    /// The words of the commands that were sent.
    fn sent(send: impl FnOnce(&Link) + 'static) -> Vec<Vec<String>> {
        let link = outboard_reactor::run(async {
            let link = Link::default();
            send(&link);
            link
        });
        let sent = String::from_utf8(link.unwrap().outgoing()).unwrap();
        let commands = sent.split_terminator('*').skip(1);
        commands.map(|one| one.lines().skip(2).step_by(2).map(str::to_owned).collect()).collect()
    }

    #[test]
    fn keys_start_with_the_configured_name() {
        let words = sent(|link| {
            let commands = Commands::new("shop");
            commands.subscribe(link);
            commands.state(link);
            commands.latest(link, 3);
            commands.get(link, "e1", b"http://a.test/");
        });
        assert_eq!(words[0], ["SUBSCRIBE", "outboard:shop:purges"]);
        assert_eq!(words[1], ["HMGET", "outboard:shop:state", "epoch", "generation"]);
        assert_eq!(words[2], ["LRANGE", "outboard:shop:purges", "-3", "-1"]);
        assert_eq!(words[3], ["HVALS", "outboard:shop:e1:http://a.test/"]);
    }

    #[test]
    fn credentials_are_sent_only_if_there_is_a_password() {
        let shared = |user: &str, password: &str| PageCacheShared {
            host: String::new(),
            port: 0,
            tls_verified: None,
            user: user.to_owned(),
            password: Secret(password.to_owned()),
            database: 0,
            name: String::new(),
            timeout_ms: 0,
        };
        for (user, password, expected) in [
            ("", "", &["HELLO", "3"][..]),
            ("", "pass", &["HELLO", "3", "AUTH", "default", "pass"]),
            ("app", "pass", &["HELLO", "3", "AUTH", "app", "pass"]),
        ] {
            let shared = shared(user, password);
            let words = sent(move |link| drop(Commands::greet(link, &shared)));
            assert_eq!(words[0], expected);
        }
    }
}
