//! Drops root's privileges: addresses, keys and logs are opened as root, then the gateway becomes a
//! user of its own.
//!
//! Called by the server before its loop starts. Invariants: PHP never runs as the gateway's user,
//! so it can neither read the gateway's memory nor send it signals nor use its admin socket; no
//! thread or process was started before, so only the spawner, which starts PHP as the apps' users,
//! remains root; the gateway's user owns every file that the gateway writes to; root cannot be
//! regained. See `docs/decisions/0016-users-and-privileges.md`.

mod app_users;
mod confinement;
mod files;
mod leftovers;

use crate::listeners;
use crate::options::{AdminSocket, Options};
use crate::server_error::ServerError;
use crate::shards;
use crate::streams;
use outboard_config::{Config, ListenAddress, Listener};
use outboard_http_server::{
    self as http_server, BindError, InheritedListener, bind_http3_before, is_among_datagrams,
};
use outboard_log::Opener;
use outboard_spawner::users::{self, User};
use outboard_spawner::{Grants, Spawner};
use outboard_stream_server::bind_datagram_before;
use rustix::fs::chown;
use rustix::process::{
    DumpableBehavior, Gid, Uid, geteuid, parent_process_death_signal, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Users of the gateway if none is configured: the first that exists and that no app runs as.
const OWN_USERS: [&str; 3] = ["outboard", "nobody", "daemon"];

/// Users of PHP if root starts the server and none is configured: the first that exists.
const PHP_USERS: [&str; 2] = ["www-data", "nobody"];

const ROOT: &str = "root";

/// The result of dropping root's privileges.
#[derive(Debug, Default)]
pub(crate) struct Privileges {
    /// Starts PHP after root's privileges were dropped.
    pub(crate) spawner: Option<Arc<Spawner>>,
    /// Sockets that were bound as root.
    pub(crate) sockets: Vec<OwnedFd>,
    /// Files in directories of root, which are removed when the server stops.
    pub(crate) leftovers: Vec<PathBuf>,
    /// Whether another server removes them.
    are_left: AtomicBool,
    /// Files of a predecessor that are removed as well.
    inherited: Mutex<Vec<PathBuf>>,
    /// Warnings for the log, which is opened later.
    pub(crate) warnings: Vec<String>,
    /// The user of apps that name none.
    php_user: Option<&'static str>,
}

impl Privileges {
    /// Opens files that the gateway's user may not open.
    pub(crate) fn opener(&self) -> Opener {
        Opener::new(self.spawner.clone())
    }

    /// Sets the user of the apps that name none, and the users of all.
    pub(crate) fn set_php_user(&self, config: &mut Config) {
        app_users::set(config, self.php_user, self.spawner.is_none());
    }
}

/// Becomes the gateway's user if root started the server, after the addresses were bound. As any
/// user, other processes of that user cannot read its memory afterwards, and programs that it
/// starts have none of its capabilities.
///
/// # Errors
/// Why that failed; the server does not start.
pub(crate) fn drop_root(config: &mut Config, options: &Options) -> Result<Privileges, ServerError> {
    let are_left = AtomicBool::new(options.predecessor.is_some());
    let mut privileges = Privileges { are_left, ..Privileges::default() };
    match &options.spawner {
        Some(program) if geteuid().is_root() => {
            if let Some(app) = config.apps.iter().find(|app| app.user.as_deref() == Some(ROOT)) {
                let name = &app.name;
                privileges.warnings.push(format!(
                    "the PHP of app {name} runs as root, as configured, and so does the gateway: \
                     a vulnerability of the application exposes the machine"
                ));
            } else {
                become_gateway_user(config, options, program, &mut privileges)
                    .inspect_err(|_| privileges.remove_leftovers())?;
            }
        }
        _ => {}
    }
    privileges.set_php_user(config);
    isolate_process().map_err(|error| {
        let message = format!("cannot protect the gateway from other processes: {error}");
        ServerError::setup_because(message, error)
    })?;
    Ok(privileges)
}

fn become_gateway_user(
    config: &mut Config,
    options: &Options,
    spawner: &Path,
    privileges: &mut Privileges,
) -> Result<(), ServerError> {
    if config.apps.iter().any(|app| app.user.is_none()) {
        let user = default_php_user(config)?;
        privileges.php_user = Some(user);
        privileges.warnings.push(format!(
            "root started the server and no `user` is configured: PHP runs as {user}"
        ));
    }
    privileges.set_php_user(config);
    let apps = users_of_apps(config)?;
    let own = own_user(config, &apps)?;
    (privileges.sockets, privileges.leftovers) = bind(config, options, &own)?;
    privileges.leftovers.extend(options.pid_file.clone());
    files::change_owner(config, &own, &apps).map_err(ServerError::setup)?;
    let leftovers = [privileges.leftovers.clone(), options.files.clone()].concat();
    let grants = Grants { leftovers, ..grants(config, options, &apps) };
    let started = Spawner::start(spawner, grants).map_err(|error| {
        let message = format!("cannot start {} spawner: {error}", spawner.display());
        ServerError::setup_because(message, error)
    })?;
    privileges.spawner = Some(started);
    become_user(&own).map_err(|error| {
        let message = format!(
            "cannot become user {}: {error}; in a container where root cannot become another user, \
             set user = \"root\" or --user root",
            own.uid.as_raw()
        );
        ServerError::setup_because(message, error)
    })?;
    files::check(config).map_err(ServerError::setup)?;
    privileges.warnings.extend(confinement::enter(config));
    Ok(())
}

/// The user of apps that name none; it must be able to read their roots.
fn default_php_user(config: &Config) -> Result<&'static str, ServerError> {
    let found = PHP_USERS.into_iter().find_map(|name| Some((name, users::user(name, None).ok()?)));
    let (name, user) = found.ok_or_else(|| {
        ServerError::setup("root started the server: set user = \"…\" for PHP".to_owned())
    })?;
    for app in config.apps.iter().filter(|app| app.user.is_none()) {
        if !files::can_enter(&app.root, &user) {
            return Err(ServerError::setup(format!(
                "root started the server and no `user` is configured; PHP would run as {name}, which \
                 cannot read {}: permit it, set another user (user = \"…\", --user …), or run PHP as \
                 root (user = \"root\", --user root)",
                app.root.display()
            )));
        }
    }
    Ok(name)
}

/// The users that PHP will run as.
fn users_of_apps(config: &Config) -> Result<Vec<User>, ServerError> {
    let apps = config.apps.iter();
    let users = apps.map(|app| {
        let name = app.user.as_deref().unwrap_or(ROOT);
        let user = users::user(name, app.group.as_deref())
            .map_err(|why| ServerError::setup(format!("app {}: {why}", app.name)))?;
        let is_root = user.uid.is_root() || user.gid.is_root();
        if is_root {
            let why = "is an alias of root, or has root's group";
            return Err(ServerError::setup(format!("app {}: user {name} {why}", app.name)));
        }
        Ok(user)
    });
    users.collect()
}

/// The user that the gateway becomes. It has the apps' groups, so that it can read files that their
/// groups may read.
fn own_user(config: &Config, apps: &[User]) -> Result<User, ServerError> {
    let is_of_app = |user: &User| apps.iter().any(|app| app.uid == user.uid);
    let mut own = match &config.gateway_user {
        Some(name) => {
            let user = users::user(name, None).map_err(ServerError::setup)?;
            if user.uid.is_root() || is_of_app(&user) {
                return Err(ServerError::setup(format!(
                    "gateway_user = \"{name}\" is root or a user that PHP runs as: the gateway has \
                     keys that PHP must not read, so it needs a user of its own"
                )));
            }
            user
        }
        None => {
            let known = OWN_USERS.into_iter().filter_map(|name| users::user(name, None).ok());
            known.into_iter().find(|user| !is_of_app(user)).ok_or_else(|| {
                let hint = "create one: adduser --system --group --no-create-home outboard";
                ServerError::setup(format!("there is no user for the gateway; {hint}"))
            })?
        }
    };
    own.groups.extend(apps.iter().map(|app| app.gid));
    own.groups.sort_by_key(|group| group.as_raw());
    own.groups.dedup();
    Ok(own)
}

/// The spawner serves only requests for users, programs and files that the configuration names.
fn grants(config: &Config, options: &Options, apps: &[User]) -> Grants {
    let hosts = config.apps.iter().filter_map(|app| app.php.host_binary.clone());
    let certificates = config.listeners.iter().flat_map(|listener| &listener.certificates);
    let pem = certificates.flat_map(|files| {
        [Some(&files.certificate), Some(&files.key), files.ocsp.as_ref()].into_iter().flatten()
    });
    let clients = config.listeners.iter().filter_map(|listener| listener.clients.as_ref());
    let clients = clients
        .flat_map(|clients| std::iter::once(&clients.authorities).chain(clients.revoked.as_ref()));
    let pem = pem.chain(clients).cloned();
    Grants {
        users: apps.iter().map(|user| (user.uid.as_raw(), user.gid.as_raw())).collect(),
        programs: hosts.chain([options.host_binary.clone()]).collect(),
        files: pem.chain([config.file.clone()]).chain(config.files.iter().cloned()).collect(),
        logs: files::logs(config).map(Path::to_owned).collect(),
        leftovers: Vec::new(),
    }
}

/// The bound sockets, and the paths of Unix sockets.
fn bind(
    config: &Config,
    options: &Options,
    own: &User,
) -> Result<(Vec<OwnedFd>, Vec<PathBuf>), BindError> {
    let requested = options.admin_socket.as_ref();
    let admin_path = match (requested, &config.admin.socket) {
        (Some(AdminSocket::Always(path)), _) | (Some(AdminSocket::IfFree(path)), None) => {
            Some(path)
        }
        _ => None,
    };
    let admin: Vec<&Path> =
        config.admin.socket.iter().chain(admin_path).map(|path| path.as_path()).collect();
    let of_apps = listeners::addresses(config).into_iter();
    let of_apps = of_apps.map(|(address, threads)| (address, threads, false));
    let of_admin = admin.iter().map(|path| (listeners::admin_address(config, path), 1, true));
    let (mut sockets, mut paths) = (Vec::new(), Vec::new());
    for (address, threads, is_admin) in of_apps.chain(of_admin) {
        if http_server::is_among(&options.sockets, &address) {
            continue;
        }
        let bound = match http_server::bind_before(threads, &address, config.io.backlog) {
            // Another server of this user has it: this one starts without.
            Err(_) if is_optional(&address, requested) => continue,
            bound => bound?,
        };
        for InheritedListener { socket, path } in bound {
            if let Some(path) = path {
                // If that fails, root can still use the socket.
                let group = if is_admin { own.gid } else { group_of_clients(config, own) };
                let _ = chown(&path, Some(own.uid), Some(group));
                if is_admin {
                    listeners::set_group(config, &path)
                        .map_err(|source| BindError::new(address.clone(), source))?;
                }
                paths.push(path);
            }
            sockets.push(socket);
        }
    }
    let is_bound = |one: &&Listener| is_among_datagrams(&options.sockets, &one.address);
    for listener in config.listeners.iter().filter(|one| one.http3 && !is_bound(one)) {
        sockets.extend(bind_http3_before(shards::count(config), &listener.address)?);
    }
    for listener in
        config.listeners.iter().filter(|one| streams::is_datagram(one) && !is_bound(one))
    {
        let Some(InheritedListener { socket, path }) = bind_datagram_before(&listener.address)?
        else {
            continue;
        };
        if let Some(path) = path {
            // As above.
            let _ = chown(&path, Some(own.uid), Some(group_of_clients(config, own)));
            paths.push(path);
        }
        sockets.push(socket);
    }
    Ok((sockets, paths))
}

/// The group of a Unix socket: a proxy in front of it is a member of the configured group, or of
/// the user's, to which mode 0660 gives access.
fn group_of_clients(config: &Config, own: &User) -> Gid {
    let named = config.group.as_deref().and_then(|name| users::group_id(name).ok());
    let user = config.user.as_deref().and_then(|name| users::user(name, None).ok());
    named.or(user.map(|user| user.gid)).unwrap_or(own.gid)
}

fn is_optional(address: &ListenAddress, admin_socket: Option<&AdminSocket>) -> bool {
    matches!((address, admin_socket), (ListenAddress::Unix { path, .. }, Some(AdminSocket::IfFree(free))) if path == free)
}

/// Cannot be undone: groups first, the user last (setuid(2)), which removes all capabilities. The
/// calls affect only this thread, so it must be the only one.
fn become_user(user: &User) -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(io::Error::other("there are other threads, which would remain root"));
    }
    let with_parent = parent_process_death_signal()?;
    set_thread_groups(&user.groups)?;
    set_thread_res_gid(user.gid, user.gid, user.gid)?;
    set_thread_res_uid(user.uid, user.uid, user.uid)?;
    // The kernel clears it when the user changes (PR_SET_PDEATHSIG in prctl(2)).
    set_parent_process_death_signal(with_parent)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Prevents child processes from inheriting capabilities of the service manager, and other
/// processes from reading the gateway's memory.
fn isolate_process() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let current = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..current })?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Whether the mode of a file gives the user these permissions.
fn has_permissions(user: &User, owner: (Uid, Gid), mode: u32, permissions: u32) -> bool {
    let (uid, gid) = owner;
    let shift = match () {
        () if user.uid == uid => 6,
        () if user.gid == gid || user.groups.contains(&gid) => 3,
        () => 0,
    };
    mode >> shift & permissions == permissions
}

#[cfg(test)]
mod tests;
