//! `outboard serve` of an application or a configuration; [`crate::named`] serves a named server.

use crate::admin_client::default_socket;
use crate::instances::InstanceDirs;
use crate::notify::{self, ServiceManager};
use crate::php_hosts::{self, with_versions};
use crate::terminal::{Terminal, say};
use crate::upgrade::{self, Inheritance};
use clap::Args;
use outboard_config::{Config, Domains};
use outboard_gateway::server::{AdminSocket, Load, Options, ServerError, serve};
use outboard_gateway::server_event::{Ready, ServerEvent};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The directory of the application, or a configuration file.
    #[arg(value_name = "DIR|FILE.toml")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, short, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) config: Option<PathBuf>,
    /// Serve the directory in development mode: changes take effect at once, pages reload, and errors
    /// are shown with their source code.
    #[arg(long, conflicts_with = "name")]
    pub(crate) dev: bool,
    /// Serve a named server in the foreground, for a service manager.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dir", "config", "admin"])]
    pub(crate) name: Option<String>,
    /// With --name: continue in the background once it is ready. Used by `outboard start`.
    #[arg(long, hide = true, requires = "name")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) dirs: InstanceDirs,
    /// Address for a directory: ADDRESS:PORT or unix:PATH [default: 127.0.0.1:8080].
    ///
    /// Port 0 selects a free port. A configuration file has `listen` instead.
    #[arg(long, short, value_name = "ADDRESS", conflicts_with = "name")]
    pub(crate) listen: Option<String>,
    /// Serve the directory as this domain, over HTTPS with a certificate that is obtained and renewed
    /// automatically. May be given more than once.
    ///
    /// This agrees to the terms of service of the certificate authority. Ports 443 and 80 are opened; port
    /// 80 redirects to HTTPS. `--listen` sets the address of HTTPS instead.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "dev", "config"])]
    pub(crate) domain: Vec<String>,
    /// With --domain: the address that the certificate authority may write to.
    #[arg(long, value_name = "ADDRESS", requires = "domain")]
    pub(crate) email: Option<String>,
    /// With --domain: the address of HTTP [default: port 80].
    #[arg(long, value_name = "ADDRESS", requires = "domain")]
    pub(crate) listen_http: Option<String>,
    /// With --domain: the URL of the directory of another ACME authority, or `local`.
    #[arg(long, value_name = "URL", requires = "domain")]
    pub(crate) acme_directory: Option<String>,
    /// With --domain: a certificate (PEM) that is trusted for the connection to the ACME authority.
    #[arg(long, value_name = "FILE", requires = "domain")]
    pub(crate) acme_ca: Option<PathBuf>,
    /// With --domain: the directory of accounts, keys and certificates [default:
    /// /var/lib/outboard/certificates, or ~/.local/share/outboard/certificates].
    #[arg(long, value_name = "DIR", requires = "domain")]
    pub(crate) acme_storage: Option<PathBuf>,
    /// User that PHP runs as if root starts the server, instead of the configured one; `root` runs
    /// everything as root.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The admin socket, for `outboard status`.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// The PHP host to use instead of the one in the directory of this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
    /// Take over the sockets of the server at the other end of standard input. Used by `outboard upgrade`.
    #[arg(long, hide = true)]
    pub(crate) take_over: bool,
}

/// The default configuration file.
const IN_FOLDER: &str = "outboard.toml";

pub(crate) fn run(arguments: &ServeArguments, terminal: &Terminal) -> ExitCode {
    let source = match Source::of(arguments) {
        Ok(source) => source,
        Err(message) => return terminal.fail(&message, 2),
    };
    let inherited =
        upgrade::launch().and_then(|launch| upgrade::inherit(arguments.take_over, launch));
    let Inheritance { starter, predecessor, estate } = match inherited {
        Ok(inherited) => inherited,
        Err(message) => return terminal.fail(&message, 1),
    };
    let (console, manager) = (*terminal, ServiceManager::of_environment());
    let admin_socket = arguments.admin.clone().unwrap_or_else(default_socket);
    let options = Options {
        load: with_versions(with_user(source.loader(), arguments.user.clone())),
        name: None,
        admin_socket: Some(AdminSocket::IfFree(admin_socket)),
        host_binary: host_binary(arguments),
        spawner: std::env::current_exe().ok(),
        pid_file: None,
        sockets: estate.sockets,
        files: estate.files,
        link: estate.link,
        starter,
        predecessor,
        notify: Rc::new(move |event| {
            if let ServerEvent::Ready(ready) = event {
                announce(ready, &console);
            }
            manager.on_event(event);
        }),
        alive_every_ms: notify::alive_every_ms(),
    };
    run_until_stopped(options, terminal)
}

/// Serves until it is stopped, or reports why it does not start.
pub(crate) fn run_until_stopped(options: Options, terminal: &Terminal) -> ExitCode {
    raise_descriptor_limit();
    let predecessor = options.predecessor.clone();
    let served = match (options.load)(&|path| File::open(path)) {
        Ok(config) => serve(config, options),
        Err(diagnostics) => Err(ServerError::Config(diagnostics)),
    };
    if let (Some(predecessor), Err(error)) = (predecessor, &served) {
        predecessor.report_failure(&match error {
            ServerError::Config(diagnostics) => diagnostics.render(false),
            error => error.to_string(),
        });
    }
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(ServerError::Config(diagnostics)) => {
            eprint!("{}", diagnostics.render(terminal.color_err));
            ExitCode::from(2)
        }
        Err(error @ (ServerError::Bind(_) | ServerError::Setup { .. })) => {
            terminal.fail(&error.to_string(), 2)
        }
        Err(error) => terminal.fail(&error.to_string(), 1),
    }
}

/// The given PHP host, or the one built with this gateway.
pub(crate) fn host_binary(arguments: &ServeArguments) -> PathBuf {
    arguments.php_host.clone().unwrap_or_else(php_hosts::default)
}

/// The source of the configuration.
enum Source {
    File(PathBuf),
    Directory { dir: PathBuf, listen: String, is_development: bool },
    Domains { dir: PathBuf, domains: Domains },
}

impl Source {
    /// # Errors
    /// Options that conflict with a configuration file.
    fn of(arguments: &ServeArguments) -> Result<Self, String> {
        let dir = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        if !arguments.domain.is_empty() {
            return match is_configuration(&dir) {
                true => {
                    Err("--domain is for a directory: write `tls = \"auto\"` in the file"
                        .to_owned())
                }
                false => Ok(Self::Domains { dir, domains: domains(arguments) }),
            };
        }
        let named = arguments.config.clone();
        let given = || arguments.dir.clone().filter(|path| is_configuration(path));
        let here = || Some(PathBuf::from(IN_FOLDER)).filter(|file| file.exists());
        let found = || if arguments.dir.is_none() { here() } else { None };
        if let Some(file) = named.or_else(given).or_else(found) {
            return match (&arguments.listen, arguments.dev) {
                (None, false) => Ok(Self::File(file)),
                (Some(address), _) => Err(format!(
                    "--listen {address} is for a directory: {0} has `listen`. Change it in {0}",
                    file.display()
                )),
                (None, true) => Err(format!(
                    "--dev is for a directory: write `environment = \"development\"` in {}",
                    file.display()
                )),
            };
        }
        Ok(Self::Directory {
            dir,
            listen: arguments.listen.clone().unwrap_or_else(|| "127.0.0.1:8080".to_owned()),
            is_development: arguments.dev,
        })
    }

    /// Reads it, now and again at each reload.
    fn loader(self) -> Load {
        Arc::new(move |open| match &self {
            Self::File(file) => Config::load_by(file, open),
            Self::Domains { dir, domains } => Config::for_domains(dir, domains),
            Self::Directory { dir, listen, is_development: true } => {
                Config::for_development(dir, listen)
            }
            Self::Directory { dir, listen, is_development: false } => {
                Config::for_directory(dir, listen)
            }
        })
    }
}

fn domains(arguments: &ServeArguments) -> Domains {
    // With IPv6, one socket is for both.
    let any = if Path::new("/proc/net/if_inet6").exists() { "[::]" } else { "0.0.0.0" };
    let at =
        |given: &Option<String>, port| given.clone().unwrap_or_else(|| format!("{any}:{port}"));
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    Domains {
        names: arguments.domain.clone(),
        https: at(&arguments.listen, 443),
        http: at(&arguments.listen_http, 80),
        email: arguments.email.clone(),
        directory: arguments.acme_directory.clone(),
        ca: arguments.acme_ca.as_ref().map(absolute).as_ref().map(text),
        storage: arguments.acme_storage.as_ref().map(absolute).as_ref().map(text),
    }
}

/// The working directory may change, and is not that of the configuration.
fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}

/// Recognises a file by its name, even if it is missing, so that the error is about the file.
fn is_configuration(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml") && !path.is_dir()
}

/// Replaces the default user of the apps.
pub(crate) fn with_user(load: Load, user: Option<String>) -> Load {
    let Some(user) = user else { return load };
    Arc::new(move |open| {
        let mut config = load(open)?;
        let general = config.user.replace(user.clone());
        config.set_by_command_line("user", &user);
        for app in config.apps.iter_mut().filter(|app| app.user == general) {
            app.user = Some(user.clone());
        }
        Ok(config)
    })
}

/// Each connection and worker needs descriptors; the soft limit of a shell is 1,024.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // A lower limit only means fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

pub(crate) fn announce(ready: &Ready, terminal: &Terminal) {
    for (name, php_version, root) in &ready.apps {
        let php = terminal.dim(&format!("PHP {php_version}"));
        say!("app {name}: {} {php}", root.display());
    }
    for listener in &ready.listeners {
        say!("listening on {}", terminal.bold(listener));
    }
    if let Some(socket) = &ready.admin_socket {
        let hint = format!("outboard status --admin {}", socket.display());
        say!("{}", terminal.dim(&hint));
    }
}
