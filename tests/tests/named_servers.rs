//! Named servers: a command tells the truth about them, and reaches no other process.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Process, Scratch, Server};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A broken server has to be told within this time.
const AT_ONCE: Duration = Duration::from_secs(2);

/// A configuration folder with what its servers need.
struct Servers {
    scratch: Scratch,
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Ended {
    #[track_caller]
    fn well(self) -> Ended {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl Servers {
    fn new() -> Servers {
        let scratch = Scratch::new("named");
        scratch.folder("conf");
        scratch.folder("public");
        scratch.file("public/index.php", "<?php echo 'Hello from ', getmypid();");
        // What others can write to is refused as a run folder.
        let run = scratch.folder("run");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(run, mode).expect("it is ours");
        Servers { scratch }
    }

    /// With servers that answer.
    fn with(names: &[&str]) -> Servers {
        let servers = Servers::new();
        names.iter().for_each(|name| servers.describe(name, SITE));
        servers
    }

    fn describe(&self, name: &str, text: &str) {
        self.scratch.file(&format!("conf/{name}.toml"), text);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn command(&self, command: &str, arguments: &[&str]) -> Command {
        let mut built = Command::new(Server::binary());
        built.arg(command);
        if command != "shutdown" {
            built.arg("--conf-dir").arg(self.path("conf"));
        }
        built.arg("--run-dir").arg(self.path("run")).args(arguments);
        built
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Ended {
        let began = Instant::now();
        let output = self.command(command, arguments).output().expect("the binary is there");
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
            took: began.elapsed(),
        }
    }

    /// What `status --json` says of one.
    #[track_caller]
    fn status(&self, name: &str) -> Value {
        let output = self.run("status", &[name, "--json"]);
        let json: Value = serde_json::from_str(&output.stdout).expect("JSON");
        json["servers"][0].clone()
    }

    #[track_caller]
    fn pid(&self, name: &str) -> u32 {
        self.status(name)["pid"].as_u64().expect("it runs").try_into().expect("a process id")
    }

    #[track_caller]
    fn client(&self, name: &str) -> Client {
        let status = self.status(name);
        let address = status["status"]["listeners"][0].as_str().expect("it listens");
        Client::new(address.parse::<SocketAddr>().expect("an address"))
    }

    #[track_caller]
    fn answers(&self, name: &str) {
        self.client(name).get("/").expect(200).holding("Hello from ");
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.run("shutdown", &[]);
    }
}

const SITE: &str = "listen = \"127.0.0.1:0\"\n[pool]\nmin = 1\n[app.site]\nroot = \"../public\"\n";

fn worker(script: &str) -> String {
    format!("{SITE}mode = \"worker\"\n[app.site.worker]\nscript = \"../{script}\"\n")
}

#[test]
fn start_returns_when_the_server_answers_and_stop_when_it_has_gone() {
    let servers = Servers::with(&["shop"]);
    assert_eq!(servers.run("status", &["shop"]).code, Some(3));
    let started = servers.run("start", &["shop"]).well();
    assert!(started.stdout.contains("shop: RUNNING"), "{started:?}");
    servers.answers("shop");
    let status = servers.run("status", &["shop"]).well();
    for words in ["shop", "production", "RUNNING", "PHP 8", "pid", "up ", "requests", "idle"] {
        assert!(status.stdout.contains(words), "{words} is not in {status:?}");
    }
    let gateway = Process::of(servers.pid("shop"));
    servers.run("stop", &["shop"]).well();
    gateway.wait_until_gone();
    assert!(!servers.path("run/shop.pid").exists());
    assert!(!servers.path("run/shop.sock").exists());
    assert_eq!(servers.run("status", &["shop"]).code, Some(3));
    servers.run("stop", &["shop"]).well();
}

#[test]
fn a_broken_server_says_what_and_where_within_two_seconds() {
    let servers = Servers::new();
    let held = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let taken = format!("127.0.0.1:{}", held.local_addr().expect("it is bound").port());
    servers.scratch.file("syntax.php", "<?php\nfunction (");
    servers.scratch.file("missing.php", "<?php\n(new Shop\\Worker())->run();\n");
    servers.describe("bad-toml", "listen = \n");
    servers.describe("bad-key", &format!("{SITE}rot = 1\n"));
    servers.describe("no-folder", &SITE.replace("public", "nowhere"));
    servers.describe("port-taken", &SITE.replace("127.0.0.1:0", &taken));
    servers.describe("syntax-error", &worker("syntax.php"));
    servers.describe("missing-class", &worker("missing.php"));
    servers.describe("no-user", &format!("user = \"nobody-of-that-name\"\n{SITE}"));
    servers.describe("no-host", &format!("{SITE}[app.site.php]\nhost_binary = \"../none\"\n"));
    for (name, words) in [
        ("bad-toml", &["bad-toml.toml:1"][..]),
        ("bad-key", &["bad-key.toml:6", "rot"]),
        ("no-folder", &["no-folder.toml:5", "there is no folder"]),
        ("port-taken", &[&taken, "Address already in use"]),
        ("syntax-error", &["Parse error", "syntax.php", "line"]),
        ("missing-class", &["Shop\\Worker", "not found", "missing.php:2"]),
        ("no-user", &["nobody-of-that-name"]),
        ("no-host", &["no-host.toml:7", "none"]),
        ("unknown", &["there is no server `unknown`"]),
    ] {
        let ended = servers.run("start", &[name]);
        assert!(ended.code.is_some_and(|code| code > 0), "{name}: {ended:?}");
        assert!(ended.took < AT_ONCE, "{name}: {ended:?}");
        assert!(ended.stderr.lines().count() <= 24, "more than a screen: {ended:?}");
        for word in words {
            assert!(ended.stderr.contains(word), "{name}: {word:?} is not in {}", ended.stderr);
        }
        assert!(!servers.path(&format!("run/{name}.pid")).exists(), "{name} left a trace");
    }
}
