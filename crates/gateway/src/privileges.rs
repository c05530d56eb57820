//! Who the server is: root for as long as addresses, keys and logs need that, a user of its own
//! from then on.
//!
//! Called by the server before its loop begins. Invariants: the gateway's user is none that PHP runs
//! as, so PHP reads nothing of its memory, sends it no signal and gives it no orders; no thread and
//! no process has been started yet, so none is left behind as root but the spawner, which starts
//! PHP as the apps' users; what the gateway has to write to is its own by then; there is no way
//! back. See `docs/decisions/0016-users-and-privileges.md`.

mod files;

use crate::listeners;
use crate::options::{AdminSocket, Options};
use crate::server_error::ServerError;
use outboard_config::{Config, ListenAddress};
use outboard_http_server as http_server;
use outboard_http_server::{self, BindError, InheritedListener};
use outboard_log::Opener;
use outboard_spawner::users::{self, User};
use outboard_spawner::{Grants, Spawner};
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
use std::sync::Arc;

/// Users that the gateway may go on as when none is configured: the first that there is and that no
/// app runs as.
const OWN_USERS: [&str; 3] = ["outboard", "nobody", "daemon"];

/// Users that PHP runs as when root has started the server and none is configured.
const PHP_USERS: [&str; 2] = ["www-data", "nobody"];

const ROOT: &str = "root";

/// What became of the user that started the server.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    /// Starts PHP, once root was given up.
    pub(crate) spawner: Option<Arc<Spawner>>,
    /// BoundListener while that was possible.
    pub(crate) sockets: Vec<OwnedFd>,
    /// What lies in folders of root's and goes when the server stops.
    pub(crate) leftovers: Vec<PathBuf>,
    /// For the operator, once there is a log.
    pub(crate) warnings: Vec<String>,
    /// Of apps that name none.
    php_user: Option<&'static str>,
}

impl Identity {
    /// Opens what the gateway's user may not.
    pub(crate) fn opener(&self) -> Opener {
        Opener::new(self.spawner.clone())
    }

    /// Takes away what would be left behind, while the server holds its pid file still.
    pub(crate) fn leave(&self) {
        let Some(spawner) = &self.spawner else { return };
        for path in &self.leftovers {
            // It may have been removed by hand.
            let _ = spawner.remove(path);
        }
    }

    /// Gives the apps that name no user the one that PHP runs as here.
    pub(crate) fn settle(&self, config: &mut Config) {
        let Some(user) = self.php_user else { return };
        for app in config.apps.iter_mut().filter(|app| app.user.is_none()) {
            app.user = Some(user.to_owned());
        }
    }
}

/// Becomes the gateway's user, if root has started the server, with the addresses bound that only
/// root may bind. Whoever it is, others of the same user cannot look into its memory from then on,
/// and what it starts has none of its capabilities.
///
/// # Errors
/// Why it did not; the server does not start then.
pub(crate) fn assume(config: &mut Config, options: &Options) -> Result<Identity, ServerError> {
    let mut identity = Identity::default();
    match &options.spawner {
        Some(program) if geteuid().is_root() => {
            if let Some(app) = config.apps.iter().find(|app| app.user.as_deref() == Some(ROOT)) {
                let name = &app.name;
                identity.warnings.push(format!(
                    "the PHP of app {name} runs as root, as configured, and so does the gateway: \
                     whoever finds a hole in the application has the machine"
                ));
            } else {
                give_up_root(config, options, program, &mut identity)
                    .inspect_err(|_| identity.leave())?;
            }
        }
        _ => {}
    }
    keep_to_itself().map_err(|error| {
        let message = format!("cannot keep other processes out of the gateway's: {error}");
        ServerError::setup_because(message, error)
    })?;
    Ok(identity)
}

fn give_up_root(
    config: &mut Config,
    options: &Options,
    spawner: &Path,
    identity: &mut Identity,
) -> Result<(), ServerError> {
    if config.apps.iter().any(|app| app.user.is_none()) {
        let user = default_php_user(config)?;
        identity.php_user = Some(user);
        identity.warnings.push(format!(
            "root has started the server and no `user` is configured: PHP runs as {user}"
        ));
    }
    identity.settle(config);
    let apps = users_of_apps(config)?;
    let own = own_user(config, &apps)?;
    (identity.sockets, identity.leftovers) = bind(config, options, &own)?;
    identity.leftovers.extend(options.pid_file.clone());
    files::give(config, &own, &apps).map_err(ServerError::setup)?;
    let leftovers = identity.leftovers.clone();
    let grants = Grants { leftovers, ..grants(config, options, &apps) };
    let started = Spawner::start(spawner, grants).map_err(|error| {
        let message = format!("cannot start {} spawner: {error}", spawner.display());
        ServerError::setup_because(message, error)
    })?;
    identity.spawner = Some(started);
    become_user(&own).map_err(|error| {
        let message = format!(
            "cannot become user {}: {error}; a container that has root alone, and no rights to be \
             anybody else, takes user = \"root\" or --user root",
            own.uid.as_raw()
        );
        ServerError::setup_because(message, error)
    })?;
    files::check(config).map_err(ServerError::setup)
}

/// The user of apps that have none: one that can see what they consist of.
fn default_php_user(config: &Config) -> Result<&'static str, ServerError> {
    let found = PHP_USERS.into_iter().find_map(|name| Some((name, users::user(name, None).ok()?)));
    let (name, user) = found.ok_or_else(|| {
        ServerError::setup("root has started the server: write user = \"…\" for PHP".to_owned())
    })?;
    for app in config.apps.iter().filter(|app| app.user.is_none()) {
        if !files::can_enter(&app.root, &user) {
            return Err(ServerError::setup(format!(
                "root has started the server and no `user` is configured; {name}, as whom PHP would \
                 run, cannot read {}: let it, name another user (user = \"…\", --user …), or insist \
                 on root (user = \"root\", --user root)",
                app.root.display()
            )));
        }
    }
    Ok(name)
}

/// The users that PHP is going to run as.
fn users_of_apps(config: &Config) -> Result<Vec<User>, ServerError> {
    let apps = config.apps.iter();
    let users = apps.map(|app| {
        let name = app.user.as_deref().unwrap_or(ROOT);
        let user = users::user(name, app.group.as_deref())
            .map_err(|why| ServerError::setup(format!("app {}: {why}", app.name)))?;
        let is_root = user.uid.is_root() || user.gid.is_root();
        if is_root {
            let why = "is root by another name, or of root's group";
            return Err(ServerError::setup(format!("app {}: user {name} {why}", app.name)));
        }
        Ok(user)
    });
    users.collect()
}

/// Whom the gateway becomes. It is in the apps' groups, so as to read what they let their group
/// read.
fn own_user(config: &Config, apps: &[User]) -> Result<User, ServerError> {
    let is_of_app = |user: &User| apps.iter().any(|app| app.uid == user.uid);
    let mut own = match &config.gateway_user {
        Some(name) => {
            let user = users::user(name, None).map_err(ServerError::setup)?;
            if user.uid.is_root() || is_of_app(&user) {
                return Err(ServerError::setup(format!(
                    "gateway_user = \"{name}\" is root or a user that PHP runs as: the gateway keeps \
                     keys from PHP, so it has a user of its own"
                )));
            }
            user
        }
        None => {
            let known = OWN_USERS.into_iter().filter_map(|name| users::user(name, None).ok());
            known.into_iter().find(|user| !is_of_app(user)).ok_or_else(|| {
                let hint = "make one: adduser --system --group --no-create-home outboard";
                ServerError::setup(format!("there is no user for the gateway; {hint}"))
            })?
        }
    };
    own.groups.extend(apps.iter().map(|app| app.gid));
    own.groups.sort_by_key(|group| group.as_raw());
    own.groups.dedup();
    Ok(own)
}

/// What the configuration names is all that its spawner is ever asked for.
fn grants(config: &Config, options: &Options, apps: &[User]) -> Grants {
    let hosts = config.apps.iter().filter_map(|app| app.php.host_binary.clone());
    let certificates = config.listeners.iter().flat_map(|listener| &listener.certificates);
    let pem = certificates.flat_map(|files| [files.certificate.clone(), files.key.clone()]);
    Grants {
        users: apps.iter().map(|user| (user.uid.as_raw(), user.gid.as_raw())).collect(),
        programs: hosts.chain([options.host_binary.clone()]).collect(),
        files: pem.chain([config.file.clone()]).collect(),
        logs: files::logs(config).map(Path::to_owned).collect(),
        leftovers: Vec::new(),
    }
}

/// The sockets, and where those of the file system lie.
fn bind(
    config: &Config,
    options: &Options,
    own: &User,
) -> Result<(Vec<OwnedFd>, Vec<PathBuf>), BindError> {
    let asked_for = options.admin_socket.as_ref();
    let asked = match (asked_for, &config.admin.socket) {
        (Some(AdminSocket::Always(path)), _) | (Some(AdminSocket::IfFree(path)), None) => {
            Some(path)
        }
        _ => None,
    };
    let admin: Vec<&Path> =
        config.admin.socket.iter().chain(asked).map(|path| path.as_path()).collect();
    let of_apps = listeners::addresses(config).into_iter().map(|address| (address, false));
    let for_orders = admin.iter().map(|path| (listeners::for_orders(config, path), true));
    let (mut sockets, mut paths) = (Vec::new(), Vec::new());
    for (address, is_for_orders) in of_apps.chain(for_orders) {
        if http_server::is_among(&options.sockets, &address) {
            continue;
        }
        match http_server::bind_before(&address, config.io.backlog) {
            Ok(Some(InheritedListener { socket, path })) => {
                if let Some(path) = path {
                    // What is not given to the user is still of use to root, who asked for it.
                    let group = if is_for_orders { own.gid } else { group_of_clients(config, own) };
                    let _ = chown(&path, Some(own.uid), Some(group));
                    if is_for_orders {
                        listeners::give_to_group(config, &path)
                            .map_err(|source| BindError::new(address, source))?;
                    }
                    paths.push(path);
                }
                sockets.push(socket);
            }
            Ok(None) => {}
            // Another server of this user has it: the server goes on without.
            Err(_) if is_optional(&address, asked_for) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((sockets, paths))
}

/// A proxy before a Unix socket is a member of the configured group, or of the user's, by which
/// mode 0660 lets it in.
fn group_of_clients(config: &Config, own: &User) -> Gid {
    let named = config.group.as_deref().and_then(|name| users::group_id(name).ok());
    let user = config.user.as_deref().and_then(|name| users::user(name, None).ok());
    named.or(user.map(|user| user.gid)).unwrap_or(own.gid)
}

fn is_optional(address: &ListenAddress, admin_socket: Option<&AdminSocket>) -> bool {
    matches!((address, admin_socket), (ListenAddress::Unix { path, .. }, Some(AdminSocket::IfFree(free))) if path == free)
}

/// For good: groups first, the user last (setuid(2)), which takes all capabilities away. The calls
/// are of this thread alone, so it has to be the only one.
fn become_user(user: &User) -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(io::Error::other("there are threads, which would stay root"));
    }
    let with_parent = parent_process_death_signal()?;
    set_thread_groups(&user.groups)?;
    set_thread_res_gid(user.gid, user.gid, user.gid)?;
    set_thread_res_uid(user.uid, user.uid, user.uid)?;
    // The kernel forgets it with the old user (PR_SET_PDEATHSIG in prctl(2)).
    set_parent_process_death_signal(with_parent)?;
    // It starts no programs any more.
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Capabilities that a service manager has granted stay the gateway's own, and its memory as well.
fn keep_to_itself() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let present = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..present })?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Whether this user has a right that the mode of something gives to its owner, its group or all.
fn is_let(user: &User, owner: (Uid, Gid), mode: u32, wanted: u32) -> bool {
    let (uid, gid) = owner;
    let shift = match () {
        () if user.uid == uid => 6,
        () if user.gid == gid || user.groups.contains(&gid) => 3,
        () => 0,
    };
    mode >> shift & wanted == wanted
}
