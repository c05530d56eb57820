//! A server that the tests upgrade: its programs are copies, which a test replaces.

use outboard_e2e::{Certificate, Configured, Docroot, Launch, Server};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;

pub(crate) const POOL: &str = "[pool]\nmin = 2\nmax = 4";

/// A port that both servers know: an upgrade reads the configuration again.
pub(crate) fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    free.local_addr().expect("it is bound")
}

pub(crate) fn text(tables: &str) -> String {
    Configured::text(tables).replace("127.0.0.1:0", &free_address().to_string())
}

/// See the module.
pub(crate) struct Installed {
    pub(crate) site: Configured,
    pub(crate) text: String,
}

impl Installed {
    pub(crate) fn start(tables: &str) -> Installed {
        Installed::with(Docroot::of("reload"), text(tables))
    }

    pub(crate) fn with(docroot: Docroot, text: String) -> Installed {
        let wait = "<?php touch($_GET['at']); while (!file_exists($_GET['for'])) usleep(1000); echo 'waited';";
        docroot.put("wait.php", wait);
        let programs = docroot.beside().folder("bin");
        let built = Server::binary();
        for name in ["outboard", "outboard-php"] {
            fs::copy(built.with_file_name(name), programs.join(name)).expect("it was built");
        }
        let launch = Launch::new(&programs.join("outboard").to_string_lossy());
        let site = Configured::launched(launch, docroot, &text);
        Installed { site, text }
    }

    pub(crate) fn upgrade(&self) -> Output {
        self.site.command("upgrade", &[])
    }

    /// The process id of the server that replies.
    pub(crate) fn pid(&self) -> u64 {
        self.site.status()["pid"].as_u64().expect("a number")
    }

    /// The same, if one replies.
    pub(crate) fn try_pid(&self) -> Option<u64> {
        let output = self.site.command("status", &["--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        status["pid"].as_u64()
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.site.docroot().beside().path().join("bin/outboard")
    }

    /// Replaces the program as a package manager does: by a file of another inode.
    pub(crate) fn install(&self, bytes: &[u8]) {
        let next = self.program().with_extension("new");
        fs::write(&next, bytes).unwrap();
        fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(next, self.program()).unwrap();
    }

    #[track_caller]
    pub(crate) fn is_as_before(&self, pid: u64) {
        self.site.client().get("/hello.php").expect(200).saying("Hello, world\n");
        assert_eq!(self.pid(), pid);
    }
}

impl Drop for Installed {
    /// The successors are not children of the test.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.site.child().output());
        }
        let _ = self.site.command("stop", &[]);
    }
}

#[track_caller]
pub(crate) fn succeeded(output: &Output, site: &Configured) {
    assert!(output.status.success(), "{output:?}\n{}", site.child().output());
}

/// A server with TLS and HTTP/3 at an address that an upgrade keeps.
pub(crate) fn with_http3(general: &str, tables: &str) -> (Installed, SocketAddr) {
    let docroot = Docroot::of("reload");
    Certificate::make(docroot.beside().path(), "one", "IP:127.0.0.1,DNS:localhost");
    let address = free_address();
    let text = text(tables);
    let rest = text.split_once('\n').expect("the line with `listen`").1;
    let server = Installed::with(
        docroot,
        format!(
            "{general}{rest}[[listen]]\naddress = \"{address}\"\nhttp3 = true\n\
             tls = [{{ certificate = \"one.pem\", key = \"one.key\" }}]\n"
        ),
    );
    (server, address)
}
