//! Files that the gateway writes to, given to its user while it is root.
//!
//! Called by [`super`]. Invariants: nothing is given away that the server did not make or that the
//! configuration does not name; no link leads to something else.

use super::is_let;
use outboard_config::{Config, EntityEngine, LogTarget};
use outboard_spawner::users::User;
use rustix::fd::AsFd;
use rustix::fs::{Access, AtFlags, CWD, access, chownat, fchown};
use rustix::process::{Gid, Uid};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// The files that logs go to.
pub(super) fn logs(config: &Config) -> impl Iterator<Item = &Path> {
    let logs = std::iter::once(&config.log).chain(config.apps.iter().map(|app| &app.log));
    let targets = logs.flat_map(|log| [&log.access.path, &log.error.path, &log.slow.path]);
    targets.filter_map(|target| match target {
        LogTarget::File(path) => Some(path.as_path()),
        _ => None,
    })
}

/// Gives the gateway's user what the server is going to write to.
pub(super) fn give(config: &Config, own: &User, apps: &[User]) -> Result<(), String> {
    for path in logs(config) {
        give_log(path, own).map_err(|error| format!("the log {}: {error}", path.display()))?;
    }
    let entities = config.entities.as_ref().and_then(|entities| match &entities.storage.engine {
        EntityEngine::Disk(folder) => Some(folder),
        EntityEngine::Redis(_) => None,
    });
    let of_store =
        entities.map(|folder| (folder, vec!["lock".to_owned(), "namespaces".to_owned()]));
    let caches = config.apps.iter().filter_map(|app| {
        Some((&app.page_cache.as_ref()?.disk.as_ref()?.path, vec![app.name.clone()]))
    });
    for (folder, names) in of_store.into_iter().chain(caches) {
        let given = give_folder(folder, &names, own, apps);
        given.map_err(|error| format!("the folder {}: {error}", folder.display()))?;
    }
    Ok(())
}

fn give_log(path: &Path, own: &User) -> io::Result<()> {
    let log = outboard_spawner::open_log(path)?;
    let found = log.metadata()?;
    // A device, such as /dev/null, is everybody's; of two names of a file one may be another's.
    if found.is_file() && found.nlink() == 1 {
        fchown(log.as_fd(), Some(own.uid), None)?;
    }
    Ok(())
}

/// A folder that is made is the gateway's. In one that was there it gets what a server has made
/// before, as root or as the user of an app.
fn give_folder(folder: &Path, names: &[String], own: &User, apps: &[User]) -> io::Result<()> {
    if !folder.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        return Ok(chownat(CWD, folder, Some(own.uid), Some(own.gid), AtFlags::SYMLINK_NOFOLLOW)?);
    }
    if fs::read_dir(folder)?.next().is_none() && is_former(fs::metadata(folder)?.uid(), apps) {
        chownat(CWD, folder, Some(own.uid), Some(own.gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    names.iter().try_for_each(|name| give_tree(&folder.join(name), own, apps))
}

/// A folder first, then what is in it: nobody else can change it any more by then.
fn give_tree(path: &Path, own: &User, apps: &[User]) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let is_single = found.is_dir() || (found.is_file() && found.nlink() == 1);
    if !is_single || !is_former(found.uid(), apps) {
        return Ok(());
    }
    chownat(CWD, path, Some(own.uid), Some(own.gid), AtFlags::SYMLINK_NOFOLLOW)?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            give_tree(&entry?.path(), own, apps)?;
        }
    }
    Ok(())
}

fn is_former(uid: u32, apps: &[User]) -> bool {
    uid == 0 || apps.iter().any(|app| app.uid.as_raw() == uid)
}

/// Whether a user can list a folder, as far as modes say.
pub(super) fn can_enter(folder: &Path, user: &User) -> bool {
    folder.ancestors().all(|part| {
        let Ok(found) = fs::metadata(part) else { return false };
        let owner = (Uid::from_raw(found.uid()), Gid::from_raw(found.gid()));
        is_let(user, owner, found.mode(), if part == folder { 0o5 } else { 0o1 })
    })
}

/// What the gateway needs of folders that are there, now that it is its own user.
pub(super) fn check(config: &Config) -> Result<(), String> {
    let who = "the gateway's user (gateway_user)";
    for app in &config.apps {
        access(&app.root, Access::READ_OK | Access::EXEC_OK).map_err(|error| {
            let root = app.root.display();
            format!(
                "{who} cannot read {root}: {error}; let others read it, or the group of the app's \
                 user, in which the gateway is"
            )
        })?;
    }
    let spool = &config.io.temp_dir;
    access(spool, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        format!("{who} cannot write to the folder io.spool, {}: {error}", spool.display())
    })
}
