//! `outboard serve`.

use crate::admin_client::default_socket;
use crate::cli::ServeArguments;
use crate::named;
use crate::notify::{self, ServiceManager};
use crate::terminal::Terminal;
use outboard_config::{Config, Diagnostics};
use outboard_gateway::life::{Life, Ready};
use outboard_gateway::server::{AdminSocket, Options, ServerError, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) fn run(arguments: &ServeArguments, terminal: &Terminal) -> ExitCode {
    if let Some(name) = &arguments.name {
        return named::serve::run(name, arguments, terminal);
    }
    let sockets = match notify::handed_over() {
        Ok(sockets) => sockets,
        Err(message) => return terminal.fail(&message, 1),
    };
    let (told, manager) = (*terminal, ServiceManager::of_environment());
    let admin_socket = arguments.admin.clone().unwrap_or_else(default_socket);
    let options = Options {
        load: with_user(loader(arguments), arguments.user.clone()),
        name: None,
        admin_socket: Some(AdminSocket::IfFree(admin_socket)),
        host_binary: host_binary(arguments),
        spawner: std::env::current_exe().ok(),
        sockets,
        tell: Rc::new(move |life| {
            if let Life::Ready(ready) = life {
                announce(ready, &told);
            }
            manager.hear(life);
        }),
        alive_every_ms: notify::alive_every_ms(),
        protocols: Vec::new(),
    };
    run_until_stopped(options, terminal)
}

/// Serves until it is told to stop; what does not start says why.
pub(crate) fn run_until_stopped(options: Options, terminal: &Terminal) -> ExitCode {
    raise_descriptor_limit();
    let served = match (options.load)() {
        Ok(config) => serve(config, options),
        Err(diagnostics) => Err(ServerError::Config(diagnostics)),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(ServerError::Config(diagnostics)) => {
            eprint!("{}", diagnostics.render(terminal.color_err));
            ExitCode::from(2)
        }
        Err(error @ (ServerError::Bind(_) | ServerError::Setup(_))) => {
            terminal.fail(&error.to_string(), 2)
        }
        Err(error) => terminal.fail(&error.to_string(), 1),
    }
}

/// The one that was named, or the one that was built with this gateway.
pub(crate) fn host_binary(arguments: &ServeArguments) -> PathBuf {
    arguments.php_host.clone().unwrap_or_else(host_beside_us)
}

type Load = Arc<dyn Fn() -> Result<Config, Diagnostics> + Send + Sync>;

/// What to serve, read again at each reload.
fn loader(arguments: &ServeArguments) -> Load {
    let in_folder = PathBuf::from("outboard.toml");
    if let Some(file) = &arguments.config {
        let file = file.clone();
        return Arc::new(move || Config::load(&file));
    }
    if arguments.dir.is_none() && in_folder.exists() {
        return Arc::new(move || Config::load(&in_folder));
    }
    let dir = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let listen = arguments.listen.clone();
    Arc::new(move || Config::for_directory(&dir, &listen))
}

/// The same, with another user for the apps that have none of their own.
pub(crate) fn with_user(load: Load, user: Option<String>) -> Load {
    let Some(user) = user else { return load };
    Arc::new(move || {
        let mut config = load()?;
        let general = config.user.replace(user.clone());
        for app in config.apps.iter_mut().filter(|app| app.user == general) {
            app.user = Some(user.clone());
        }
        Ok(config)
    })
}

/// The host that was built with this gateway.
pub(crate) fn host_beside_us() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).join("outboard-php")
}

/// Each connection and worker needs descriptors; the soft limit of a shell is 1,024.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // A lower limit is served as well, with fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

pub(crate) fn announce(ready: &Ready, terminal: &Terminal) {
    for (name, php_version, root) in &ready.apps {
        let php = terminal.dim(&format!("PHP {php_version}"));
        println!("app {name}: {} {php}", root.display());
    }
    for listener in &ready.listeners {
        println!("listening on {}", terminal.bold(listener));
    }
    if let Some(socket) = &ready.admin_socket {
        let hint = format!("outboard status --admin {}", socket.display());
        println!("{}", terminal.dim(&hint));
    }
}
