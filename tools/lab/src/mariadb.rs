//! A MariaDB server for one run: a data directory in the scratch directory, a Unix socket, no port.
//!
//! Its processes are a group of their own, since all stacks use the same database: its CPU is
//! reported separately. All experiments share it, each with its own tables.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::error::{Error, Result, ResultExt};
use crate::group::Group;
use crate::lab::Lab;
use crate::system::{is_root, program};

/// A running database server.
pub struct MariaDb {
    /// Its processes.
    pub group: Group,
    /// The socket, to which its owner connects without a password.
    pub socket: PathBuf,
}

impl MariaDb {
    /// The server of this run, started on first use.
    pub fn of_run(lab: &mut Lab) -> Result<Arc<Self>> {
        lab.shared(Self::start)
    }

    /// Creates a data directory and starts the server on it, with enough connections for all
    /// processes of any stack.
    fn start(lab: &mut Lab) -> Result<Self> {
        let server = program(&["/usr/sbin/mariadbd"], "mariadb-server")?;
        let directory = lab.directory("mariadb")?;
        let (data, socket) = (directory.join("data"), directory.join("mariadb.sock"));
        if is_root() {
            let mysql = Command::new("chown").arg("mysql").arg(&directory).output();
            mysql.context(|| "give the data directory to the user mysql".into())?;
        }
        // A server removes temporary tables on start, even those of others in the same directory.
        let temporary = option("tmpdir", &directory);
        install(&data, &temporary)?;
        let mut group = Group::new(lab, "mariadb")?;
        let mut command = Command::new(server);
        command.args(["--no-defaults", "--skip-networking", "--max-connections=4000"]);
        command.args(user_option()).args([option("datadir", &data), option("socket", &socket)]);
        command.arg(option("pid-file", &directory.join("mariadb.pid"))).arg(temporary);
        group.start(lab, &command)?;
        group.await_start(|| UnixStream::connect(&socket).is_ok())?;
        Ok(Self { group, socket })
    }

    /// Runs SQL statements.
    pub fn execute(&self, sql: &str) -> Result<()> {
        let mut command = Command::new("/usr/bin/mariadb");
        command.arg("--no-defaults").arg("--user=root").arg(option("socket", &self.socket));
        run(command.arg("--execute").arg(sql))
    }
}

fn install(data: &Path, temporary: &str) -> Result<()> {
    let binary = program(&["/usr/bin/mariadb-install-db"], "mariadb-server")?;
    let mut command = Command::new(binary);
    command.arg("--no-defaults").arg(option("datadir", data)).args(user_option());
    command.args(["--auth-root-authentication-method=normal", "--skip-test-db", temporary]);
    run(&mut command)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().context(|| format!("run {:?}", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let output = String::from_utf8_lossy(&text).into_owned();
    Err(Error::Program { program: command.get_program().to_string_lossy().into(), output })
}

fn user_option() -> Option<&'static str> {
    is_root().then_some("--user=mysql")
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}
