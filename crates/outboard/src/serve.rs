//! `outboard serve`.

use crate::admin_client::default_socket;
use crate::cli::ServeArguments;
use crate::terminal::Terminal;
use outboard_config::{Config, Diagnostics};
use outboard_gateway::server::{Options, Ready, ServerError, serve};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn run(arguments: &ServeArguments, terminal: &Terminal) -> ExitCode {
    raise_descriptor_limit();
    let load = loader(arguments);
    let config = match load() {
        Ok(config) => config,
        Err(diagnostics) => {
            eprint!("{}", diagnostics.render(terminal.color_err));
            return ExitCode::from(2);
        }
    };
    let host_binary = match &arguments.php_host {
        Some(path) => path.clone(),
        None => host_beside_us(),
    };
    let told = *terminal;
    let options = Options {
        load,
        admin_socket: Some(arguments.admin.clone().unwrap_or_else(default_socket)),
        host_binary,
        ready: Box::new(move |ready| announce(ready, &told)),
        protocols: Vec::new(),
    };
    match serve(config, options) {
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

fn announce(ready: &Ready, terminal: &Terminal) {
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
