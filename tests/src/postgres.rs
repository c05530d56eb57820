//! A PostgreSQL server with a data folder of its own.

use crate::{Child, Launch, Scratch};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running PostgreSQL, reached through a Unix socket alone.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    _child: Child,
    _scratch: Scratch,
}

/// The port is in the name of the socket's file only.
const PORT: &str = "5432";

impl Postgres {
    /// The user, which has a database of its name.
    pub const USER: &str = "e2e";
    /// Its password.
    pub const PASSWORD: &str = "e2e-password";

    /// Creates a data folder, starts the server and returns when it answers.
    pub fn start() -> Postgres {
        let scratch = Scratch::new("postgres");
        let data = scratch.path().join("data");
        let password = scratch.file("password", Postgres::PASSWORD);
        let made = launch("initdb")
            .arg("--pgdata")
            .arg(&data)
            .args(["--username", Postgres::USER, "--auth", "scram-sha-256", "--no-sync"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8", "--pwfile"])
            .arg(password)
            .start();
        assert_eq!(made.wait(), Some(0), "initdb failed: {}", made.output());
        let child = launch("postgres")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(scratch.path())
            .args(["-p", PORT, "-c", "listen_addresses=", "-c", "fsync=off"])
            .start();
        child
            .wait_for(|line| line.contains("ready to accept connections").then_some(()))
            .unwrap_or_else(|output| panic!("PostgreSQL does not start: {output}"));
        let folder = scratch.path().to_owned();
        let database = Postgres { folder, _child: child, _scratch: scratch };
        database.run_in("postgres", &format!("CREATE DATABASE {}", Postgres::USER));
        database
    }

    /// The socket that clients connect to.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{PORT}"))
    }

    /// Runs statements in the user's database.
    #[track_caller]
    pub fn run(&self, statements: &str) {
        self.run_in(Postgres::USER, statements);
    }

    #[track_caller]
    fn run_in(&self, database: &str, statements: &str) {
        let output = Command::new(binary("psql"))
            .env("PGPASSWORD", Postgres::PASSWORD)
            .arg("--host")
            .arg(&self.folder)
            .args(["--port", PORT, "--username", Postgres::USER, "--no-psqlrc"])
            .args(["--dbname", database, "--set", "ON_ERROR_STOP=1", "--command", statements])
            .stdin(Stdio::null())
            .output()
            .expect("ci/setup installs the PostgreSQL client");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statements}\n{complaint}");
    }
}

/// Debian keeps them out of the search path, each release in a folder of its own.
fn binary(name: &str) -> PathBuf {
    let releases = std::fs::read_dir("/usr/lib/postgresql").expect("ci/setup installs PostgreSQL");
    let newest = releases.flatten().map(|entry| entry.path()).max();
    newest.as_deref().unwrap_or(Path::new("/usr")).join("bin").join(name)
}

/// PostgreSQL refuses to run as root; Debian's package makes the user `postgres` for it.
fn launch(name: &str) -> Launch {
    let program = binary(name);
    match rustix::process::geteuid().is_root() {
        true => Launch::as_user(&program.to_string_lossy(), "postgres"),
        false => Launch::new(&program.to_string_lossy()),
    }
}
