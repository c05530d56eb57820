//! A Redis server that keeps nothing.

use crate::{Child, Launch, Scratch};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// A running Redis, reached through a Unix socket alone.
#[derive(Debug)]
pub struct Redis {
    socket: PathBuf,
    child: Child,
    scratch: Scratch,
}

impl Redis {
    /// The password that clients give.
    pub const PASSWORD: &str = "e2e-password";

    /// Starts it and returns when it answers.
    pub fn start() -> Redis {
        let scratch = Scratch::new("redis");
        let socket = scratch.path().join("redis.sock");
        let child = launch(&scratch, &socket);
        Redis { socket, child, scratch }
    }

    /// Ends it at once, as a power failure would.
    pub fn kill(&self) {
        self.child.signal(Signal::KILL);
        self.child.wait();
    }

    /// Starts it again after [`Redis::kill`], empty.
    pub fn start_again(&mut self) {
        self.child = launch(&self.scratch, &self.socket);
    }

    /// It does nothing until [`Redis::resume`].
    pub fn pause(&self) {
        self.child.signal(Signal::STOP);
    }

    /// It continues.
    pub fn resume(&self) {
        self.child.signal(Signal::CONT);
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

fn launch(scratch: &Scratch, socket: &Path) -> Child {
    let child = Launch::new("/usr/bin/redis-server")
        .args(["--port", "0", "--save", "", "--requirepass", Redis::PASSWORD, "--dir"])
        .arg(scratch.path())
        .arg("--unixsocket")
        .arg(socket)
        .start();
    child
        .wait_for(|line| line.to_lowercase().contains("ready to accept").then_some(()))
        .unwrap_or_else(|output| panic!("Redis does not start: {output}"));
    child
}
