//! A server process that a test starts: its own process group, its output, its end.
//!
//! It ends with the test in every case: on drop the group is terminated; if the test process dies
//! without dropping it (shared servers are statics), the kernel sends SIGTERM through setpriv(1)'s
//! `--pdeathsig`. prctl(2) ties that signal to the *thread* that forked, so all children are
//! spawned by one thread that lives as long as the process.

use crate::Process;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Patience with a server that should start or end; only a broken one needs it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lines of output that are kept.
const LINES_MAX: usize = 20_000;
/// Lines of output that are shown when a test fails.
const LINES_SHOWN: usize = 30;

/// What to start: a program, its arguments, and optionally the user it runs as.
#[derive(Debug)]
pub struct Launch {
    program: String,
    command: Command,
}

impl Launch {
    /// A program that keeps the user of the test.
    pub fn new(program: &str) -> Launch {
        Launch::with_setpriv(program, &[])
    }

    /// A program that runs as another user; the test must be root.
    pub fn as_user(program: &str, user: &str) -> Launch {
        let arguments = ["--reuid", user, "--regid", user, "--init-groups"];
        Launch::with_setpriv(program, &arguments)
    }

    fn with_setpriv(program: &str, arguments: &[&str]) -> Launch {
        let mut command = Command::new("setpriv");
        command.args(arguments).args(["--pdeathsig", "TERM", "--", program]);
        Launch { program: program.to_owned(), command }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Launch {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Launch {
        self.command.args(arguments);
        self
    }

    /// Starts it in this folder.
    pub fn directory(mut self, folder: impl AsRef<std::path::Path>) -> Launch {
        self.command.current_dir(folder);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Launch {
        self.command.env(name, value);
        self
    }

    /// Starts it.
    pub fn start(self) -> Child {
        Child::start(self)
    }
}

/// A running process group.
#[derive(Debug)]
pub struct Child {
    program: String,
    process: Mutex<std::process::Child>,
    output: Arc<Output>,
}

/// What the process has written, and what woke up because of it.
#[derive(Debug, Default)]
struct Output {
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct OutputState {
    lines: VecDeque<String>,
    open_pipes: usize,
}

impl Child {
    fn start(launch: Launch) -> Child {
        use std::os::unix::process::CommandExt;
        let Launch { program, mut command } = launch;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut process =
            spawn(command).unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        let output = Arc::new(Output::default());
        output.collect(process.stdout.take().expect("stdout was asked to be a pipe"));
        output.collect(process.stderr.take().expect("stderr was asked to be a pipe"));
        Child { program, process: Mutex::new(process), output }
    }

    /// The process id, which is the id of its group too.
    pub fn pid(&self) -> u32 {
        self.process.lock().expect("no holder panics").id()
    }

    /// The memory that it has (`VmRSS` of proc(5)).
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.expect("proc(5)").trim().trim_end_matches(" kB");
        kib.parse::<u64>().expect("a number") << 10
    }

    /// Waits until a line is written that `wanted` takes, also if that was long ago.
    /// The error is everything the process wrote before it closed its output or patience ended.
    pub fn wait_for<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.output.state.lock().expect("no holder panics");
        loop {
            if let Some(found) = state.lines.iter().find_map(|line| wanted(line)) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.open_pipes == 0 || left.is_zero() {
                return Err(format!("{} wrote:\n{}", self.program, state.text()));
            }
            state = self.output.changed.wait_timeout(state, left).expect("no holder panics").0;
        }
    }

    /// Everything it has written so far.
    pub fn output(&self) -> String {
        self.output.state.lock().expect("no holder panics").text()
    }

    /// Sends a signal to the process itself.
    pub fn signal(&self, signal: rustix::process::Signal) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid() as i32) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits for its end and returns the exit code; `None` if a signal ended it.
    #[track_caller]
    pub fn wait(&self) -> Option<i32> {
        Process::of(self.pid()).wait_until_gone();
        self.process.lock().expect("no holder panics").wait().ok().and_then(|s| s.code())
    }

    fn signal_group(&self, signal: rustix::process::Signal) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid() as i32) {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        use rustix::process::Signal;
        self.signal_group(Signal::TERM);
        // Pipes close when the last process of the group is gone, a silent leader or a busy one.
        let deadline = Instant::now() + PATIENCE / 6;
        let mut state = self.output.state.lock().expect("no holder panics");
        while state.open_pipes > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.output.changed.wait_timeout(state, left).expect("no holder panics").0;
        }
        drop(state);
        self.signal_group(Signal::KILL);
        let _ = self.process.lock().expect("no holder panics").wait();
        if thread::panicking() {
            let output = self.output();
            let lines: Vec<&str> = output.lines().collect();
            let tail = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
            eprintln!("---- {} wrote at last:\n{}", self.program, tail.join("\n"));
        }
    }
}

impl Output {
    fn collect(self: &Arc<Self>, pipe: impl Read + Send + 'static) {
        self.state.lock().expect("no holder panics").open_pipes += 1;
        let output = Arc::clone(self);
        thread::spawn(move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                output.add(String::from_utf8_lossy(&line).trim_end().to_owned());
                line.clear();
            }
            output.state.lock().expect("no holder panics").open_pipes -= 1;
            output.changed.notify_all();
        });
    }

    fn add(&self, line: String) {
        let mut state = self.state.lock().expect("no holder panics");
        if state.lines.len() == LINES_MAX {
            state.lines.pop_front();
        }
        state.lines.push_back(line);
        self.changed.notify_all();
    }
}

impl OutputState {
    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

type Spawned = std::io::Result<std::process::Child>;

fn spawn(command: Command) -> Spawned {
    static KEEPER: OnceLock<mpsc::Sender<(Command, mpsc::Sender<Spawned>)>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (give, take) = mpsc::channel::<(Command, mpsc::Sender<Spawned>)>();
        thread::spawn(move || {
            for (mut command, answer) in take {
                // A requester that has panicked meanwhile wants no answer.
                let _ = answer.send(command.spawn());
            }
        });
        give
    });
    let (give, take) = mpsc::channel();
    keeper.send((command, give)).expect("the keeper lives as long as the process");
    take.recv().expect("the keeper answers every command")
}
