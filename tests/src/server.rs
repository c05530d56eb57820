//! The subject: the built `outboard` binary, serving one application on an ephemeral port.

use crate::bridge::{self, Bridge};
use crate::site::{ini_scan_dir, php_user};
use crate::{App, Child, Launch, Scratch, Site};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running `outboard serve`.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    own_port: u16,
    child: Child,
    admin_socket: PathBuf,
    /// To the listener, unless the tests speak its protocol.
    _bridge: Option<Bridge>,
    _scratch: Scratch,
}

impl Server {
    /// Serves an application and returns when it answers.
    pub fn start(app: &App) -> Server {
        Server::with_configuration(app, "")
    }

    /// Serves an application under the name `site`, with further tables of `outboard.toml`.
    pub fn with_configuration(app: &App, tables: &str) -> Server {
        let scratch = Scratch::new("outboard");
        let admin_socket = scratch.path().join("admin.sock");
        let text = bridge::listening(&configuration(app, &scratch, tables), scratch.path());
        let file = scratch.file("outboard.toml", &text);
        let launch =
            Launch::new(&Server::binary().to_string_lossy()).arg("serve").arg("--config").arg(file);
        Server::launched(launch, &text, admin_socket, scratch)
    }

    /// Runs `outboard serve FOLDER`, without a configuration.
    pub fn of_folder(folder: &Path) -> Server {
        let scratch = Scratch::new("outboard");
        let admin_socket = scratch.path().join("admin.sock");
        let launch = Launch::new(&Server::binary().to_string_lossy())
            .arg("serve")
            .arg(folder)
            .args(["--listen", "127.0.0.1:0", "--admin"])
            .arg(&admin_socket);
        // What these folders hold may be root's.
        let launch = match php_user() {
            Some(_) => launch.args(["--user", "root"]),
            None => launch,
        };
        Server::launched(launch, "", admin_socket, scratch)
    }

    fn launched(launch: Launch, text: &str, admin_socket: PathBuf, scratch: Scratch) -> Server {
        let child = launch.start();
        let url = child
            .wait_for(|line| {
                let (_, url) = line.split_once("listening on ")?;
                url.starts_with("http").then(|| url.trim_end_matches('/').to_owned())
            })
            .unwrap_or_else(|output| panic!("outboard does not start: {output}"));
        let bridge = Bridge::of_run(&url, text);
        let own = url.split_once("://").and_then(|(_, address)| address.parse().ok());
        let own: SocketAddr = own.expect("a TCP listener");
        let address = bridge.as_ref().map_or(own, Bridge::address);
        Server {
            address,
            own_port: own.port(),
            child,
            admin_socket,
            _bridge: bridge,
            _scratch: scratch,
        }
    }

    /// The binary under test: `OUTBOARD_BIN`, or what cargo built into the folder above the test's own.
    pub fn binary() -> PathBuf {
        if let Some(path) = std::env::var_os("OUTBOARD_BIN") {
            return path.into();
        }
        let test = std::env::current_exe().expect("/proc/self/exe can be read");
        let profile =
            test.parent().and_then(Path::parent).expect("tests are built into PROFILE/deps");
        let path = profile.join("outboard");
        assert!(
            path.exists(),
            "{} is missing: build the binaries first (cargo build -p outboard -p outboard-php), \
             or name one in OUTBOARD_BIN",
            path.display()
        );
        path
    }

    /// The gateway's process.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// The socket that `outboard status` and `outboard reload` take as `--admin`.
    pub fn admin_socket(&self) -> &Path {
        &self.admin_socket
    }
}

impl Site for Server {
    fn name(&self) -> &str {
        "outboard"
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    fn ports(&self) -> Vec<u16> {
        vec![self.address.port(), self.own_port]
    }

    fn log(&self) -> String {
        self.child.output()
    }

    fn rewinds(&self) -> u64 {
        let mut command = Command::new(Server::binary());
        command.args(["status", "--json", "--admin"]).arg(&self.admin_socket);
        let output = command.output().expect("the binary is there");
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let pools = status["pools"].as_array().expect("the status has them").iter();
        let waits = pools.flat_map(|pool| pool["waits"].as_array().expect("a pool has them"));
        let of_rewinds = waits.filter(|wait| wait["call"] == "rewind");
        of_rewinds
            .flat_map(|wait| ["suspended", "blocked"].map(|key| wait[key].as_u64()))
            .flatten()
            .sum()
    }
}

/// The drain time-out is longer than a test's patience: a drain that only ends with it is a failure.
fn configuration(app: &App, scratch: &Scratch, tables: &str) -> String {
    let path = scratch.path();
    let ini = app.php_ini(&scratch.folder("uploads"), &scratch.folder("sessions"));
    let ini_file = scratch.file("php.ini", ini);
    let user = php_user().map(|user| format!("user = {user:?}\n")).unwrap_or_default();
    let deny: Vec<String> = app.deny.iter().map(|prefix| format!("\"{prefix}**\"")).collect();
    let mode = app.rewound.as_ref().map(|script| {
        format!(
            "mode = \"worker\"\n[app.site.worker]\nscript = {script:?}\nisolation = \"rewind\"\n"
        )
    });
    let mut text = format!(
        "listen = \"127.0.0.1:0\"\ndrain_timeout = \"10m\"\n\n\
         [admin]\nsocket = {socket:?}\n\n\
         [io]\ntemp_dir = {path:?}\n\n\
         [log.access]\npath = \"off\"\n\n\
         [app.site]\n{user}root = {root:?}\ndeny = [{deny}]\n{mode}\n\
         [app.site.pool]\nmin = {workers}\nmax = {workers}\nmin_idle = 0\n\n\
         [app.site.php]\nini_file = {ini_file:?}\nini_scan_dir = {scan_dir:?}\n\n",
        socket = path.join("admin.sock"),
        root = app.root,
        scan_dir = ini_scan_dir(),
        deny = deny.join(", "),
        mode = mode.unwrap_or_default(),
        workers = app.workers,
    );
    text.push_str("[app.site.php.env]\n");
    for (name, value) in &app.env {
        text.push_str(&format!("{name} = {value:?}\n"));
    }
    text.push_str("\n[app.site.sendfile.accel]\n");
    for (prefix, folder) in &app.accel {
        text.push_str(&format!("{prefix:?} = {folder:?}\n"));
    }
    text.push('\n');
    text.push_str(tables);
    text
}
