//! The stack that the targets are about: `outboard serve`, with its admin socket.
//!
//! Invariant: it gets the peers' ini file, and as many PHP processes as they have, unless a
//! comparison says otherwise.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use outboard_profile::ZYGOTE;

use crate::error::{Error, Result, ResultExt};
use crate::fixture::Fixture;
use crate::group::Group;
use crate::http;
use crate::lab::Lab;
use crate::stack::Stack;
use crate::system::{free_address, is_root, write};
use crate::tls_listener::TlsListener;
use outboard_profile::process_table::{Pid, ProcessTable};

/// The name in every table.
pub const NAME: &str = "outboard";

/// The reason for targets that are not measured without an outboard binary.
pub const NOT_BUILT: &str = "OUTBOARD_BIN names no program";

/// The directory and settings to serve.
pub struct Setup {
    /// The name in tables, unique among setups that run side by side.
    pub name: &'static str,
    /// The document root.
    pub root: PathBuf,
    /// PHP workers.
    pub workers: usize,
    /// Threads of the gateway, instead of as many as it chooses.
    pub threads: Option<usize>,
    /// Further TOML lines of `[app.site]`.
    pub app: String,
    /// Further tables of the configuration.
    pub server: String,
    /// A listener for TLS beside that without.
    pub tls: Option<TlsListener>,
}

impl Setup {
    /// A script per request, as php-fpm runs it.
    pub fn classic(lab: &Lab, root: &Path) -> Self {
        let workers = lab.php_processes();
        let (threads, app, server, tls) = (None, String::new(), String::new(), None);
        Self { name: NAME, root: root.into(), workers, threads, app, server, tls }
    }

    /// A worker script that handles every path, with this many concurrent requests per worker.
    pub fn worker(fixture: &Fixture, script: &str, workers: usize, concurrency: usize) -> Self {
        let script = fixture.path(script);
        let app = format!(
            "mode = \"worker\"
[app.site.worker]
script = {script:?}
concurrency = {concurrency}
"
        );
        let (threads, server, tls) = (None, String::new(), None);
        Self { name: NAME, root: fixture.public(), workers, threads, app, server, tls }
    }

    /// A worker script whose forks handle one request each, as where no rewind is possible.
    pub fn fork(fixture: &Fixture, script: &str, workers: usize) -> Self {
        Self::rewind(fixture, script, workers)
            .with("[app.site.php.env]\nOUTBOARD_FORBID_REWIND = \"1\"\n")
    }

    /// A worker script whose workers are rewound after each request.
    pub fn rewind(fixture: &Fixture, script: &str, workers: usize) -> Self {
        let setup = Self::worker(fixture, script, workers, 1);
        Self { app: format!("{}isolation = \"rewind\"\n", setup.app), ..setup }
    }

    /// The same setup with this document root.
    pub fn rooted(self, root: &Path) -> Self {
        Self { root: root.to_owned(), ..self }
    }

    /// The same setup under another name.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same setup with this number of threads.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// The same setup with further lines in the app's table.
    pub fn with(mut self, app: &str) -> Self {
        self.app.push_str(app);
        self
    }
}

/// A script boots in the background, in less than ten seconds.
const SNAPSHOT_TRIES: usize = 100;
const SNAPSHOT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// A running gateway with its PHP host.
pub struct Outboard {
    /// The stack to measure.
    pub stack: Stack,
    binary: PathBuf,
    admin: PathBuf,
}

/// The binary to measure, if there is one: OUTBOARD_BIN, or `outboard` beside this program, or in
/// the `bin` directory of its prefix.
pub fn binary() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("OUTBOARD_BIN") {
        return Some(PathBuf::from(path)).filter(|path| path.exists());
    }
    let own = std::env::current_exe().ok()?;
    let beside = own.with_file_name("outboard");
    let prefix = own.ancestors().nth(3).map(|prefix| prefix.join("bin/outboard"));
    std::iter::once(beside).chain(prefix).find(|path| path.exists())
}

impl Outboard {
    /// Starts a gateway for a directory in classic mode; `None` without a binary.
    pub fn start(lab: &mut Lab, root: &Path) -> Result<Option<Self>> {
        let setup = Setup::classic(lab, root);
        Self::launch(lab, &setup)
    }

    /// Starts a gateway; `None` without a binary.
    pub fn launch(lab: &mut Lab, setup: &Setup) -> Result<Option<Self>> {
        binary().map(|binary| Self::launch_binary(lab, setup, &binary)).transpose()
    }

    /// Starts a gateway for each setup; none without a binary.
    pub fn launch_all(lab: &mut Lab, setups: &[Setup]) -> Result<Vec<Self>> {
        let started = setups.iter().map(|setup| Self::launch(lab, setup));
        started.filter_map(Result::transpose).collect()
    }

    /// Starts a gateway of this binary.
    pub fn launch_binary(lab: &mut Lab, setup: &Setup, binary: &Path) -> Result<Self> {
        let name = setup.name;
        let mut group = Group::new(lab, name)?;
        let directory = lab.directory(name)?;
        let ini = directory.join("php.ini");
        lab.php.ini_file(&ini)?;
        let (address, admin) = (free_address()?, directory.join("admin.sock"));
        let config = directory.join("outboard.toml");
        write(&config, configuration(lab, setup, address, &ini))?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("--config").arg(&config).arg("--admin").arg(&admin);
        group.start(lab, &command)?;
        let stack = Stack { name, address, group }.await_response()?;
        Ok(Self { stack, binary: binary.into(), admin })
    }

    /// The PHP workers: the children of the zygotes, of which there are two during a reload.
    pub fn workers(&self) -> Vec<Pid> {
        let table = ProcessTable::snapshot();
        let pids = self.stack.group.pids().into_iter();
        let processes = pids.filter_map(|pid| table.get(pid)).filter(|process| !process.zombie);
        let is_zygote = |pid: Pid| table.get(pid).is_some_and(|parent| parent.name == ZYGOTE);
        processes.filter(|process| is_zygote(process.parent)).map(|process| process.pid).collect()
    }

    /// Starts a new generation of workers and waits until the old one has been drained.
    pub fn reload(&self) -> Result<()> {
        self.command(&["reload"])
    }

    /// Requests a page until it is handled from a snapshot.
    pub fn await_snapshot(&self, path: &str) -> Result<()> {
        for _ in 0..SNAPSHOT_TRIES {
            http::get(self.stack.address, path)?;
            let mut command = Command::new(&self.binary);
            command.args(["doctor", "snapshots", "--admin"]).arg(&self.admin);
            let output = command.output().context(|| format!("run {command:?}"))?;
            if String::from_utf8_lossy(&output.stdout).contains(": 1 snapshot") {
                return Ok(());
            }
            std::thread::sleep(SNAPSHOT_PAUSE);
        }
        let what = format!("no snapshot handles {path}");
        Err(Error::Unexpected { who: self.stack.name.to_owned(), what })
    }

    /// Purges all pages of the page cache.
    pub fn purge(&self) -> Result<()> {
        self.command(&["cache", "purge", "--all"])
    }

    fn command(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.binary);
        command.args(words).arg("--admin").arg(&self.admin);
        run(command)
    }
}

fn run(mut command: Command) -> Result<()> {
    let output = command.output().context(|| format!("run {command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let output = format!("{}: {text}", output.status);
    Err(Error::Program { program: format!("{command:?}"), output })
}

fn configuration(lab: &Lab, setup: &Setup, address: SocketAddr, ini: &Path) -> String {
    let user = if is_root() { "user = \"www-data\"\n" } else { "" };
    let threads = setup.threads.map_or_else(String::new, |count| format!("threads = {count}\n"));
    let tls = setup.tls.as_ref().map_or_else(String::new, |tls| {
        let (address, certificate, key) = (tls.address, &tls.certificate, &tls.key);
        let files = format!("{{ certificate = {certificate:?}, key = {key:?} }}");
        let http3 = if tls.has_http3 { ", http3 = true" } else { "" };
        format!(", {{ address = \"{address}\", tls = [{files}]{http3} }}")
    });
    format!(
        "listen = [\"{address}\"{tls}]
{user}{threads}[app.site]
root = {root:?}
{app}[limits]
connections = 30000
connections_per_ip = 0
idle_timeout = \"1h\"
[pool]
min = {workers}
max = {workers}
loopback_slots = 0
queue_length = 10000
[php]
ini_file = {ini:?}
ini_scan_dir = {scan:?}
[log.access]
path = \"off\"
{server}",
        root = setup.root,
        app = setup.app,
        server = setup.server,
        workers = setup.workers,
        scan = lab.php.scan_directory(),
    )
}
