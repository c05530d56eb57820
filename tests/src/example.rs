//! An example of the repository, served by its own configuration from a copy.

use crate::page::repository;
use crate::{Child, Client, Launch, Request, Scratch, Server};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running example. One worker, so that what stays from request to request is known exactly.
#[derive(Debug)]
pub struct Example {
    address: SocketAddr,
    child: Child,
    _copy: Scratch,
}

impl Example {
    /// By its name, or its path in the repository.
    #[track_caller]
    pub fn start(name: &str) -> Example {
        Example::with(name, &[], &[])
    }

    /// With variables of the server's environment, and other content in some files of the copy.
    #[track_caller]
    pub fn with(name: &str, variables: &[(&str, &str)], files: &[(&str, &str)]) -> Example {
        let (copy, folder) = Example::copied(name);
        let file = folder.join("outboard.toml");
        let text = fs::read_to_string(&file).expect("an example has a configuration");
        let listen = "listen = \"127.0.0.1:8080\"";
        assert!(text.contains(listen), "{} says where it listens", file.display());
        let text = text.replace(listen, "listen = \"127.0.0.1:0\"");
        fs::write(&file, text + "\n[pool]\nmin = 1\nmax = 1\nmin_idle = 0\n")
            .expect("a copy of ours");
        for (file, content) in files {
            fs::write(folder.join(file), content).expect("a copy of ours");
        }

        let mut launch = Launch::new(&Server::binary().to_string_lossy())
            .arg("serve")
            .arg("--config")
            .arg(&file)
            .arg("--admin")
            .arg(copy.path().join("admin.sock"));
        if rustix::process::geteuid().is_root() {
            // A copy of root's, in which they keep what they write down.
            launch = launch.args(["--user", "root"]);
        }
        for (name, value) in variables {
            launch = launch.env(name, value);
        }
        let child = launch.start();
        let address = child
            .wait_for(|line| {
                let url = line.strip_prefix("listening on http://")?;
                url.trim_end_matches('/').parse().ok()
            })
            .unwrap_or_else(|output| panic!("{name} does not start: {output}"));
        let ready = |line: &str| line.contains("outboard status --admin").then_some(());
        child.wait_for(ready).unwrap_or_else(|output| panic!("{name} is not ready: {output}"));
        Example { address, child, _copy: copy }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new visitor.
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// The JSON of a response with this status.
    #[track_caller]
    pub fn json(&self, request: &Request, status: u16) -> Value {
        let text = self.client().send(request).expect(status).text();
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{} is answered by {text:?}: {error}\n{}", request.target, self.child.output())
        })
    }

    /// A copy of an example and, where it looks for it, of the Composer package.
    #[track_caller]
    pub fn copied(name: &str) -> (Scratch, PathBuf) {
        let copy = Scratch::new("example");
        let repository = repository();
        let examples = copy.folder("examples");
        let source = [repository.join("examples").join(name), repository.join(name)];
        let source = source.into_iter().find(|path| path.is_dir());
        let source = source.unwrap_or_else(|| panic!("there is no example {name}"));
        let name = source.file_name().expect("of a folder").to_owned();
        copy_into(&examples, &source);
        copy_into(copy.path(), &repository.join("php"));
        (copy, examples.join(name))
    }
}

#[track_caller]
fn copy_into(folder: &Path, source: &Path) {
    let status = Command::new("cp").arg("-r").arg(source).arg(folder).status();
    assert!(status.expect("cp is there").success(), "cannot copy {}", source.display());
}
