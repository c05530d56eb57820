//! A store: a folder, or a Redis, and the namespaces in it.
//!
//! Opened and dropped by the gateway. Invariants: one process at a time has a folder; nobody but its
//! user reads what is in it.

use crate::disk::Disk;
use crate::error::OpenError;
use crate::levels::Blocks;
use crate::memory::Memory;
use crate::namespace::{Namespace, Place};
use crate::redis::Redis;
use crate::settings::{Durability, Engine, NamespaceSettings, Settings};
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;

/// Most files that are held open; more are opened again when they are read.
const OPEN_FILES: usize = 256;

/// A store that is open.
#[derive(Debug)]
pub struct Store {
    namespaces: Vec<Rc<Namespace>>,
    /// Dropped last: then another process may open the folder.
    _lock: Option<File>,
}

impl Store {
    /// Opens a store, within the loop that will use it. Reads the journals of its namespaces,
    /// which takes a moment after a crash.
    ///
    /// # Errors
    /// Another process has it, its folder cannot be used, or a namespace is damaged.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        match &settings.engine {
            Engine::Folder(folder) => Self::in_folder(settings, folder),
            Engine::Redis(redis) => {
                let redis = Redis::start(settings, redis);
                let redis = redis.map_err(|source| OpenError::Threads { source })?;
                let in_redis = |namespace: &NamespaceSettings| {
                    let place = Place::Redis(redis.clone(), redis.prefix(&namespace.name));
                    Rc::new(Namespace::new(namespace.clone(), place))
                };
                let namespaces = settings.namespaces.iter().map(in_redis).collect();
                Ok(Self { namespaces, _lock: None })
            }
        }
    }

    fn in_folder(settings: &Settings, folder: &Path) -> Result<Self, OpenError> {
        let lock = lock(folder)?;
        let all = folder.join("namespaces");
        keep_private(&all).map_err(|source| OpenError::Io { path: all.clone(), source })?;
        let blocks = Blocks::new(settings.cache_bytes, OPEN_FILES);
        let mut namespaces = Vec::new();
        for namespace in &settings.namespaces {
            let place = match namespace.durability {
                Durability::Memory => {
                    Place::Memory(Box::new(Memory::new(namespace.memory_max_bytes)))
                }
                durability => {
                    let folder = all.join(&namespace.name);
                    Place::Disk(Box::new(Disk::open(&folder, durability, settings, &blocks)?))
                }
            };
            namespaces.push(Rc::new(Namespace::new(namespace.clone(), place)));
        }
        Ok(Self { namespaces, _lock: Some(lock) })
    }

    /// A namespace by its name.
    pub fn namespace(&self, name: &str) -> Option<&Rc<Namespace>> {
        self.namespaces.iter().find(|namespace| namespace.name() == name)
    }

    /// All of them, in the order of the settings.
    pub fn namespaces(&self) -> &[Rc<Namespace>] {
        &self.namespaces
    }
}

fn lock(folder: &Path) -> Result<File, OpenError> {
    let at = |source| OpenError::Io { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at)?;
    let path = folder.join("lock");
    let file = File::options().create(true).append(true).mode(0o600).open(path).map_err(at)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(at(source)),
    }
}

/// A store of an earlier release has a folder that everybody may look into.
fn keep_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

#[cfg(test)]
pub(crate) mod tests;
