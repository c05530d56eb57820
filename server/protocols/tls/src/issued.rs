//! [`Issued`]: the certificates that the server obtains itself, by name, and the responses to challenges of
//! authorities that check its names.
//!
//! One for all threads and for every listener that has no certificate files, over TCP and QUIC. Whatever
//! obtains certificates changes it while handshakes read it. Invariants: a certificate is replaced by its
//! successor in one step; a client that offers `acme-tls/1` (RFC 8737) gets the certificate of a challenge
//! or none, and no other client gets one of a challenge.

use crate::credential::Credential;
use crate::name_budget::NameBudget;
use outboard_reactor::now_ms;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// The protocol by which an authority checks a name in a handshake (RFC 8737 4).
pub(crate) const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";

type ByName<T> = RwLock<HashMap<Box<str>, T>>;
/// Receives names that clients have requested.
type Report = Box<dyn Fn(&str) + Send + Sync>;

/// See the module.
#[derive(Default)]
pub struct Issued {
    certificates: ByName<Arc<Credential>>,
    /// The name for clients that send none.
    default_name: RwLock<Option<Box<str>>>,
    /// Certificates that respond to challenges, by name.
    challenges: ByName<Arc<CertifiedKey>>,
    /// Responses to challenges over HTTP, by token (RFC 8555 8.3).
    responses: ByName<Box<str>>,
    missing: OnceLock<Report>,
    /// Names that handshakes wait for.
    awaited: Mutex<HashSet<Box<str>>>,
    budget: Mutex<NameBudget>,
    is_on_demand: AtomicBool,
}

/// Names that handshakes wait for at a time: clients choose them.
const MAX_AWAITED: usize = 64;

impl Issued {
    /// Uses this certificate for a name from now on. The name may be a wildcard.
    pub fn insert(&self, name: &str, credential: Arc<Credential>) {
        write(&self.certificates, |all| all.insert(name.into(), credential));
    }

    /// Uses no certificate for these names any more.
    pub fn retain(&self, is_used: impl Fn(&str) -> bool) {
        write(&self.certificates, |all| all.retain(|name, _| is_used(name)));
    }

    /// The name whose certificate clients get that send none.
    pub fn set_default_name(&self, name: Option<&str>) {
        *self.default_name.write().unwrap_or_else(PoisonError::into_inner) = name.map(Box::from);
    }

    /// The certificate for the name that a client has sent, in lower case: an exact match, or a wildcard.
    pub fn find(&self, name: &str) -> Option<Arc<Credential>> {
        let all = self.certificates.read().unwrap_or_else(PoisonError::into_inner);
        let found = all.get(name).or_else(|| {
            let (_, above) = name.split_once('.')?;
            all.get(format!("*.{above}").as_str())
        });
        found.cloned()
    }

    /// Responds to a challenge over TLS with this certificate and key, in PEM.
    ///
    /// # Errors
    /// Why they cannot be used, in one sentence.
    pub fn set_challenge(&self, name: &str, pem: &[u8]) -> Result<(), String> {
        let certified = challenge_of(pem).map_err(|error| format!("a challenge: {error}"))?;
        write(&self.challenges, |all| all.insert(name.into(), Arc::new(certified)));
        Ok(())
    }

    /// The challenge over TLS for this name is over.
    pub fn remove_challenge(&self, name: &str) {
        write(&self.challenges, |all| all.remove(name));
    }

    /// Responds to a challenge over HTTP.
    pub fn set_response(&self, token: &str, response: &str) {
        write(&self.responses, |all| all.insert(token.into(), response.into()));
    }

    /// The challenge over HTTP is over.
    pub fn remove_response(&self, token: &str) {
        write(&self.responses, |all| all.remove(token));
    }

    /// The response to the challenge with this token.
    pub fn response(&self, token: &str) -> Option<Box<str>> {
        self.responses.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Has names reported that clients have requested and that have no certificate. The first receiver
    /// remains; it is called within handshakes and must not wait.
    pub fn report_missing(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.missing.set(Box::new(report));
    }

    /// Whether certificates are obtained for names when clients request them.
    pub fn set_on_demand(&self, is_on_demand: bool) {
        self.is_on_demand.store(is_on_demand, Ordering::Relaxed);
    }

    pub(crate) fn is_on_demand(&self) -> bool {
        self.is_on_demand.load(Ordering::Relaxed)
    }

    /// Reports a name that a client has requested and that has no certificate. Whether its handshake is to
    /// wait; not if the client has requested too many.
    pub fn request(&self, name: &str, client: Option<IpAddr>) -> bool {
        let mut awaited = lock(&self.awaited);
        if awaited.contains(name) {
            return true;
        }
        let is_new = awaited.len() < MAX_AWAITED
            && lock(&self.budget).spend(client, now_ms())
            && awaited.insert(name.into());
        drop(awaited);
        if let Some(report) = self.missing.get().filter(|_| is_new) {
            report(name);
        }
        is_new
    }

    /// Whether handshakes for this name still wait for its certificate.
    pub fn is_awaited(&self, name: &str) -> bool {
        lock(&self.awaited).contains(name)
    }

    /// The certificate of this name has been obtained, or will not be.
    pub fn settle(&self, name: &str) {
        lock(&self.awaited).remove(name);
    }

    pub(crate) fn of_client(&self, name: Option<&str>) -> Option<Arc<Credential>> {
        match name {
            Some(name) => self.find(name),
            None => {
                let name = self.default_name.read().unwrap_or_else(PoisonError::into_inner);
                self.find(name.as_deref()?)
            }
        }
    }

    fn challenge(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.challenges.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// Its critical extension (RFC 8737 3) is unknown to webpki, so that only the authority checks it.
fn challenge_of(pem: &[u8]) -> Result<CertifiedKey, Box<dyn std::error::Error>> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pem)?;
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key)?;
    Ok(CertifiedKey::new(chain, key))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write<T, R>(map: &ByName<T>, change: impl FnOnce(&mut HashMap<Box<str>, T>) -> R) {
    let replaced = change(&mut map.write().unwrap_or_else(PoisonError::into_inner));
    // A certificate is freed outside of the lock.
    drop(replaced);
}

impl ResolvesServerCert for Issued {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        let is_challenge =
            hello.alpn().is_some_and(|mut all| all.any(|one| one == CHALLENGE_PROTOCOL));
        if is_challenge {
            return self.challenge(name?);
        }
        let found = self.of_client(name);
        // On demand, a name is reported by [`Self::request`].
        let report = self.missing.get().filter(|_| !self.is_on_demand());
        if let (None, Some(name), Some(report)) = (&found, name, report) {
            report(name);
        }
        found.map(|found| found.certified.clone())
    }
}

/// Those that are the same.
impl PartialEq for Issued {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Issued {}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Issued")
    }
}
