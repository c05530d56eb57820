use super::*;
use outboard_ring::control::{Rlimits, Xdebug};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) fn settings() -> HostSettings {
    HostSettings {
        app: "test".into(),
        document_root: "/srv".into(),
        sapi_name: "fpm-fcgi".into(),
        ini_file: None,
        ini_scan_dir: None,
        ini: BTreeMap::new(),
        fixed_ini: BTreeMap::new(),
        env: BTreeMap::new(),
        run_as: None,
        no_new_privileges: true,
        dumpable: false,
        background_programs: false,
        sandbox: None,
        control_group: None,
        rlimits: Rlimits::default(),
        worker: None,
        xdebug: Xdebug::Never,
    }
}

/// Blocks until a descriptor has something to read or is closed.
fn wait_readable(fd: impl AsFd) {
    use rustix::event::{PollFd, PollFlags, poll};
    let timeout = Duration::from_secs(20).try_into().unwrap();
    let count = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)).unwrap();
    assert_eq!(count, 1, "nothing came");
}

pub(crate) fn wait_closed(zygote: &Zygote) {
    loop {
        wait_readable(zygote.control_fd());
        if zygote.receive().unwrap() == Received::Closed {
            return;
        }
    }
}

fn read_all(output: OwnedFd) -> String {
    rustix::io::ioctl_fionbio(&output, false).unwrap();
    let mut text = String::new();
    std::fs::File::from(output).read_to_string(&mut text).unwrap();
    text
}

/// A stand-in for the host: a shell script that is gone when the test is.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("outboard-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Another test's fork may for a moment hold the freshly written script open for writing.
fn try_spawn(host: &Path) -> Result<(Zygote, OwnedFd), SpawnError> {
    loop {
        match Zygote::spawn(host, settings()) {
            Err(SpawnError::Exec { error, .. })
                if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
            result => return result,
        }
    }
}

fn spawn(host: &Path) -> (Zygote, OwnedFd) {
    try_spawn(host).unwrap()
}

/// A zygote whose end of the control socket the test has.
pub(crate) fn with_host_end() -> (Zygote, OwnedFd) {
    let mut host_end = None;
    let process = |of_host, _| {
        host_end = Some(of_host);
        Ok(Process::Own(Command::new("/bin/true").spawn().unwrap()))
    };
    let (zygote, _output) =
        Zygote::start(&Order::Start { settings: Box::new(settings()) }, process).unwrap();
    (zygote, host_end.unwrap())
}

/// For a zygote that is known to be ending.
fn wait_exit(zygote: &mut Zygote) -> ExitStatus {
    let Process::Own(child) = &mut zygote.process else { panic!("this process started it") };
    child.wait().unwrap()
}

#[test]
fn a_missing_host_is_named_and_a_hint_says_how_to_get_it() {
    let error = Zygote::spawn(Path::new("/nonexistent/outboard-php"), settings()).unwrap_err();
    assert!(matches!(error, SpawnError::Missing(_)));
    let text = error.to_string();
    assert!(text.contains("/nonexistent/outboard-php is missing"), "{text}");
    assert!(text.contains("install/build it: "), "{text}");
    let version = SpawnError::Missing("/usr/lib/outboard/outboard-php8.4".into()).to_string();
    assert!(version.contains("install the package outboard-php8.4"), "{version}");
}

#[test]
fn a_host_without_permission_differs_from_a_missing_one() {
    let error = Zygote::spawn(Path::new("/etc/passwd"), settings()).unwrap_err();
    assert!(error.to_string().contains("chmod +x"), "{error}");
}

#[test]
fn a_host_without_its_interpreter_differs_from_a_missing_one() {
    let script = Script::new("no-interpreter", "#!/nonexistent/interpreter\n");
    let error = try_spawn(&script.0).unwrap_err();
    assert!(error.to_string().contains("interpreter is missing"), "{error}");
}

#[test]
fn settings_that_are_too_long_are_refused_with_a_hint() {
    let mut settings = settings();
    settings.env.insert("LONG".into(), "x".repeat(256 * 1024));
    let error = Zygote::spawn(Path::new("/bin/cat"), settings).unwrap_err();
    assert!(matches!(error, SpawnError::Settings(_)));
    assert!(error.to_string().contains("fewer ini values"), "{error}");
}

#[test]
fn a_host_that_exits_at_once_is_closed_with_output_and_code() {
    let script = Script::new("leaves", "#!/bin/sh\necho libphp.so: no such file >&2\nexit 127\n");
    let (mut zygote, output) = spawn(&script.0);
    wait_closed(&zygote);
    assert_eq!(read_all(output), "libphp.so: no such file\n");
    assert_eq!(wait_exit(&mut zygote).code(), Some(127));
}

#[test]
fn the_host_sees_nothing_of_the_gateways_environment() {
    let script = Script::new("env", "#!/bin/sh\nexec /usr/bin/env\n");
    let (_zygote, output) = spawn(&script.0);
    let text = read_all(output);
    // The shell sets PWD and its like by itself.
    assert!(!text.contains("PATH=") && !text.contains("CARGO"), "{text}");
}

#[test]
fn the_order_to_start_arrives_on_standard_input() {
    let (zygote, output) = spawn(Path::new("/bin/cat"));
    // `cat` echoes the packet to its output, which is the pipe.
    wait_readable(&output);
    let mut text = vec![0; 4096];
    let len = rustix::io::read(&output, &mut text).unwrap();
    let text = String::from_utf8_lossy(&text[..len]);
    assert!(text.contains("\"order\":\"start\""), "{text}");
    assert_eq!(zygote.receive().unwrap(), Received::Nothing);
}

#[test]
fn an_invalid_event_is_an_error() {
    let script = Script::new("babbles", "#!/bin/sh\necho hello >&0\nexec /bin/cat\n");
    let (zygote, _output) = spawn(&script.0);
    wait_readable(zygote.control_fd());
    assert_eq!(zygote.receive().unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_killed_zygote_is_reaped_and_reports_its_signal() {
    use std::os::unix::process::ExitStatusExt;
    let (mut zygote, _output) = spawn(Path::new("/bin/cat"));
    assert!(!zygote.has_exited());
    zygote.kill().unwrap();
    wait_closed(&zygote);
    assert_eq!(wait_exit(&mut zygote).signal(), Some(9));
    zygote.kill().expect("killing twice is no error");
}

#[test]
fn a_dropped_zygote_leaves_neither_orphan_nor_zombie() {
    let (zygote, _output) = spawn(Path::new("/bin/cat"));
    let process = PathBuf::from(format!("/proc/{}", zygote.pid().unwrap()));
    assert!(process.exists());
    drop(zygote);
    assert!(!process.exists(), "a zombie would still be listed");
}
