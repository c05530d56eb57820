//! A configuration folder of named servers, and the commands about them.

use crate::{Client, Scratch, Server};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Named servers with folders of their own; they are stopped on drop.
#[derive(Debug)]
pub struct NamedServers {
    scratch: Scratch,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
    /// How long it took.
    pub took: Duration,
}

impl Ended {
    /// The same, if it succeeded.
    #[track_caller]
    pub fn well(self) -> Ended {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl NamedServers {
    /// What a server says that answers with `public/index.php`.
    pub const SITE: &str =
        "listen = \"127.0.0.1:0\"\n[pool]\nmin = 1\n[app.site]\nroot = \"../public\"\n";

    /// Without servers.
    pub fn new() -> NamedServers {
        let scratch = Scratch::new("named");
        scratch.folder("conf");
        scratch.folder("public");
        scratch.file("public/index.php", "<?php echo 'Hello from ', getmypid();");
        // What others can write to is refused as a run folder.
        let run = scratch.folder("run");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(run, mode).expect("it is ours");
        NamedServers { scratch }
    }

    /// With servers that answer.
    pub fn with(names: &[&str]) -> NamedServers {
        let servers = NamedServers::new();
        names.iter().for_each(|name| servers.describe(name, NamedServers::SITE));
        servers
    }

    /// Writes a server's file.
    pub fn describe(&self, name: &str, text: &str) {
        self.put(&format!("conf/{name}.toml"), text);
    }

    /// Writes a file beside the folders `conf`, `run` and `public`.
    pub fn put(&self, name: &str, text: &str) {
        self.scratch.file(name, text);
    }

    /// The path of something there.
    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// A command about these servers.
    pub fn command(&self, command: &str, arguments: &[&str]) -> Command {
        let mut built = Command::new(Server::binary());
        built.arg(command);
        if command != "shutdown" {
            built.arg("--conf-dir").arg(self.path("conf"));
        }
        built.arg("--run-dir").arg(self.path("run")).args(arguments);
        built
    }

    /// Runs it to its end.
    pub fn run(&self, command: &str, arguments: &[&str]) -> Ended {
        let began = Instant::now();
        let output = self.command(command, arguments).output().expect("the binary is there");
        let Output { status, stdout, stderr } = output;
        Ended {
            code: status.code(),
            stdout: String::from_utf8(stdout).expect("text"),
            stderr: String::from_utf8(stderr).expect("text"),
            took: began.elapsed(),
        }
    }

    /// What `status --json` says of one.
    #[track_caller]
    pub fn status(&self, name: &str) -> Value {
        let output = self.run("status", &[name, "--json"]);
        let json: Value = serde_json::from_str(&output.stdout).expect("JSON");
        json["servers"][0].clone()
    }

    /// The gateway's process.
    #[track_caller]
    pub fn pid(&self, name: &str) -> u32 {
        self.status(name)["pid"].as_u64().expect("it runs").try_into().expect("a process id")
    }

    /// Where it listens.
    #[track_caller]
    pub fn address(&self, name: &str) -> SocketAddr {
        let status = self.status(name);
        let address = status["status"]["listeners"][0].as_str().expect("it listens");
        address.parse().expect("an address")
    }

    /// A visitor.
    #[track_caller]
    pub fn client(&self, name: &str) -> Client {
        Client::new(self.address(name))
    }

    /// It answers with its page.
    #[track_caller]
    pub fn answers(&self, name: &str) {
        self.client(name).get("/").expect(200).holding("Hello from ");
    }
}

impl Default for NamedServers {
    fn default() -> Self {
        NamedServers::new()
    }
}

impl Drop for NamedServers {
    fn drop(&mut self) {
        self.run("shutdown", &[]);
    }
}
