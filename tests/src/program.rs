//! A program that starts a server, run by `outboard run`.

use crate::configured::{children, zygotes};
use crate::site::php_user;
use crate::{Child, Client, Docroot, Launch, Server};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

/// The server that a program has started.
#[derive(Debug)]
pub struct Program {
    child: Child,
    listeners: Vec<String>,
    docroot: Docroot,
}

impl Program {
    /// Starts a script of the docroot, which has a server.
    #[track_caller]
    pub fn start(docroot: Docroot, script: &str, arguments: &[&str]) -> Program {
        let launch = Program::launch(&[]).args(command(docroot.path(), script, arguments));
        Program::started(launch, docroot)
    }

    /// Starts a script in its own folder, on a free port instead of its own, with these variables in
    /// the environment.
    #[track_caller]
    pub fn start_in(docroot: Docroot, script: &str, variables: &[(&str, &str)]) -> Program {
        let path = docroot.path().join(script);
        let (folder, name) = (path.parent().expect("of a file"), path.file_name().expect("a file"));
        let mut launch = Program::launch(&["--listen", "127.0.0.1:0"]).arg(name).directory(folder);
        for (name, value) in variables {
            launch = launch.env(name, value);
        }
        Program::started(launch, docroot)
    }

    /// Starts a script of the docroot with these options of `outboard run`.
    #[track_caller]
    pub fn start_with(docroot: Docroot, script: &str, options: &[&str]) -> Program {
        let launch = Program::launch(options).args(command(docroot.path(), script, &[]));
        Program::started(launch, docroot)
    }

    /// `outboard run` with options; as root, programs run as an unprivileged user.
    fn launch(options: &[&str]) -> Launch {
        let user = php_user().map_or_else(Vec::new, |user| vec!["--user", user]);
        Launch::new(&Server::binary().to_string_lossy()).arg("run").args(options).args(user)
    }

    #[track_caller]
    fn started(launch: Launch, docroot: Docroot) -> Program {
        let child = launch.start();
        let ready = |line: &str| line.contains("outboard status --admin").then_some(());
        if let Err(output) = child.wait_for(ready) {
            panic!("the program does not start: {output}");
        }
        let output = child.output();
        let listeners = output.lines().filter_map(|line| line.strip_prefix("listening on "));
        let listeners = listeners.map(str::to_owned).collect();
        Program { child, listeners, docroot }
    }

    /// Runs a script of the docroot to its end; one that hangs is ended with code 124 (timeout(1)).
    pub fn run(docroot: &Docroot, script: &str, arguments: &[&str]) -> Output {
        Program::command(docroot, script, arguments).output().expect("the binary is there")
    }

    /// Starts a script of the docroot that has no server.
    pub fn begin(docroot: &Docroot, script: &str) -> Child {
        Program::launch(&[]).args(command(docroot.path(), script, &[])).start()
    }

    fn command(docroot: &Docroot, script: &str, arguments: &[&str]) -> Command {
        let mut line = Command::new("timeout");
        line.arg("120")
            .arg(Server::binary())
            .arg("run")
            .args(php_user().map_or_else(Vec::new, |user| vec!["--user", user]))
            .args(command(docroot.path(), script, arguments));
        line
    }

    /// The same with variables in the environment.
    pub fn run_with(docroot: &Docroot, script: &str, variables: &[(&str, String)]) -> Output {
        let mut command = Program::command(docroot, script, &[]);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.output().expect("the binary is there")
    }

    /// The server's process.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// Ids of the workers of its first zygote.
    pub fn workers(&self) -> Vec<u32> {
        zygotes(self.child.pid()).into_iter().take(1).flat_map(children).collect()
    }

    /// The folder of the script.
    pub fn docroot(&self) -> &Docroot {
        &self.docroot
    }

    /// Where it listens, as it says.
    pub fn listeners(&self) -> &[String] {
        &self.listeners
    }

    /// The first of its addresses.
    #[track_caller]
    pub fn address(&self) -> SocketAddr {
        let url = &self.listeners[0];
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        address.parse().unwrap_or_else(|_| panic!("{url} is no TCP listener"))
    }

    /// A new visitor.
    pub fn client(&self) -> Client {
        Client::new(self.address())
    }

    /// Waits for a line of output that has all of these words.
    #[track_caller]
    pub fn logs(&self, words: &[&str]) -> String {
        let wanted =
            |line: &str| words.iter().all(|word| line.contains(word)).then(|| line.to_owned());
        let found = self.child.wait_for(wanted);
        found.unwrap_or_else(|output| panic!("no line has {words:?}\n{output}"))
    }
}

fn command(root: &Path, script: &str, arguments: &[&str]) -> Vec<String> {
    let script = root.join(script).to_string_lossy().into_owned();
    std::iter::once(script).chain(arguments.iter().map(|one| (*one).to_owned())).collect()
}
