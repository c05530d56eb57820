//! A server whose configuration file the test writes, and may write anew before a reload.
//!
//! [`Server`](crate::Server) is for what every server must do; this is for what is configured.

use crate::bridge::{self, Bridge};
use crate::site::php_user;
use crate::{Child, Client, Docroot, Held, Launch, Names, Server, Wire};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A running `outboard serve --config`; the file lies beside the document root `www`.
#[derive(Debug)]
pub struct Configured {
    child: Child,
    listeners: Vec<String>,
    /// Where the server listens for the first one.
    served_at: Option<SocketAddr>,
    /// To the listeners, unless the tests speak their protocol.
    _bridges: Vec<Bridge>,
    docroot: Docroot,
}

impl Configured {
    /// Serves the folder of a docroot by this `outboard.toml`, whose paths start beside the root.
    /// Under root, PHP runs as an unprivileged user.
    #[track_caller]
    pub fn start(docroot: Docroot, text: &str) -> Configured {
        let program = Launch::new(&Server::binary().to_string_lossy());
        Configured::launched(program, docroot, text)
    }

    /// The same, in a world where names are resolved by this server; the test must be root.
    #[track_caller]
    pub fn resolving(names: &Names, docroot: Docroot, text: &str) -> Configured {
        let file =
            docroot.beside().file("resolv.conf", format!("nameserver {}\n", names.address()));
        let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
        let program = Launch::new("unshare").args(["--mount", "sh", "-c", script]).arg(file);
        Configured::launched(program.arg(Server::binary()), docroot, text)
    }

    /// The same by a program that is launched in a way of its own.
    #[track_caller]
    pub fn launched(program: Launch, docroot: Docroot, text: &str) -> Configured {
        let text = for_a_test(text, docroot.beside().path());
        let launch = Configured::launch(program, &docroot, &text);
        let child = launch.start();
        let ready = |line: &str| line.contains("outboard status --admin").then_some(());
        if let Err(output) = child.wait_for(ready) {
            panic!("outboard does not start: {output}");
        }
        let output = child.output();
        let listeners = output.lines().filter_map(|line| line.strip_prefix("listening on "));
        let mut bridges = Vec::new();
        let served_at = listeners.clone().next().and_then(|url| {
            let (_, address) = url.trim_end_matches('/').split_once("://")?;
            address.parse().ok()
        });
        let listeners = listeners.map(|url| match Bridge::of_run(url, &text) {
            None => url.to_owned(),
            Some(bridge) => {
                let url = format!("http://{}/", bridge.address());
                bridges.push(bridge);
                url
            }
        });
        let listeners = listeners.collect();
        Configured { child, listeners, served_at, _bridges: bridges, docroot }
    }

    /// Serves the fixtures of a subject on an ephemeral port as the app `site`, with these tables.
    #[track_caller]
    pub fn serving(subject: &str, tables: &str) -> Configured {
        Configured::start(Docroot::of(subject), &Configured::text(tables))
    }

    /// The configuration that [`Configured::serving`] uses.
    pub fn text(tables: &str) -> String {
        format!(
            "listen = \"127.0.0.1:0\"\n\
             [log.access]\npath = \"off\"\n\
             [app.site]\nroot = \"www\"\n\
             [php.ini]\nexpose_php = false\n\
             {tables}\n"
        )
    }

    fn launch(program: Launch, docroot: &Docroot, text: &str) -> Launch {
        let folder = docroot.beside();
        program
            .arg("serve")
            .arg("--config")
            .arg(folder.file("outboard.toml", text))
            .arg("--admin")
            .arg(folder.path().join("admin.sock"))
    }

    /// Writes the configuration for the next reload.
    pub fn rewrite(&self, text: &str) {
        let folder = self.docroot.beside();
        folder.file("outboard.toml", for_a_test(text, folder.path()));
    }

    /// The gateway's process.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// The document root, and the folder of the configuration beside it.
    pub fn docroot(&self) -> &Docroot {
        &self.docroot
    }

    /// Where the apps are served, in the order of the configuration, as the server says it.
    pub fn listeners(&self) -> &[String] {
        &self.listeners
    }

    /// The first listener's address.
    pub fn address(&self) -> SocketAddr {
        self.address_of(0)
    }

    /// The address that the server itself has for it, which a bridge may stand in front of.
    #[track_caller]
    pub fn served_at(&self) -> SocketAddr {
        self.served_at.expect("the first listener is one of TCP")
    }

    /// A TCP listener's address.
    #[track_caller]
    pub fn address_of(&self, number: usize) -> SocketAddr {
        let url = &self.listeners[number];
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        address.parse().unwrap_or_else(|_| panic!("{url} is no TCP listener"))
    }

    /// The socket that `outboard status` and `outboard reload` take as `--admin`.
    pub fn admin_socket(&self) -> PathBuf {
        self.docroot.beside().path().join("admin.sock")
    }

    /// A new visitor.
    pub fn client(&self) -> Client {
        Client::new(self.address())
    }

    /// A new connection.
    pub fn wire(&self) -> Wire {
        Wire::open(self.address())
    }

    /// Sends bytes on a connection of their own and returns everything until the server closes it.
    #[track_caller]
    pub fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut wire = self.wire();
        wire.send(bytes);
        wire.to_end()
    }

    /// Runs `outboard NAME` against this server; one that hangs is ended with code 124 (timeout(1)).
    pub fn command(&self, name: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command
            .arg("60")
            .arg(Server::binary())
            .arg(name)
            .args(arguments)
            .arg("--admin")
            .arg(self.admin_socket());
        command.output().expect("the binary is there")
    }

    /// What `outboard status --json` says.
    #[track_caller]
    pub fn status(&self) -> serde_json::Value {
        let output = self.command("status", &["--json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }

    /// The threads of the gateway, each of which has a zygote for an app.
    #[track_caller]
    pub fn threads(&self) -> usize {
        self.status()["threads"].as_u64().expect("the status has it") as usize
    }

    /// Waits for a line of the server's output that holds all of these and returns it.
    #[track_caller]
    pub fn logs(&self, words: &[&str]) -> String {
        let wanted =
            |line: &str| words.iter().all(|word| line.contains(word)).then(|| line.to_owned());
        let found = self.child.wait_for(wanted);
        found.unwrap_or_else(|output| panic!("no line holds {words:?}\n{output}"))
    }

    /// Ids of the gateway's descendants: zygotes first, then their workers and the zygotes of the other
    /// threads, then those of these. The monitors of sandboxes are left out.
    pub fn processes(&self) -> Vec<u32> {
        let mut found = zygotes(self.child.pid());
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(children(parent).into_iter().filter(|pid| !is_monitor(*pid)));
            at += 1;
        }
        found
    }

    /// Ids of the monitors of sandboxes, one for each app.
    pub fn monitors(&self) -> Vec<u32> {
        let zygotes = zygotes(self.child.pid()).into_iter();
        zygotes.flat_map(children).filter(|pid| is_monitor(*pid)).collect()
    }

    /// Kills the gateway at once; what it served is there for the next.
    pub fn into_killed(self) -> Docroot {
        self.into_ended(Signal::KILL)
    }

    /// Stops the server as an operator does, and waits until it has gone.
    pub fn into_stopped(self) -> Docroot {
        self.into_ended(Signal::TERM)
    }

    fn into_ended(self, signal: Signal) -> Docroot {
        let Configured { child, docroot, .. } = self;
        child.signal(signal);
        child.wait();
        docroot
    }

    /// Starts a request of `gated.php` and returns once a worker has it.
    #[track_caller]
    pub fn hold(&self) -> Held {
        Held::start(self.address(), self.docroot.beside().path())
    }

    /// The files of the document root.
    pub fn root(&self) -> &Path {
        self.docroot.path()
    }
}

/// Refusals say why, unless the test has a word about it; the first listener speaks the protocol of
/// the run.
fn for_a_test(text: &str, folder: &Path) -> String {
    let reasons = if text.contains("reason_header") { "" } else { "reason_header = true\n" };
    format!("{reasons}{}", with_user(&bridge::listening(text, folder)))
}

/// An unprivileged user for the apps; the gateway then takes one of its own.
fn with_user(text: &str) -> String {
    let Some(user) = php_user().filter(|_| !text.contains("user = ")) else {
        return text.to_owned();
    };
    let is_app = |line: &str| {
        let name = line.trim().strip_prefix("[app.").and_then(|rest| rest.strip_suffix(']'));
        name.is_some_and(|name| !name.contains('.'))
    };
    let lines = text.lines().map(|line| match is_app(line) {
        true => format!("{line}\nuser = {user:?}\n"),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Those of a gateway; one that gave up root has them started by its spawner.
pub(crate) fn zygotes(gateway: u32) -> Vec<u32> {
    let name_of = |pid: u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim().to_owned()
    };
    let is_spawner = |pid: &u32| name_of(*pid) == "outboard-spawne";
    let (spawners, mut own): (Vec<u32>, Vec<u32>) =
        children(gateway).into_iter().partition(is_spawner);
    own.retain(|pid| name_of(*pid) != "outboard-starte");
    own.extend(spawners.into_iter().flat_map(children));
    own
}

fn is_monitor(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim() == "sandbox-monitor")
}

/// The processes that this one has forked (proc(5), `children`).
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    text.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect()
}
