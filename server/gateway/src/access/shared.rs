//! [`SharedAccess`]: what all threads and all generations share: bans, tables of rate limits, and passwords.
//!
//! Created at start. Invariant: a rate limit that a reload does not change keeps its table, so that a reload
//! gives clients no new tokens.

use super::ban_file::BanFile;
use super::passwords::Passwords;
use super::rate_sharing::{RateSharing, SharingState};
use outboard_access::{Ban, BanList, Network, RateTable};
use outboard_config::{Config, RateLimit};
use outboard_log::{ErrorLog, Wall};
use outboard_upstream::Client;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct SharedAccess {
    /// Banned networks.
    pub(crate) bans: BanList,
    /// Bans on disk; `None`: they end with the server.
    ban_file: Mutex<Option<BanFile>>,
    /// Passwords that are verified.
    pub(crate) passwords: Passwords,
    /// Attempts to log in to the dashboard, once there was one.
    pub(crate) dashboard_logins: OnceLock<RateTable>,
    /// What is counted of limits that gateways share.
    pub(crate) sharing: Arc<SharingState>,
    tables: Mutex<HashMap<Identity, Weak<RateTable>>>,
}

/// A rate limit, by app, path, number among equal ones and settings.
type Identity = (String, String, usize, RateLimit);

impl SharedAccess {
    /// Reads the bans of a file, to which changes are written from now on.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn open_bans(&self, path: PathBuf) -> io::Result<()> {
        let file = BanFile::open(path, &self.bans, Wall::now().unix_s())?;
        *lock(&self.ban_file) = Some(file);
        Ok(())
    }

    /// Writes a change of the bans to disk. It may wait for the disk.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn store_ban(&self, network: &Network, ban: Option<&Ban>) -> io::Result<()> {
        match &mut *lock(&self.ban_file) {
            Some(file) => file.append((network, ban), &self.bans, Wall::now().unix_s()),
            None => Ok(()),
        }
    }

    /// The way of a thread to the server of shared limits: that of the predecessor, if it is the same server.
    pub(crate) fn rate_sharing(
        &self,
        config: &Config,
        predecessor: Option<&Rc<RateSharing>>,
        client: &Rc<Client>,
        log: &Rc<ErrorLog>,
    ) -> Option<Rc<RateSharing>> {
        let server = config.rate_sharing.as_ref()?;
        let present = predecessor.filter(|before| before.is_to(server)).cloned();
        Some(present.unwrap_or_else(|| RateSharing::start(server, &self.sharing, client, log)))
    }

    /// The table of a limit, which is an app's n-th of this path.
    pub(super) fn table(
        &self,
        (app, path, number): (&str, &str, usize),
        limit: &RateLimit,
    ) -> Arc<RateTable> {
        let mut tables = lock(&self.tables);
        let identity = (app.to_owned(), path.to_owned(), number, limit.clone());
        if let Some(present) = tables.get(&identity).and_then(Weak::upgrade) {
            return present;
        }
        tables.retain(|_, table| table.strong_count() > 0);
        let table = Arc::new(RateTable::new(limit.rate, limit.clients));
        tables.insert(identity, Arc::downgrade(&table));
        table
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
