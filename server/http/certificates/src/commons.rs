//! [`Commons`]: certificates, records and challenges that several gateways share through Redis or Valkey.
//!
//! Owned by the worker if it is configured. One gateway has the lock of a name while it orders; each stores
//! what it has read in its own directory, so that it serves without the server too. Invariants: without the
//! lock nothing is ordered; an order is recorded here before it is placed, so that the limits are those of
//! all gateways together; a lock of a gateway that has ended is free after [`LOCK_MS`], for itself at once.

use crate::acme::base64url;
use crate::plan::NameRecord;
use aws_lc_rs::rand;
use outboard_config::PageCacheShared;
use outboard_reactor::sleep;
use outboard_redis::Connection;
use outboard_resp::Value;
use outboard_upstream::Client as HttpClient;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Longer than an order can take.
const LOCK_MS: &[u8] = b"600000";
/// Names of changed certificates that are remembered.
const MAX_CHANGES: &[u8] = b"1000";
/// How long challenges of gateways that have ended remain.
const CHALLENGES_S: &[u8] = b"900";
/// The pause between two looks whether the connection is free.
const TURN_MS: u64 = 5;
/// The pause between two looks for news.
pub(crate) const LOOK_MS: u64 = 500;
/// How long a challenge is there before the authority is requested to check it, so that each gateway has
/// looked.
pub(crate) const SPREAD_MS: u64 = 3 * LOOK_MS;

/// Takes the lock of a name, also again: 1 or 0.
const LOCK: &[u8] = b"local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";
/// Releases it if it is the caller's.
const UNLOCK: &[u8] =
    b"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// See the module.
#[derive(Debug)]
pub(crate) struct Commons {
    server: PageCacheShared,
    http: Rc<HttpClient>,
    /// Identifies the directory of this gateway.
    node: String,
    channel: RefCell<Option<Connection>>,
    is_busy: Cell<bool>,
}

/// What other gateways have changed.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// The number of certificates that were stored so far.
    pub(crate) version: u64,
    /// By kind and token or name: see [`Commons::set_challenge`].
    pub(crate) challenges: BTreeMap<String, String>,
}

/// A certificate of another gateway.
pub(crate) struct Found {
    pub(crate) pem: Option<Vec<u8>>,
    pub(crate) record: Option<NameRecord>,
}

impl Commons {
    pub(crate) fn new(server: PageCacheShared, http: Rc<HttpClient>, node: String) -> Self {
        Self { server, http, node, channel: RefCell::default(), is_busy: Cell::new(false) }
    }

    /// A name for the directory of a gateway.
    pub(crate) fn new_node() -> Result<String, String> {
        let mut bytes = [0; 16];
        rand::fill(&mut bytes).map_err(|_| "no random numbers")?;
        Ok(base64url(bytes))
    }

    /// Takes the lock of a name; false while another gateway has it.
    pub(crate) async fn lock(&self, name: &str) -> Result<bool, String> {
        let key = self.key(&format!("lock:{name}"));
        let words: [&[u8]; 6] = [b"EVAL", LOCK, b"1", &key, self.node.as_bytes(), LOCK_MS];
        Ok(self.call(&words).await?.as_integer() == Some(1))
    }

    /// Releases the lock of a name.
    pub(crate) async fn unlock(&self, name: &str) -> Result<(), String> {
        let key = self.key(&format!("lock:{name}"));
        self.call(&[b"EVAL", UNLOCK, b"1", &key, self.node.as_bytes()]).await.map(drop)
    }

    /// The certificate and the record of a name.
    pub(crate) async fn find(&self, name: &str) -> Result<Found, String> {
        let pem = self.call(&[b"HGET", &self.key("certificates"), name.as_bytes()]).await?;
        let record = self.call(&[b"HGET", &self.key("records"), name.as_bytes()]).await?;
        let record = record.as_bytes().and_then(|text| serde_json::from_slice(text).ok());
        Ok(Found { pem: pem.into_bytes(), record })
    }

    /// Stores the record of a name.
    pub(crate) async fn set_record(&self, name: &str, record: &NameRecord) -> Result<(), String> {
        // An order can be completed only by the account that has placed it.
        let mut record = record.clone();
        record.order = None;
        let text = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
        self.call(&[b"HSET", &self.key("records"), name.as_bytes(), &text]).await.map(drop)
    }

    /// Stores the certificate of a name, for all gateways.
    pub(crate) async fn set_certificate(&self, name: &str, pem: &[u8]) -> Result<(), String> {
        let changes = self.key("changes");
        self.call(&[b"HSET", &self.key("certificates"), name.as_bytes(), pem]).await?;
        self.call(&[b"RPUSH", &changes, name.as_bytes()]).await?;
        self.call(&[b"LTRIM", &changes, &[b"-", MAX_CHANGES].concat(), b"-1"]).await?;
        self.call(&[b"INCR", &self.key("version")]).await.map(drop)
    }

    /// Has all gateways respond to a challenge: `http TOKEN`, or `tls NAME`.
    pub(crate) async fn set_challenge(&self, field: &str, response: &str) -> Result<(), String> {
        let key = self.key("challenges");
        self.call(&[b"HSET", &key, field.as_bytes(), response.as_bytes()]).await?;
        self.call(&[b"EXPIRE", &key, CHALLENGES_S]).await.map(drop)
    }

    /// The challenge is over.
    pub(crate) async fn remove_challenge(&self, field: &str) -> Result<(), String> {
        self.call(&[b"HDEL", &self.key("challenges"), field.as_bytes()]).await.map(drop)
    }

    /// What there is at present.
    pub(crate) async fn news(&self) -> Result<News, String> {
        let version = self.call(&[b"GET", &self.key("version")]).await?;
        let challenges = self.call(&[b"HGETALL", &self.key("challenges")]).await?;
        let text = |value: &Value| {
            value.as_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let pairs = challenges.as_array().unwrap_or_default().chunks_exact(2);
        let challenges = pairs.filter_map(|pair| text(&pair[0]).zip(text(&pair[1])));
        let version = version.as_integer().and_then(|version| u64::try_from(version).ok());
        Ok(News { version: version.unwrap_or(0), challenges: challenges.collect() })
    }

    /// The names of the latest certificates.
    pub(crate) async fn changes(&self, count: u64) -> Result<Vec<String>, String> {
        let start = format!("-{}", count.max(1));
        let names = self.call(&[b"LRANGE", &self.key("changes"), start.as_bytes(), b"-1"]).await?;
        let names = names.into_array().unwrap_or_default().into_iter();
        let names = names.filter_map(|name| String::from_utf8(name.into_bytes()?).ok());
        Ok(names.collect())
    }

    fn key(&self, part: &str) -> Vec<u8> {
        format!("outboard:{}:{part}", self.server.name).into_bytes()
    }

    /// Sends a command, over a new connection if there is none or if it has failed.
    async fn call(&self, words: &[&[u8]]) -> Result<Value, String> {
        while self.is_busy.replace(true) {
            sleep(TURN_MS).await;
        }
        let outcome = self.call_alone(words).await;
        self.is_busy.set(false);
        outcome.map_err(|why| format!("{}:{}: {why}", self.server.host, self.server.port))
    }

    async fn call_alone(&self, words: &[&[u8]]) -> Result<Value, String> {
        let present = self.channel.take();
        let mut connection = match present {
            Some(connection) => connection,
            None => Connection::open(&self.server, &self.http, self.server.timeout_ms).await?,
        };
        let reply = connection.exchange(words, self.server.timeout_ms).await?;
        self.channel.replace(Some(connection));
        Ok(reply)
    }
}
