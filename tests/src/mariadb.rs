//! A MariaDB server with a data folder of its own.

use crate::{Certificate, Child, Launch, Scratch};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running MariaDB, reached through a Unix socket alone.
#[derive(Debug)]
pub struct MariaDb {
    socket: PathBuf,
    child: Child,
    scratch: Scratch,
}

impl MariaDb {
    /// The user that every database of the tests belongs to.
    pub const USER: &str = "e2e";
    /// Its password.
    pub const PASSWORD: &str = "e2e-password";

    /// Creates a data folder, starts the server and returns when it answers.
    pub fn start() -> MariaDb {
        let scratch = Scratch::new("mariadb");
        let data = scratch.folder("data");
        let socket = scratch.path().join("mariadb.sock");
        // A server that starts removes temporary tables, also of others in the same folder.
        let temporary = option("tmpdir", &scratch.folder("tmp"));
        install(&data, &temporary);
        let certificate =
            Certificate::make(scratch.path(), "mariadb", "DNS:localhost,IP:127.0.0.1");
        fs::set_permissions(&certificate.key, Permissions::from_mode(0o644)).expect("it is ours");
        let child = serve(&scratch, &socket);
        let database = MariaDb { socket, child, scratch };
        database.run(&format!(
            "CREATE USER {user}@localhost IDENTIFIED BY '{password}';
             GRANT ALL ON *.* TO {user}@localhost;",
            user = MariaDb::USER,
            password = MariaDb::PASSWORD,
        ));
        database
    }

    /// Ends it, with all connections.
    pub fn stop(&self) {
        self.child.signal(Signal::TERM);
        self.child.wait();
    }

    /// Starts it again after [`MariaDb::stop`], with what it had stored.
    pub fn start_again(&mut self) {
        self.child = serve(&self.scratch, &self.socket);
    }

    /// The socket that clients connect to.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Makes an empty database.
    pub fn create(&self, name: &str) {
        self.run(&format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4"));
    }

    /// Runs statements as the administrator and returns what they print, columns by tabs.
    #[track_caller]
    pub fn run(&self, statements: &str) -> String {
        let output = Command::new("mariadb")
            .arg("--no-defaults")
            .arg(option("socket", &self.socket))
            .args(["--user", "root", "--skip-column-names", "--batch", "--execute"])
            .arg(statements)
            .stdin(Stdio::null())
            .output()
            .expect("ci/setup installs the MariaDB client");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}\n{complaint}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn serve(scratch: &Scratch, socket: &Path) -> Child {
    let child = launch("/usr/sbin/mariadbd")
        .arg("--no-defaults")
        .arg(option("datadir", &scratch.path().join("data")))
        .arg(option("tmpdir", &scratch.path().join("tmp")))
        .arg(option("socket", socket))
        .arg(option("pid-file", &scratch.path().join("mariadb.pid")))
        .arg(option("ssl-cert", &scratch.path().join("mariadb.pem")))
        .arg(option("ssl-key", &scratch.path().join("mariadb.key")))
        .arg("--skip-networking")
        .arg("--innodb-buffer-pool-size=64M")
        // A crash of the machine may cost these data: fewer waits for the disk.
        .arg("--innodb-flush-log-at-trx-commit=0")
        .arg("--innodb-doublewrite=0")
        .start();
    child
        .wait_for(|line| line.contains("ready for connections").then_some(()))
        .unwrap_or_else(|output| panic!("MariaDB does not start: {output}"));
    child
}

/// mariadbd refuses to run as root; Debian's package makes the user `mysql` for it.
fn launch(program: &str) -> Launch {
    match rustix::process::geteuid().is_root() {
        true => Launch::as_user(program, "mysql"),
        false => Launch::new(program),
    }
}

fn install(data: &Path, temporary: &str) {
    let child = launch("mariadb-install-db")
        .arg("--no-defaults")
        .arg(option("datadir", data))
        .arg(temporary)
        .arg("--skip-test-db")
        .arg("--auth-root-authentication-method=normal")
        .start();
    let code = child.wait();
    assert_eq!(code, Some(0), "mariadb-install-db failed: {}", child.output());
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}
