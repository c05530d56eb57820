//! A named pipe between a test and a script: one waits until the other says so.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How long the other side may stay silent before the test gives up on it.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// A named pipe that is open on the test's side, so that the script's fopen() never blocks.
#[derive(Debug)]
pub struct Fifo {
    path: PathBuf,
    file: File,
}

impl Fifo {
    /// Makes the pipe; every user may read and write it.
    pub fn at(path: PathBuf) -> Fifo {
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o666),
            0,
        );
        made.unwrap_or_else(|error| panic!("mkfifo {}: {error}", path.display()));
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("it is ours");
        // Reading and writing: opening for one alone would wait for the other side (fifo(7)).
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("it is ours");
        Fifo { path, file }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets one waiting fgets() of the script go on.
    pub fn open(&mut self) {
        self.say("go");
    }

    /// Says a line to the script.
    pub fn say(&mut self, line: &str) {
        writeln!(self.file, "{line}").expect("a pipe holds a line");
    }

    /// Waits for a line of the script.
    #[track_caller]
    pub fn hear(&mut self) -> String {
        let ready = poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&PATIENCE));
        assert_eq!(ready, Ok(1), "nobody wrote to {}", self.path.display());
        let mut line = String::new();
        BufReader::new(&self.file).read_line(&mut line).expect("poll said so");
        line.trim_end().to_owned()
    }
}
