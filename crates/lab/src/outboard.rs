//! The stack that the bars are about: `outboard serve`, with its admin socket.
//!
//! The binary comes from the environment variable OUTBOARD_BIN, else it is the one that runs. Invariant: it gets the peers' ini file, and as many PHP processes unless
//! a comparison says otherwise.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Doing, Error, Result};
use crate::fixture::Fixture;
use crate::group::Group;
use crate::lab::{Lab, free_address, is_root, write};
use crate::process_table::{Pid, ProcessTable};
use crate::profile::ZYGOTE;
use crate::stack::Stack;

/// The name in every table.
pub const NAME: &str = "outboard";

/// What to serve, and how.
pub struct Setup {
    /// The name in tables; several setups may run side by side under different ones.
    pub name: &'static str,
    /// The document root.
    pub root: PathBuf,
    /// PHP workers.
    pub workers: usize,
    /// What stands below `[app.site]` besides the root, in TOML.
    pub app: String,
}

impl Setup {
    /// A script per request, as php-fpm runs it.
    pub fn classic(lab: &Lab, root: &Path) -> Self {
        let workers = lab.php_processes();
        Self { name: NAME, root: root.into(), workers, app: String::new() }
    }

    /// A resident script that answers every path, so many requests at a time in each worker.
    pub fn worker(fixture: &Fixture, script: &str, workers: usize, concurrency: usize) -> Self {
        let script = fixture.path(script);
        let app = format!(
            "mode = \"worker\"
[app.site.worker]
script = {script:?}
concurrency = {concurrency}
"
        );
        Self { name: NAME, root: fixture.public(), workers, app }
    }

    /// A resident script whose forks answer, one request each.
    pub fn fork(fixture: &Fixture, script: &str, workers: usize) -> Self {
        let setup = Self::worker(fixture, script, workers, 1);
        Self { app: format!("{}isolation = \"fork\"\n", setup.app), ..setup }
    }

    /// Under another name.
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// With further lines at the end of the app's table.
    pub fn with(mut self, app: &str) -> Self {
        self.app.push_str(app);
        self
    }
}

/// A running gateway with its PHP host.
pub struct Outboard {
    /// The stack to measure.
    pub stack: Stack,
    binary: PathBuf,
    admin: PathBuf,
}

/// The binary to measure, if there is one.
pub fn binary() -> Option<PathBuf> {
    let given = std::env::var_os("OUTBOARD_BIN").map(PathBuf::from);
    given.or_else(|| std::env::current_exe().ok()).filter(|path| path.exists())
}

impl Outboard {
    /// Starts a gateway for a folder in classic mode; `None` when it is not built.
    pub fn start(lab: &mut Lab, root: &Path) -> Result<Option<Self>> {
        let setup = Setup::classic(lab, root);
        Self::launch(lab, &setup)
    }

    /// Starts a gateway; `None` when it is not built.
    pub fn launch(lab: &mut Lab, setup: &Setup) -> Result<Option<Self>> {
        binary().map(|binary| Self::launch_binary(lab, setup, &binary)).transpose()
    }

    /// Starts a gateway of this binary.
    pub fn launch_binary(lab: &mut Lab, setup: &Setup, binary: &Path) -> Result<Self> {
        let name = setup.name;
        let mut group = Group::new(lab, name)?;
        let folder = lab.folder(name)?;
        let ini = folder.join("php.ini");
        lab.php.ini_file(&ini)?;
        let (address, admin) = (free_address()?, folder.join("admin.sock"));
        let config = folder.join("outboard.toml");
        write(&config, configuration(lab, setup, address, &ini))?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("--config").arg(&config).arg("--admin").arg(&admin);
        group.start(lab, &command)?;
        let stack = Stack { name, address, group }.await_answer()?;
        Ok(Self { stack, binary: binary.into(), admin })
    }

    /// The PHP workers: the children of the zygotes, of which there are two while it reloads.
    pub fn workers(&self) -> Vec<Pid> {
        let table = ProcessTable::snapshot();
        let pids = self.stack.group.pids().into_iter();
        let processes = pids.filter_map(|pid| table.get(pid)).filter(|process| !process.zombie);
        let is_zygote = |pid: Pid| table.get(pid).is_some_and(|parent| parent.name == ZYGOTE);
        processes.filter(|process| is_zygote(process.parent)).map(|process| process.pid).collect()
    }

    /// Starts a new generation of workers and waits until the old one has been drained.
    pub fn reload(&self) -> Result<()> {
        let mut command = Command::new(&self.binary);
        command.arg("reload").arg("--admin").arg(&self.admin);
        run(command)
    }
}

fn run(mut command: Command) -> Result<()> {
    let output = command.output().doing(|| format!("run {command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let output = format!("{}: {text}", output.status);
    Err(Error::Program { program: format!("{command:?}"), output })
}

fn configuration(lab: &Lab, setup: &Setup, address: SocketAddr, ini: &Path) -> String {
    let user = if is_root() { "user = \"www-data\"\n" } else { "" };
    format!(
        "listen = \"{address}\"
{user}[app.site]
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
",
        root = setup.root,
        app = setup.app,
        workers = setup.workers,
        scan = lab.php.scan_folder(),
    )
}
