//! A memcached server.

use crate::{Child, Launch, Scratch};
use std::path::PathBuf;

/// A running memcached, reached through a Unix socket alone.
#[derive(Debug)]
pub struct Memcached {
    socket: PathBuf,
    _child: Child,
    _scratch: Scratch,
}

impl Memcached {
    /// Starts it and returns when it answers.
    pub fn start() -> Memcached {
        let scratch = Scratch::new("memcached");
        let socket = scratch.path().join("memcached.sock");
        let user = ["-u", "root"].map(str::to_owned);
        let launch = Launch::new("/usr/bin/memcached").arg("-vv").arg("-s").arg(&socket);
        let launch = if rustix::process::geteuid().is_root() { launch.args(user) } else { launch };
        let child = launch.start();
        child
            .wait_for(|line| line.contains("server listening").then_some(()))
            .unwrap_or_else(|output| panic!("memcached does not start: {output}"));
        Memcached { socket, _child: child, _scratch: scratch }
    }

    /// The socket that clients connect to.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }
}
