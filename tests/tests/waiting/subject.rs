//! Who takes the steps of a row: php-cli, which blocks, or a worker.

use outboard_e2e::{Client, Configured, Docroot, Names, Request, Response};
use regex::Regex;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// The arguments of a step: names and values.
pub(crate) type At = Vec<(String, String)>;

/// Takes steps of a row's script, and says what came of each.
pub(crate) trait Subject: Sync {
    /// Takes one.
    fn step(&self, script: &str, verb: &str, at: &At) -> Value;
}

/// php-cli.
#[derive(Debug)]
pub(crate) struct Reference {
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    child: std::process::Child,
}

impl Reference {
    pub(crate) fn start() -> Reference {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/waiting/cli.php");
        let mut child = Command::new("timeout")
            .args(["60", "php8.2", "-d", "html_errors=0", "-d", "display_errors=stderr", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("ci/setup installs php-cli");
        let pipes = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        Reference { pipes: Mutex::new(pipes.expect("both were asked for")), child }
    }
}

impl Subject for Reference {
    fn step(&self, script: &str, verb: &str, at: &At) -> Value {
        let mut step = serde_json::Map::new();
        let facts = at.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in facts.chain([("row", script), ("verb", verb)]) {
            step.insert(name.to_owned(), value.into());
        }
        let (stdin, stdout) = &mut *self.pipes.lock().expect("no holder panics");
        writeln!(stdin, "{}", Value::from(step)).expect("php-cli reads");
        let mut line = String::new();
        stdout.read_line(&mut line).expect("php-cli writes text");
        outcome_of(&line)
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One worker that may have several requests.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) site: Configured,
    pid: String,
}

impl Worker {
    /// One with a deadline that no test reaches.
    pub(crate) fn start() -> Worker {
        Worker::with_deadline("10m")
    }

    /// One that ends requests after this time.
    pub(crate) fn with_deadline(deadline: &str) -> Worker {
        Worker::of(Configured::start(docroot(), &configuration(deadline)))
    }

    /// One that asks this server for names.
    pub(crate) fn resolving(names: &Names) -> Worker {
        Worker::of(Configured::resolving(names, docroot(), &configuration("10m")))
    }

    fn of(site: Configured) -> Worker {
        let pid = header(&Client::new(site.address()).get("/hello").expect(200));
        Worker { site, pid }
    }

    /// Sends a request, which the first worker answers.
    #[track_caller]
    pub(crate) fn get(&self, target: &str) -> Response {
        let response = Client::new(self.site.address()).send(&Request::get(target)).expect(200);
        assert_eq!(header(&response), self.pid, "another worker: the first one is gone");
        response
    }

    /// Is served, whatever waits.
    #[track_caller]
    pub(crate) fn expect_service(&self) {
        self.get("/hello").expect(200).saying("\"hello\"");
    }

    /// The target of a step.
    pub(crate) fn target(&self, path: &str, script: &str, verb: &str, at: &At) -> String {
        let mut target = format!("{path}?row={script}&verb={}", verb.replace(' ', "%20"));
        for (name, value) in at {
            write!(target, "&{name}={value}").expect("a string takes it");
        }
        target
    }
}

impl Subject for Worker {
    #[track_caller]
    fn step(&self, script: &str, verb: &str, at: &At) -> Value {
        outcome_of(&self.get(&self.target("/step", script, verb, at)).text())
    }
}

fn docroot() -> Docroot {
    let docroot = Docroot::of("waiting");
    docroot.writable("");
    docroot
}

fn header(response: &Response) -> String {
    response.header("x-worker").expect("the script says it").to_owned()
}

fn configuration(deadline: &str) -> String {
    format!(
        "listen = \"127.0.0.1:0\"\n\
         [log.access]\npath = \"off\"\n\
         [limits]\nrequest_deadline = \"{deadline}\"\n\
         [php.ini]\nhtml_errors = false\n\
         \"ffi.enable\" = true\n\
         [pool]\nmin = 1\nmax = 1\nloopback_slots = 0\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n\
         [app.site.worker]\nscript = \"www/worker.php\"\nconcurrency = 64\n"
    )
}

/// The outcome without what changes from run to run: how long a call took, how far libcurl had come
/// when its time was over, and whether phpredis notices the end of a connection before it reads (it
/// connects again then) or while it does.
fn outcome_of(line: &str) -> Value {
    static TOOK: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"after \d+ (ms|milliseconds)").expect("it is valid"));
    static LATE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(SSL connection|Connection|Operation|Resolving) (timed out|timeout)[^"]*"#)
            .expect("it is valid")
    });
    static LOST: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"read error on connection to [0-9.:]+|AUTH failed while reconnecting")
            .expect("it is valid")
    });
    let text = TOOK.replace_all(line, "after N $1");
    let text = LATE.replace_all(&text, "timed out");
    let text = LOST.replace_all(&text, "connection lost");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {line}"))
}
