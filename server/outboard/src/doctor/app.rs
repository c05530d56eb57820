//! The application under examination: its configuration with one worker on a free port, the
//! server that runs it, and the requests.

use outboard_config::{AccessLog, Config, Count, Diagnostics, Isolation, LogTarget, Mode, Worker};
use outboard_gateway::server::{AdminSocket, Options, serve};
use outboard_gateway::server_event::ServerEvent;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, mpsc};

/// Why the application could not be examined.
pub(super) enum Failure {
    /// An error in the arguments.
    User(String),
    Config(Diagnostics),
    /// The server did not start, or did not respond.
    Server(String),
}

/// A request to send.
pub(super) struct Request {
    method: String,
    path: String,
}

impl Request {
    /// Parses "GET /path".
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            [method, path] if path.starts_with('/') => {
                Ok(Self { method: method.to_owned(), path: path.to_owned() })
            }
            _ => Err(Failure::User(format!("\"{text}\" is not a request: write \"GET /path\""))),
        }
    }

    /// Sends it on a new connection and returns the status.
    fn send(&self, address: &str) -> io::Result<u16> {
        let mut stream = TcpStream::connect(address)?;
        let Self { method, path } = self;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response)?;
        let line = String::from_utf8_lossy(&response[..response.len().min(12)]).into_owned();
        line.split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or_else(|| io::Error::other("the server closed the connection without a response"))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// The configuration of only the app to examine.
pub(super) fn config(dir: Option<&Path>, file: Option<&Path>) -> Result<Config, Failure> {
    let beside = dir.map(|dir| dir.join("outboard.toml")).filter(|file| file.exists());
    let mut config = match (file.or(beside.as_deref()), dir) {
        (Some(file), _) => Config::load(file).map_err(Failure::Config)?,
        (None, dir) => of_folder(dir.unwrap_or(Path::new(".")))?,
    };
    config.apps.retain(|app| matches!(app.mode, Mode::Worker(_)));
    config.apps.truncate(1);
    let Some(app) = config.apps.first_mut() else {
        let message = "no app is in worker mode; in classic mode no state persists";
        return Err(Failure::User(message.into()));
    };
    app.hosts.clear();
    app.pool.min = Count::Fixed(1);
    app.pool.max = Count::Fixed(1);
    app.pool.loopback_slots = 0;
    app.pool.max_requests = None;
    app.pool.max_worker_memory_bytes = None;
    app.log.access = AccessLog { path: LogTarget::Off, ..app.log.access.clone() };
    let alone = Config::for_directory(&app.root, "127.0.0.1:0").map_err(Failure::Config)?;
    config.listeners = alone.listeners;
    Ok(config)
}

/// Without a configuration: worker.php of the directory, or else its front controller.
fn of_folder(dir: &Path) -> Result<Config, Failure> {
    let mut config = Config::for_directory(dir, "127.0.0.1:0").map_err(Failure::Config)?;
    for app in &mut config.apps {
        let scripts = [dir.join("worker.php"), app.root.join("index.php")];
        let Some(script) = scripts.into_iter().find(|script| script.is_file()) else {
            let message =
                format!("{} has no outboard.toml, worker.php or index.php", dir.display());
            return Err(Failure::User(message));
        };
        app.front_controller = None;
        app.mode = Mode::Worker(Worker {
            direct: false,
            script: std::path::absolute(&script).unwrap_or(script),
            concurrency: 1,
            isolation: Isolation::Reset,
            watch: true,
            frankenphp: true,
            class: None,
            starts_server: false,
            arguments: Vec::new(),
            exit_ends_script: false,
            state_report: None,
        });
    }
    Ok(config)
}

/// The results of the requests.
pub(super) struct Examined {
    pub(super) report: String,
    /// The output of PHP and the server.
    pub(super) log: String,
    /// Statuses of the first round.
    pub(super) statuses: Vec<u16>,
}

/// Sends the requests twice, and the first one once more to see the state after the second round.
pub(super) fn examine(
    mut config: Config,
    host_binary: PathBuf,
    requests: &[Request],
) -> Result<Examined, Failure> {
    let directory = TempDir::new().map_err(|error| Failure::Server(error.to_string()))?;
    let report = directory.0.join("report");
    write_for_all(&report).map_err(|error| Failure::Server(error.to_string()))?;
    let log = directory.0.join("log");
    write_for_all(&log).map_err(|error| Failure::Server(error.to_string()))?;
    config.log.error.path = LogTarget::File(log.clone());
    let mut script = PathBuf::new();
    for app in &mut config.apps {
        app.log.error.path = LogTarget::File(log.clone());
        if let Mode::Worker(worker) = &mut app.mode {
            worker.state_report = Some(report.clone());
            script.clone_from(&worker.script);
        }
    }
    let started = start(config, host_binary, &directory.0.join("admin.sock"));
    let address = started.map_err(|failure| why_not(failure, &script))?;
    let mut statuses = Vec::new();
    for request in requests.iter().chain(requests).chain(requests.first()) {
        let status = request
            .send(&address)
            .map_err(|error| Failure::Server(format!("{request}: {error}")))?;
        statuses.push(status);
    }
    statuses.truncate(requests.len());
    let report = std::fs::read(&report).map_err(|error| Failure::Server(error.to_string()))?;
    let log = std::fs::read(&log).unwrap_or_default();
    Ok(Examined {
        report: String::from_utf8_lossy(&report).into_owned(),
        log: String::from_utf8_lossy(&log).into_owned(),
        statuses,
    })
}

/// Improves the error for a page that is not a worker script: its output is not the problem.
fn why_not(failure: Failure, script: &Path) -> Failure {
    match failure {
        Failure::Server(message) if message.contains("ended without a call for a request") => {
            Failure::User(format!(
                "{} is no worker script: it ended without asking for a request. In classic mode \
                 nothing is left behind; a worker calls Outboard\\serve() or \
                 Outboard\\handle_request()",
                script.display()
            ))
        }
        other => other,
    }
}

/// PHP may run as another user.
fn write_for_all(path: &Path) -> io::Result<()> {
    std::fs::write(path, "")?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))
}

/// Serves in a thread until the process ends, and returns the address.
fn start(config: Config, host_binary: PathBuf, admin: &Path) -> Result<String, Failure> {
    let (sender, events) = mpsc::channel();
    let ready = sender.clone();
    let admin = admin.to_owned();
    std::thread::spawn(move || {
        let again = config.clone();
        let options = Options {
            load: Arc::new(move |_| Ok(again.clone())),
            name: None,
            admin_socket: Some(AdminSocket::IfFree(admin)),
            host_binary,
            spawner: None,
            pid_file: None,
            sockets: Vec::new(),
            files: Vec::new(),
            starter: None,
            predecessor: None,
            link: None,
            notify: Rc::new(move |event| {
                if let ServerEvent::Ready(facts) = event {
                    // The receiver waits for this.
                    let _ = ready.send(Ok(facts.listeners.first().cloned().unwrap_or_default()));
                }
            }),
            alive_every_ms: None,
        };
        if let Err(error) = serve(config, options) {
            let _ = sender.send(Err(error.to_string()));
        }
    });
    match events.recv() {
        Ok(Ok(listener)) => {
            Ok(listener.trim_start_matches("http://").trim_end_matches('/').to_owned())
        }
        Ok(Err(message)) => Err(Failure::Server(message)),
        Err(_) => Err(Failure::Server("the server exited".into())),
    }
}

/// A temporary directory for the report, removed at the end.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("outboard-doctor-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A failure leaves only a temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
