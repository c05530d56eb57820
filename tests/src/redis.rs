//! A Redis server that keeps nothing.

use crate::{Child, Launch, Scratch};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
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

    /// Has a command done that replies with `+OK`.
    #[track_caller]
    pub fn tell(&self, words: &[&str]) {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        let mut line = format!("AUTH {}\r\n", Redis::PASSWORD);
        line.extend([words.join(" "), "\r\n".to_owned()]);
        stream.write_all(line.as_bytes()).expect("it reads");
        let mut replies = [0; 10];
        stream.read_exact(&mut replies).expect("it replies");
        assert_eq!(&replies, b"+OK\r\n+OK\r\n");
    }

    /// The socket that clients connect to.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }
}
