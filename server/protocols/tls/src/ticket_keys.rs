//! [`TicketKeys`]: the keys that encrypt session tickets (RFC 8446 4.6.1, RFC 5077), for all threads.
//!
//! Owned by the server for as long as it runs; each reload takes its keys from it. Invariants: listeners
//! share keys only if their settings are the same, because a ticket does not state whether its session was
//! begun with a client certificate that the other listener requires; rustls compares the server name. No
//! ticket is accepted after [`LIFETIME_S`], and no key exists for longer than twice that time while
//! there are handshakes.

use crate::options::ServerOptions;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use rustls::pki_types::UnixTime;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// How long a ticket is accepted, and how long a key encrypts new ones.
const LIFETIME_S: u64 = 6 * 60 * 60;
/// Sessions with early data that are stored, of some 200 bytes each; the oldest are forgotten first.
const SESSIONS: usize = 16_384;
/// Longer sessions, because of a long chain of client certificates, are not resumed.
const MAX_STATE_BYTES: usize = 16 << 10;
const NAME_BYTES: usize = 16;
const TIME_BYTES: usize = 8;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct TicketKeys {
    keys: Arc<PerOptions<Tickets>>,
    sessions: Arc<PerOptions<ServerSessionMemoryCache>>,
}

/// What listeners with equal settings share.
#[derive(Debug)]
struct PerOptions<T>(Mutex<Vec<(ServerOptions, Weak<T>)>>);

impl<T> Default for PerOptions<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> PerOptions<T> {
    /// What others have already, or a new one.
    fn of<E>(
        &self,
        options: &ServerOptions,
        create: impl FnOnce() -> Result<Arc<T>, E>,
    ) -> Result<Arc<T>, E> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, shared)| shared.strong_count() > 0);
        let same = known.iter().find(|(theirs, _)| theirs == options);
        if let Some(shared) = same.and_then(|(_, shared)| shared.upgrade()) {
            return Ok(shared);
        }
        let fresh = create()?;
        known.push((options.clone(), Arc::downgrade(&fresh)));
        Ok(fresh)
    }
}

impl TicketKeys {
    /// The keys for these settings: those of listeners that have them already, or new ones.
    pub(crate) fn of(&self, options: &ServerOptions) -> Result<Arc<Tickets>, String> {
        self.keys.of(options, || {
            let fresh = Tickets::new(UnixTime::now().as_secs());
            Ok(Arc::new(fresh.map_err(|_| "no random numbers for keys of tickets")?))
        })
    }

    /// The sessions of listeners with early data: a ticket names one, which is removed when it is resumed, so
    /// that a recording of the first flight is of no use (RFC 8446 8.1).
    pub(crate) fn sessions_of(&self, options: &ServerOptions) -> Arc<ServerSessionMemoryCache> {
        let created = || Ok::<_, Infallible>(ServerSessionMemoryCache::new(SESSIONS));
        self.sessions.of(options, created).unwrap_or_else(|never| match never {})
    }
}

/// Encrypts the states of sessions into tickets.
#[derive(Debug)]
pub(crate) struct Tickets(RwLock<Keys>);

#[derive(Debug)]
struct Keys {
    current: Key,
    previous: Option<Key>,
}

impl Tickets {
    fn new(now_s: u64) -> Result<Self, Unspecified> {
        Ok(Self(RwLock::new(Keys { current: Key::new(now_s)?, previous: None })))
    }

    /// Works with the keys of this time.
    fn with_keys<T>(&self, now_s: u64, work: impl FnOnce(&Keys) -> Option<T>) -> Option<T> {
        {
            let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if !keys.current.is_old(now_s) {
                return work(&keys);
            }
        }
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have replaced it.
        if keys.current.is_old(now_s) {
            let old = std::mem::replace(&mut keys.current, Key::new(now_s).ok()?);
            let is_useful = now_s.saturating_sub(old.since_s) < 2 * LIFETIME_S;
            keys.previous = Some(old).filter(|_| is_useful);
        }
        work(&keys)
    }

    fn encrypt_at(&self, now_s: u64, state: &[u8]) -> Option<Vec<u8>> {
        if state.len() > MAX_STATE_BYTES {
            return None;
        }
        self.with_keys(now_s, |keys| keys.current.encrypt(now_s, state).ok())
    }

    fn decrypt_at(&self, now_s: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, sealed) = ticket.split_first_chunk::<NAME_BYTES>()?;
        self.with_keys(now_s, |keys| {
            let mut all = [Some(&keys.current), keys.previous.as_ref()].into_iter().flatten();
            all.find(|key| key.name == *name)?.decrypt(now_s, sealed)
        })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(UnixTime::now().as_secs(), plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(UnixTime::now().as_secs(), cipher)
    }
}

/// A ticket is the key's name, the nonce, and encrypted: the time of issue and the state. Nonces are
/// random; a key encrypts far less than the 2^32 tickets that they allow (NIST SP 800-38D 8.3).
#[derive(Debug)]
struct Key {
    name: [u8; NAME_BYTES],
    since_s: u64,
    cipher: LessSafeKey,
}

impl Key {
    fn new(now_s: u64) -> Result<Self, Unspecified> {
        let (mut name, mut secret) = ([0; NAME_BYTES], [0; 32]);
        rand::fill(&mut name)?;
        rand::fill(&mut secret)?;
        let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret)?);
        Ok(Self { name, since_s: now_s, cipher })
    }

    fn is_old(&self, now_s: u64) -> bool {
        now_s.saturating_sub(self.since_s) >= LIFETIME_S
    }

    fn encrypt(&self, now_s: u64, state: &[u8]) -> Result<Vec<u8>, Unspecified> {
        const START: usize = NAME_BYTES + NONCE_LEN;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce)?;
        let tag_bytes = self.cipher.algorithm().tag_len();
        let mut ticket = Vec::with_capacity(START + TIME_BYTES + state.len() + tag_bytes);
        ticket.extend_from_slice(&self.name);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(&now_s.to_be_bytes());
        ticket.extend_from_slice(state);
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(self.name));
        let tag = self.cipher.seal_in_place_separate_tag(nonce, aad, &mut ticket[START..])?;
        ticket.extend_from_slice(tag.as_ref());
        Ok(ticket)
    }

    fn decrypt(&self, now_s: u64, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let (nonce, aad) = (Nonce::assume_unique_for_key(*nonce), Aad::from(self.name));
        let mut buffer = sealed.to_vec();
        let plain = self.cipher.open_in_place(nonce, aad, &mut buffer).ok()?;
        let (issued_s, state) = plain.split_first_chunk::<TIME_BYTES>()?;
        let age_s = now_s.saturating_sub(u64::from_be_bytes(*issued_s));
        (age_s < LIFETIME_S).then(|| state.to_vec())
    }
}

#[cfg(test)]
mod tests;
