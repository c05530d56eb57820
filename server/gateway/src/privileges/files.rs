//! Changes the owner of files that the gateway writes to, while it is root.
//!
//! Called by [`super`]. Invariants: only files that the server created or that the configuration
//! names change their owner; links are not followed.

use super::has_permissions;
use crate::certificates;
use outboard_config::{Config, EntityEngine, LogTarget};
use outboard_spawner::users::User;
use outboard_trusted_path as trusted_path;
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

/// Makes the gateway's user the owner of the files that the server writes to.
pub(super) fn change_owner(config: &Config, own: &User, apps: &[User]) -> Result<(), String> {
    for path in logs(config) {
        change_log_owner(path, own)
            .map_err(|error| format!("the log {}: {error}", path.display()))?;
    }
    let entities = config.entities.as_ref().and_then(|entities| match &entities.storage.engine {
        EntityEngine::Disk(directory) => Some(directory),
        EntityEngine::Redis(_) => None,
    });
    let of_store =
        entities.map(|directory| (directory, vec!["lock".to_owned(), "namespaces".to_owned()]));
    let caches = config.apps.iter().filter_map(|app| {
        Some((&app.page_cache.as_ref()?.disk.as_ref()?.path, vec![app.name.clone()]))
    });
    let certificates = certificates::directory(config);
    let certificates = certificates.iter().map(|(directory, names)| (directory, names.clone()));
    for (directory, names) in of_store.into_iter().chain(caches).chain(certificates) {
        // Root would follow a link that an app has put in the way.
        let existing = directory.ancestors().find(|part| part.symlink_metadata().is_ok());
        if let (Some(existing), Some(app)) = (existing, config.apps.first()) {
            trusted_path::open(existing, &app.static_files.users)
                .map_err(|refusal| format!("the directory {}: {refusal}", directory.display()))?;
        }
        let changed = change_directory_owner(directory, &names, own, apps);
        changed.map_err(|error| format!("the directory {}: {error}", directory.display()))?;
    }
    Ok(())
}

fn change_log_owner(path: &Path, own: &User) -> io::Result<()> {
    let log = outboard_spawner::open_log(path)?;
    let found = log.metadata()?;
    // A device such as /dev/null is shared; a second hard link may belong to another user.
    if found.is_file() && found.nlink() == 1 {
        fchown(log.as_fd(), Some(own.uid), None)?;
    }
    Ok(())
}

/// A new directory belongs to the gateway's user. In an existing one, the files of earlier servers
/// do, which ran as root or as the user of an app.
fn change_directory_owner(
    directory: &Path,
    names: &[String],
    own: &User,
    apps: &[User],
) -> io::Result<()> {
    if !directory.exists() {
        // The directories above stay root's, and the gateway's user has to pass through them.
        directory.parent().map_or(Ok(()), fs::create_dir_all)?;
        DirBuilder::new().mode(0o700).create(directory)?;
        return Ok(chownat(
            CWD,
            directory,
            Some(own.uid),
            Some(own.gid),
            AtFlags::SYMLINK_NOFOLLOW,
        )?);
    }
    if fs::read_dir(directory)?.next().is_none()
        && was_owned_by_server(fs::metadata(directory)?.uid(), apps)
    {
        chownat(CWD, directory, Some(own.uid), Some(own.gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    names.iter().try_for_each(|name| change_tree_owner(&directory.join(name), own, apps))
}

/// A directory first, then its entries, so that no other user can change them meanwhile.
fn change_tree_owner(path: &Path, own: &User, apps: &[User]) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let is_single = found.is_dir() || (found.is_file() && found.nlink() == 1);
    if !is_single || !was_owned_by_server(found.uid(), apps) {
        return Ok(());
    }
    chownat(CWD, path, Some(own.uid), Some(own.gid), AtFlags::SYMLINK_NOFOLLOW)?;
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            change_tree_owner(&entry?.path(), own, apps)?;
        }
    }
    Ok(())
}

fn was_owned_by_server(uid: u32, apps: &[User]) -> bool {
    uid == 0 || apps.iter().any(|app| app.uid.as_raw() == uid)
}

/// Whether a user can list a directory, according to file modes.
pub(super) fn can_enter(directory: &Path, user: &User) -> bool {
    directory.ancestors().all(|part| {
        let Ok(found) = fs::metadata(part) else { return false };
        let owner = (Uid::from_raw(found.uid()), Gid::from_raw(found.gid()));
        has_permissions(user, owner, found.mode(), if part == directory { 0o5 } else { 0o1 })
    })
}

/// Checks the access of the gateway's user to existing directories.
pub(super) fn check(config: &Config) -> Result<(), String> {
    let user = "the gateway's user (gateway_user)";
    for app in &config.apps {
        access(&app.root, Access::READ_OK | Access::EXEC_OK).map_err(|error| {
            let root = app.root.display();
            format!(
                "{user} cannot read {root}: {error}; let others read it, or the group of the app's \
                 user, which the gateway has"
            )
        })?;
    }
    let temp_dir = &config.io.temp_dir;
    access(temp_dir, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        format!("{user} cannot write to the directory io.temp_dir, {}: {error}", temp_dir.display())
    })
}

#[cfg(test)]
mod tests;
