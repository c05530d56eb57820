//! A store: a folder or a Redis, and its namespaces.
//!
//! Opened and dropped by the gateway; [`handover`] moves it to another process. Invariants: a folder has
//! one process at a time; only its user can read its files.

mod handover;

use crate::disk::Disk;
use crate::error::OpenError;
use crate::levels::Blocks;
use crate::memory::Memory;
use crate::namespace::{Backend, Namespace};
use crate::redis::Redis;
use crate::settings::{Durability, Engine, NamespaceSettings, Settings};
use std::cell::RefCell;
use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;

/// The most open files; others are reopened when they are read.
const OPEN_FILES: usize = 256;

/// An open store.
#[derive(Debug)]
pub struct Store {
    settings: Settings,
    namespaces: Vec<Rc<Namespace>>,
    /// Dropped last, so that no other process opens the folder before.
    lock: RefCell<Option<File>>,
}

impl Store {
    /// Opens a store, on the loop that will use it. Replays the journals, which takes a moment
    /// after a crash.
    ///
    /// # Errors
    /// Another process has the store open, the folder cannot be used, or a namespace is damaged.
    pub fn open(settings: &Settings) -> Result<Self, OpenError> {
        match &settings.engine {
            Engine::Folder(folder) => Self::in_folder(settings, folder),
            Engine::Redis(redis) => {
                let redis = Redis::start(settings, redis);
                let redis = redis.map_err(|source| OpenError::Threads { source })?;
                let in_redis = |namespace: &NamespaceSettings| {
                    let backend = Backend::Redis(redis.clone(), redis.prefix(&namespace.name));
                    Rc::new(Namespace::new(namespace.clone(), backend))
                };
                let namespaces = settings.namespaces.iter().map(in_redis).collect();
                Ok(Self::new(settings, namespaces, None))
            }
        }
    }

    fn in_folder(settings: &Settings, folder: &Path) -> Result<Self, OpenError> {
        let (backends, lock) = open_folder(settings, folder)?;
        let namespaces = settings.namespaces.iter().zip(backends);
        let namespaces =
            namespaces.map(|(one, backend)| Rc::new(Namespace::new(one.clone(), backend)));
        Ok(Self::new(settings, namespaces.collect(), Some(lock)))
    }

    fn new(settings: &Settings, namespaces: Vec<Rc<Namespace>>, lock: Option<File>) -> Self {
        let (settings, lock) = (settings.clone(), RefCell::new(lock));
        Self { settings, namespaces, lock }
    }

    /// The namespace with this name.
    pub fn namespace(&self, name: &str) -> Option<&Rc<Namespace>> {
        self.namespaces.iter().find(|namespace| namespace.name() == name)
    }

    /// All namespaces, in the order of the settings.
    pub fn namespaces(&self) -> &[Rc<Namespace>] {
        &self.namespaces
    }
}

/// Opens the namespaces of a folder, in the order of the settings.
fn open_folder(settings: &Settings, folder: &Path) -> Result<(Vec<Backend>, File), OpenError> {
    let lock = lock(folder)?;
    let all = folder.join("namespaces");
    make_private(&all).map_err(|source| OpenError::Io { path: all.clone(), source })?;
    let blocks = Blocks::new(settings.cache_bytes, OPEN_FILES);
    let open = |namespace: &NamespaceSettings| {
        Ok(match namespace.durability {
            Durability::Memory => {
                Backend::Memory(Box::new(Memory::new(namespace.memory_max_bytes)))
            }
            durability => {
                let folder = all.join(&namespace.name);
                Backend::Disk(Box::new(Disk::open(&folder, durability, settings, &blocks)?))
            }
        })
    };
    let backends = settings.namespaces.iter().map(open).collect::<Result<_, OpenError>>()?;
    Ok((backends, lock))
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

/// Earlier releases created folders that other users could read.
fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

#[cfg(test)]
pub(crate) mod tests;
