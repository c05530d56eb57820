//! Who the server is: root for as long as addresses and logs need that, the configured user from
//! then on.
//!
//! Called by the server before its loop begins. Invariants: no thread and no process has been
//! started yet, so none is left behind as root; what the user has to write to (logs, folders of
//! its own, sockets) is its own by then; there is no way back.

use crate::listener::set;
use crate::listener::{self, BindError, Prebound};
use crate::server::{AdminSocket, ServerError};
use crate::users::{self, User};
use outboard_config::{Config, EntityEngine, ListenAddress, LogTarget};
use rustix::fd::AsFd;
use rustix::fs::{chown, fchown};
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The user that a server of root's goes on as; `None` when it stays who it is: nobody is
/// configured, or apps run as different users, which takes root.
///
/// # Errors
/// A user or group that does not exist.
fn wanted(config: &Config) -> Result<Option<User>, ServerError> {
    let Some(name) = config.user.as_deref().filter(|_| geteuid().is_root()) else {
        return Ok(None);
    };
    let user = users::user(name, config.group.as_deref()).map_err(ServerError::Setup)?;
    Ok((!is_of_several_users(config)).then_some(user))
}

/// Whether some app's PHP runs as another user than the rest.
pub(crate) fn is_of_several_users(config: &Config) -> bool {
    config.apps.iter().any(|app| (&app.user, &app.group) != (&config.user, &config.group))
}

/// Becomes the configured user, with the addresses bound that only root may bind.
///
/// # Errors
/// Why it did not; the server does not start then.
pub(crate) fn assume(
    config: &Config,
    admin_socket: Option<&AdminSocket>,
    handed_over: &[OwnedFd],
) -> Result<Vec<OwnedFd>, ServerError> {
    let Some(user) = wanted(config)? else { return Ok(Vec::new()) };
    let sockets = bind(config, admin_socket, handed_over, &user)?;
    own_files(config, &user).map_err(ServerError::Setup)?;
    become_user(&user).map_err(|error| {
        ServerError::Setup(format!("cannot become user {}: {error}", user.uid.as_raw()))
    })?;
    Ok(sockets)
}

fn bind(
    config: &Config,
    admin_socket: Option<&AdminSocket>,
    handed_over: &[OwnedFd],
    user: &User,
) -> Result<Vec<OwnedFd>, BindError> {
    let asked = match (admin_socket, &config.admin.socket) {
        (Some(AdminSocket::Always(path)), _) | (Some(AdminSocket::IfFree(path)), None) => {
            Some(path)
        }
        _ => None,
    };
    let admin = config.admin.socket.iter().chain(asked);
    let admin = admin.map(|path| ListenAddress::Unix { path: path.clone(), mode: 0o600 });
    let all = set::addresses(config).into_iter().chain(admin);
    let mut sockets = Vec::new();
    for address in all.filter(|address| !listener::is_among(handed_over, address)) {
        match listener::bind_before(&address, config.io.backlog) {
            Ok(Some(Prebound { socket, path })) => {
                if let Some(path) = path {
                    // What is not given to the user is still of use to root, who asked for it.
                    let _ = chown(&path, Some(user.uid), Some(user.gid));
                }
                sockets.push(socket);
            }
            Ok(None) => {}
            // Another server of this user has it: the server goes on without.
            Err(_) if is_optional(&address, admin_socket) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

fn is_optional(address: &ListenAddress, admin_socket: Option<&AdminSocket>) -> bool {
    matches!((address, admin_socket), (ListenAddress::Unix { path, .. }, Some(AdminSocket::IfFree(free))) if path == free)
}

/// Gives the user the files that the server is going to write to.
fn own_files(config: &Config, user: &User) -> Result<(), String> {
    let logs = std::iter::once(&config.log).chain(config.apps.iter().map(|app| &app.log));
    for target in logs.flat_map(|log| [&log.access.to, &log.error.to, &log.slow.to]) {
        if let LogTarget::File(path) = target {
            own_log(path, user).map_err(|error| format!("the log {}: {error}", path.display()))?;
        }
    }
    let entities = config.entities.as_ref().and_then(|entities| match &entities.storage.engine {
        EntityEngine::Disk(folder) => Some(folder),
        EntityEngine::Redis(_) => None,
    });
    let page_caches = config.apps.iter().filter_map(|app| app.page_cache.as_ref()?.disk.as_ref());
    for folder in entities.into_iter().chain(page_caches.map(|disk| &disk.path)) {
        own_folder(folder, user)
            .map_err(|error| format!("the folder {}: {error}", folder.display()))?;
    }
    Ok(())
}

fn own_log(path: &Path, user: &User) -> io::Result<()> {
    let log = OpenOptions::new().append(true).create(true).open(path)?;
    // A device, such as /dev/null, is everybody's.
    if log.metadata()?.is_file() {
        fchown(log.as_fd(), Some(user.uid), Some(user.gid))?;
    }
    Ok(())
}

/// One that is there already is left as it is: it may be somebody's on purpose.
fn own_folder(path: &Path, user: &User) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(path)?;
    Ok(chown(path, Some(user.uid), Some(user.gid))?)
}

/// For good: groups first, the user last (setuid(2)). The calls are of this thread alone, so it
/// has to be the only one.
fn become_user(user: &User) -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(io::Error::other("there are threads, which would stay root"));
    }
    set_thread_groups(&user.groups)?;
    set_thread_res_gid(user.gid, user.gid, user.gid)?;
    set_thread_res_uid(user.uid, user.uid, user.uid)?;
    // The change took it away, and /proc/self with it (PR_SET_DUMPABLE in prctl(2)).
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}
