//! Tests of a spawner whose server runs in a thread of the test: it starts scripts of the test's own user.

use super::*;
use crate::server;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, Shutdown};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

const USER: (u32, u32) = (33, 34);

/// A spawner with its directory: what is in it is granted under the name of its kind.
struct Served {
    spawner: Spawner,
    server: JoinHandle<io::Result<()>>,
    directory: PathBuf,
}

impl Served {
    fn new(name: &str) -> Self {
        let name = format!("outboard-spawner-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(directory.join("directory")).unwrap();
        let paths = |names: &[&str]| names.iter().map(|name| directory.join(name)).collect();
        let grants = Grants {
            users: vec![USER, (0, 0)],
            programs: paths(&["host", "none", "directory"]),
            files: paths(&["file", "other", "none", "directory"]),
            logs: paths(&["log", "none/log", "directory"]),
            leftovers: paths(&["leftover", "none", "directory"]),
        };
        let (control, of_spawner) = control::pair().unwrap();
        let server = thread::spawn(move || server::serve(of_spawner, grants));
        let process = Command::new("/bin/true").spawn().unwrap();
        Self {
            spawner: Spawner { client: Arc::new(Client::new(control, process)) },
            server,
            directory,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Starts a host with this script, and returns both ends of what it was given.
    fn host(&self, script: &str) -> (Child, PipeWriter, PipeReader) {
        // Written by another process: a file that a concurrent test's child inherits open is busy.
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$2\" && chmod +x \"$2\"";
        let mut shell = Command::new("/bin/sh");
        let shell = shell.args(["-c", write, "sh", script]).arg(self.path("host"));
        assert!(shell.status().unwrap().success());
        let ((input, to_host), (from_host, output)) = (pipe().unwrap(), pipe().unwrap());
        let child = self.start("host", USER, &input, &output).unwrap();
        (child, to_host, from_host)
    }

    fn start(
        &self,
        program: &str,
        user: (u32, u32),
        input: &impl AsFd,
        output: &impl AsFd,
    ) -> io::Result<Child> {
        self.spawner.spawn(&self.path(program), user, None, input.as_fd(), output.as_fd())
    }

    /// Closes the connection as the end of the gateway does.
    fn end(self) -> io::Result<()> {
        rustix::net::shutdown(self.spawner.watch().unwrap(), Shutdown::Both).unwrap();
        let result = self.server.join().unwrap();
        fs::remove_dir_all(self.directory).unwrap();
        result
    }
}

/// What a pipe still has, until its last writer has closed it.
fn rest(mut pipe: impl Read) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).unwrap();
    text
}

fn wait_for_exit(child: &Child) {
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    // Without a pidfd it was reaped already.
    if let Ok(exit) = pidfd_open(pid, PidfdFlags::empty()) {
        let bound = Timespec { tv_sec: 20, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&exit, PollFlags::IN)], Some(&bound)), Ok(1));
    }
}

#[test]
fn a_host_gets_its_user_and_an_empty_environment() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "not empty here");
    let served = Served::new("start");
    let (child, mut input, mut output) = served
        .host("read line; echo \"$*, ${CARGO_MANIFEST_DIR-none}, $line\"; echo error >&2; exit 7");
    assert!(!child.has_exited(), "it reads");
    assert_eq!(child.exit_status(), None);
    input.write_all(b"settings\n").unwrap();
    assert_eq!(rest(&mut output), "--user 33:34, none, settings\nerror\n");
    wait_for_exit(&child);
    assert!(child.has_exited());
    assert_eq!(child.exit_status().unwrap().code(), Some(7));
    assert_eq!(child.exit_status().unwrap().code(), Some(7), "also a second time");
    drop(child);
    served.end().unwrap();
}

#[test]
fn a_killed_host_has_the_status_of_its_signal() {
    let served = Served::new("kill");
    let (child, _input, output) = served.host("echo $$; read line");
    child.kill();
    // After its end as well.
    child.kill();
    rest(output);
    wait_for_exit(&child);
    assert_eq!(child.exit_status().unwrap().signal(), Some(9));
    child.kill();
    assert_eq!(child.exit_status().unwrap().signal(), Some(9));
    drop(child);
    served.end().unwrap();
}

#[test]
fn a_dropped_child_is_killed_and_the_others_are_not() {
    let served = Served::new("drop");
    let (first, _input, first_output) = served.host("read line");
    let (second, mut input, mut second_output) = served.host("read line; echo $line");
    assert_ne!(first.id(), second.id());
    drop(first);
    assert_eq!(rest(first_output), "");
    assert!(!second.has_exited());
    input.write_all(b"alive\n").unwrap();
    assert_eq!(rest(&mut second_output), "alive\n");
    drop(second);
    served.end().unwrap();
}

#[test]
fn hosts_end_with_the_connection_of_the_gateway() {
    let served = Served::new("end");
    let (child, _input, output) = served.host("read line");
    served.end().unwrap();
    assert_eq!(rest(output), "");
    // It does not wait for a response of a spawner that has exited.
    assert_eq!(child.exit_status(), None);
    child.kill();
}

#[test]
fn an_unknown_message_ends_the_spawner_and_its_hosts() {
    let served = Served::new("unknown");
    let (_child, _input, output) = served.host("read line");
    let control = served.spawner.watch().unwrap();
    rustix::net::send(control, b"{\"Exec\":\"/bin/sh\"}", SendFlags::empty()).unwrap();
    assert_eq!(rest(output), "");
    let error = served.end().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().starts_with("unknown variant `Exec`"), "{error}");
}

#[test]
fn a_start_that_was_not_granted_is_refused() {
    let served = Served::new("refused");
    fs::write(served.path("none"), "").unwrap();
    let (reader, writer) = pipe().unwrap();
    let restart = "was not configured when root started the server: restart it";
    for (user, program, expected) in [
        ((0, 0), "host", format!("user 0 with group 0 {restart}")),
        ((33, 33), "host", format!("user 33 with group 33 {restart}")),
        (USER, "file", format!("the PHP host {} {restart}", served.path("file").display())),
        (USER, "../sh", format!("the PHP host {} {restart}", served.path("../sh").display())),
    ] {
        let error = served.start(program, user, &reader, &writer).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::Unsupported, expected));
    }
    for program in ["none", "directory"] {
        let error = served.start(program, USER, &reader, &writer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{program}");
    }
    served.end().unwrap();
}

#[test]
fn a_start_needs_exactly_two_descriptors() {
    let served = Served::new("descriptors");
    let (reader, _writer) = pipe().unwrap();
    for count in [0, 1, 3] {
        let (program, group) = (served.path("host"), None);
        let request = Request::Start { program, uid: USER.0, gid: USER.1, group };
        let descriptors = vec![reader.as_fd(); count];
        let error = served.spawner.client.call(&request, &descriptors).unwrap_err();
        assert_eq!(error.to_string(), "a start comes with two descriptors", "{count}");
    }
    served.end().unwrap();
}

#[test]
fn grants_are_received_only_once() {
    let served = Served::new("begin");
    let shadow = PathBuf::from("/etc/shadow");
    let more = Grants { files: vec![shadow.clone()], ..Grants::default() };
    let error = served.spawner.client.call(&Request::Begin(more), &[]).unwrap_err();
    assert_eq!(error.to_string(), "the spawner has begun already");
    assert_eq!(served.spawner.read(&shadow).unwrap_err().kind(), io::ErrorKind::Unsupported);
    served.end().unwrap();
}

#[test]
fn granted_files_are_read_appended_and_removed() {
    let served = Served::new("files");
    fs::write(served.path("file"), "content").unwrap();
    assert_eq!(rest(served.spawner.read(&served.path("file")).unwrap()), "content");
    for line in ["first\n", "second\n"] {
        served.spawner.append(&served.path("log")).unwrap().write_all(line.as_bytes()).unwrap();
    }
    assert_eq!(fs::read_to_string(served.path("log")).unwrap(), "first\nsecond\n");
    fs::write(served.path("leftover"), "").unwrap();
    served.spawner.remove(&served.path("leftover")).unwrap();
    assert!(!served.path("leftover").exists());
    served.end().unwrap();
}

#[test]
fn an_error_of_the_system_has_its_number() {
    let served = Served::new("errors");
    let kind = |result: io::Result<File>| {
        let error = result.unwrap_err();
        assert!(error.raw_os_error().is_some(), "{error}");
        error.kind()
    };
    assert_eq!(kind(served.spawner.read(&served.path("none"))), io::ErrorKind::NotFound);
    assert_eq!(kind(served.spawner.append(&served.path("none/log"))), io::ErrorKind::NotFound);
    assert_eq!(kind(served.spawner.append(&served.path("directory"))), io::ErrorKind::IsADirectory);
    let removed = served.spawner.remove(&served.path("none")).unwrap_err();
    assert_eq!(removed.kind(), io::ErrorKind::NotFound);
    assert!(served.spawner.remove(&served.path("directory")).is_err());
    assert!(served.path("directory").exists());
    served.end().unwrap();
}

#[test]
fn each_kind_of_file_is_granted_on_its_own() {
    let served = Served::new("kinds");
    for name in ["file", "log", "leftover"] {
        fs::write(served.path(name), name).unwrap();
    }
    let error = |result: io::Result<()>| result.unwrap_err().to_string();
    let spawner = &served.spawner;
    for (name, kind, refused) in [
        ("log", "file", error(spawner.read(&served.path("log")).map(drop))),
        (
            "directory/../file",
            "file",
            error(spawner.read(&served.path("directory/../file")).map(drop)),
        ),
        ("file", "log", error(spawner.append(&served.path("file")).map(drop))),
        ("file", "leftover", error(spawner.remove(&served.path("file")))),
    ] {
        let start = format!("the {kind} {} was not configured", served.path(name).display());
        assert!(refused.starts_with(&start), "{refused}");
    }
    served.end().unwrap();
}

#[test]
fn concurrent_requests_get_their_own_responses() {
    let served = Served::new("turns");
    for name in ["file", "other"] {
        fs::write(served.path(name), name).unwrap();
    }
    thread::scope(|scope| {
        for name in ["file", "other", "file", "other"] {
            let served = &served;
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(rest(served.spawner.read(&served.path(name)).unwrap()), name);
                }
            });
        }
    });
    served.end().unwrap();
}

#[test]
fn a_number_of_no_child_is_ignored() {
    let served = Served::new("numbers");
    for number in [0, 7, u64::MAX] {
        served.spawner.client.notify(Request::Kill(number));
        served.spawner.client.notify(Request::Forget(number));
        let (response, _) = served.spawner.client.call(&Request::Status(number), &[]).unwrap();
        assert!(matches!(response, Response::Exited(None)), "{response:?}");
    }
    served.end().unwrap();
}

#[test]
fn a_path_that_is_not_text_is_an_error() {
    let served = Served::new("bytes");
    let path = served.directory.join(std::ffi::OsStr::from_bytes(b"\xff"));
    let error = served.spawner.read(&path).unwrap_err();
    assert_eq!(error.to_string(), "path contains invalid UTF-8 characters");
    // The connection goes on.
    fs::write(served.path("file"), "content").unwrap();
    assert_eq!(rest(served.spawner.read(&served.path("file")).unwrap()), "content");
    served.end().unwrap();
}
