//! The store moves to another process, in an upgrade of the server.
//!
//! ```text
//!  old process                         new process
//!                                      `remote`: calls go to the old one
//!  `release`: calls wait, files close
//!                                      `acquire`: the files are open here
//!  `copy_memory_to`  ───────────────▶  `serve`
//!  `leave_to`: calls go to the new one
//! ```
//!
//! Called by the gateway on the lead. Invariants: the lock of the folder is released after the last file is
//! closed, and nothing is open before it is locked; until [`Store::leave_to`] the old process can open the
//! store again with all records.

use super::{Store, open_folder};
use crate::change::{Change, Condition, Write};
use crate::error::{OpenError, StoreError};
use crate::namespace::{Backend, Namespace};
use crate::record::{Record, unix_ms};
use crate::remote::Remote;
use crate::remote::call::{Call, Reply};
use crate::settings::{Engine, NamespaceSettings, Settings};
use crate::types::Piece;
use outboard_reactor::sleep;
use std::ops::Bound;
use std::path::Path;
use std::rc::Rc;

/// The size of a piece of a namespace in memory.
const PIECE_BYTES: usize = 1 << 20;

impl Store {
    /// A store that another process has open.
    pub fn remote(settings: &Settings, remote: &Rc<Remote>) -> Self {
        let there = |one: &NamespaceSettings| {
            Rc::new(Namespace::new(one.clone(), Backend::Remote(remote.clone())))
        };
        Self::new(settings, settings.namespaces.iter().map(there).collect(), None)
    }

    /// The folder that one process at a time has open.
    pub fn folder(&self) -> Option<&Path> {
        match &self.settings.engine {
            Engine::Folder(folder) => Some(folder),
            Engine::Redis(_) => None,
        }
    }

    /// Whether the folder is open in this process.
    pub fn is_here(&self) -> bool {
        self.lock.borrow().is_some()
    }

    /// Moves what is in memory to sorted files, so that the next process has little to read.
    ///
    /// # Errors
    /// The disk fails.
    pub async fn flush(&self) -> Result<(), StoreError> {
        for namespace in &self.namespaces {
            if let Some(backend) = namespace.present()
                && let Backend::Disk(disk) = &*backend
            {
                disk.flush().await?;
            }
        }
        Ok(())
    }

    /// Closes the store, so that another process can open it: calls wait from here on, those in progress are
    /// completed. [`Store::acquire`] or [`Store::leave_to`] follows, also if this is dropped.
    pub async fn release(&self) {
        let backends: Vec<_> = self.namespaces.iter().map(|one| one.move_to(None)).collect();
        let mut disks = Vec::new();
        for (namespace, backend) in self.namespaces.iter().zip(backends) {
            let Some(backend) = backend else { continue };
            while Rc::strong_count(&backend) > 1 {
                sleep(1).await;
            }
            namespace.cursors.clear();
            match Rc::try_unwrap(backend) {
                Ok(Backend::Disk(disk)) => disks.push(disk),
                Ok(backend) => drop(namespace.resting.replace(Some(Rc::new(backend)))),
                // Nothing else has it, since nothing was polled meanwhile.
                Err(backend) => drop(namespace.resting.replace(Some(backend))),
            }
        }
        for disk in disks {
            disk.close().await;
        }
        self.lock.replace(None);
    }

    /// Opens the store in this process: that of another one that has released it, or the own one again.
    ///
    /// # Errors
    /// As [`Store::open`]; calls wait, and this may be tried again.
    pub fn acquire(&self) -> Result<(), OpenError> {
        let Some(folder) = self.folder() else { return Ok(()) };
        let (backends, lock) = open_folder(&self.settings, folder)?;
        self.lock.replace(Some(lock));
        for (namespace, backend) in self.namespaces.iter().zip(backends) {
            let resting = namespace.resting.take();
            let backend = resting.unwrap_or_else(|| Rc::new(backend));
            namespace.cursors.clear();
            drop(namespace.move_to(Some(backend)));
        }
        Ok(())
    }

    /// After [`Store::release`]: copies what was in memory to the process that has acquired the store.
    ///
    /// # Errors
    /// The other process has ended.
    pub async fn copy_memory_to(&self, remote: &Remote) -> Result<(), StoreError> {
        for namespace in &self.namespaces {
            let Some(backend) = namespace.resting.borrow().clone() else { continue };
            let Backend::Memory(memory) = &*backend else { continue };
            let mut next = Some(Bound::Unbounded);
            while let Some(start) = next {
                let (piece, rest) = memory.scan_on(start, &Bound::Unbounded, PIECE_BYTES);
                if !piece.is_empty() {
                    remote.adopt(namespace.name(), piece).await?;
                }
                next = rest;
            }
        }
        Ok(())
    }

    /// Calls go to the other process from here on.
    pub fn leave_to(&self, remote: &Rc<Remote>) {
        for namespace in &self.namespaces {
            namespace.resting.take();
            namespace.move_to(Some(Rc::new(Backend::Remote(remote.clone()))));
        }
    }

    /// Carries out a call of the other process; the reply to it. `None`: it is malformed.
    pub async fn serve(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let (number, namespace, call) = Call::decode(frame)?;
        let reply = match self.namespace(&namespace) {
            Some(namespace) => carry_out(namespace, call).await,
            None => {
                let text = format!("the new configuration has no namespace {namespace}");
                Reply::Failed(StoreError::Failed(text))
            }
        };
        Some(reply.encode(number))
    }
}

async fn carry_out(namespace: &Rc<Namespace>, call: Call) -> Reply {
    let outcome = match call {
        Call::Get(ids) => {
            let ids: Vec<&[u8]> = ids.iter().map(|id| &**id).collect();
            namespace.get_many(&ids).await.map(Reply::Records)
        }
        Call::Write(mut writes, copies) => {
            return Reply::Written(match (writes.pop(), writes.is_empty()) {
                (Some(write), true) => vec![namespace.write_copies(write, copies).await],
                (last, _) => {
                    writes.extend(last);
                    namespace.write_many(writes).await
                }
            });
        }
        Call::Scan(start, end) => namespace.scan(start, end).next().await.map(Reply::Piece),
        Call::Compact => namespace.compact().await.map(|()| Reply::Done),
        Call::Adopt(records) => adopt(namespace, records).await.map(|()| Reply::Done),
    };
    outcome.unwrap_or_else(Reply::Failed)
}

/// Records of a namespace that was in memory in the other process.
async fn adopt(namespace: &Namespace, records: Piece) -> Result<(), StoreError> {
    if let Backend::Memory(memory) = &*namespace.backend().await? {
        records.into_iter().for_each(|(id, record)| memory.adopt(&id, record));
        return Ok(());
    }
    let writes = records.into_iter().map(|(id, record)| write_of(id, record)).collect();
    namespace.write_many(writes).await.into_iter().try_for_each(|written| written.map(drop))
}

/// The write that leaves the same value with the same expiry.
fn write_of(id: Box<[u8]>, record: Record) -> Write {
    let ttl_ms = record.expires_ms.map(|expires_ms| expires_ms.saturating_sub(unix_ms()));
    let change = Change::Put { value: record.value, ttl_ms };
    Write { id, change, condition: Condition::Always }
}

#[cfg(test)]
mod tests;
