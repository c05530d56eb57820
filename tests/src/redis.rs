//! A Redis server that keeps nothing.

use crate::{Child, Launch, Scratch};
use std::path::PathBuf;

/// A running Redis, reached through a Unix socket alone.
#[derive(Debug)]
pub struct Redis {
    socket: PathBuf,
    _child: Child,
    _scratch: Scratch,
}

impl Redis {
    /// The password that clients give.
    pub const PASSWORD: &str = "e2e-password";

    /// Starts it and returns when it answers.
    pub fn start() -> Redis {
        let scratch = Scratch::new("redis");
        let socket = scratch.path().join("redis.sock");
        let child = Launch::new("/usr/bin/redis-server")
            .args(["--port", "0", "--save", "", "--requirepass", Redis::PASSWORD, "--dir"])
            .arg(scratch.path())
            .arg("--unixsocket")
            .arg(&socket)
            .start();
        child
            .wait_for(|line| line.to_lowercase().contains("ready to accept").then_some(()))
            .unwrap_or_else(|output| panic!("Redis does not start: {output}"));
        Redis { socket, _child: child, _scratch: scratch }
    }

    /// The socket that clients connect to.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }
}
