//! The gateway's role, for tests and measurements: starts a host, forks workers, sends requests
//! through the ring and collects the answers.
//!
//! Invariant: every wait has an end, far beyond what a passing test needs.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part of the driver")]

use outboard_ring::channel::{Capacities, GatewayChannel, LEASES};
use outboard_ring::control::{self, Event, HostSettings, Isolation, Order, WorkerScript};
use outboard_ring::doorbell::Doorbell;
use outboard_ring::frame::{FrameHeader, FrameKind, Tag};
use outboard_ring::request::{self, FIELD_COUNT, Field, Fixed, RequestParts};
use outboard_ring::response::{Done, LogLine, Outcome, ResponseHead};
use outboard_ring::spsc::{Sleep, Wake};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// The folder of the PHP files that lie beside the tests.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// A folder of a test's own, removed at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-php-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Settings as the gateway sends them for a classic app, with no ini files but the modules'.
pub fn settings() -> HostSettings {
    HostSettings {
        app: "test".into(),
        document_root: fixtures(),
        sapi_name: "fpm-fcgi".into(),
        ini_file: None,
        ini_scan_dir: None,
        ini: ini(&[
            ("opcache.file_update_protection", "0"),
            ("log_errors", "1"),
            ("expose_php", "1"),
            ("output_buffering", "0"),
        ]),
        fixed_ini: BTreeMap::new(),
        env: ini(&[("APP_COLOUR", "blue")]),
        run_as: None,
        worker: None,
    }
}

/// The same as another user, when the tests may become one.
pub fn settings_as_nobody() -> HostSettings {
    let run_as = rustix::process::geteuid().is_root().then_some((65534, 65534));
    HostSettings { run_as, ..settings() }
}

/// Settings for worker mode with this script, one request at a time.
pub fn settings_of_worker(script: PathBuf) -> HostSettings {
    let worker = WorkerScript {
        script,
        concurrency: 1,
        isolation: Isolation::Reset,
        frankenphp: true,
        state_report: None,
    };
    let mut settings = settings();
    settings.ini.extend(ini(&[("display_errors", "0"), ("html_errors", "0")]));
    HostSettings { worker: Some(worker), ..settings }
}

/// Worker mode: a script of the test's own, its host and one worker.
pub struct Resident {
    pub worker: Worker,
    pub host: Host,
    pub folder: Folder,
}

impl Resident {
    /// The code after `<?php`.
    pub fn new(code: &str) -> Self {
        Self::with(code, |_| {})
    }

    /// With a handler for `Outboard\serve()`: the body of a function of `$request`.
    pub fn serving(body: &str) -> Self {
        Self::new(&serve(body))
    }

    /// With so many requests at a time.
    pub fn concurrent(concurrency: u32, code: &str) -> Self {
        Self::with(code, |settings| {
            settings.worker.as_mut().unwrap().concurrency = concurrency;
        })
    }

    pub fn with(code: &str, change: impl FnOnce(&mut HostSettings)) -> Self {
        let folder = Folder::new();
        let mut settings = settings_of_worker(folder.write("worker.php", &format!("<?php {code}")));
        change(&mut settings);
        let mut host = Host::with(settings);
        let worker = host.fork();
        Self { worker, host, folder }
    }

    /// Asks for `/NAME` and returns what a request that succeeded says.
    #[track_caller]
    pub fn get(&mut self, name: &str) -> String {
        finished(&self.ask(name))
    }

    pub fn ask(&mut self, name: &str) -> Answer {
        self.worker.ask(&get(name))
    }

    /// Has the worker leave, and waits until it has; its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.worker.stop();
        self.left()
    }

    /// Waits until the worker has gone; its exit code.
    pub fn left(&mut self) -> Option<i32> {
        match self.host.event() {
            Event::Exited { worker, code, .. } if worker == self.worker.number => code,
            other => panic!("expected the end of the worker, got {other:?}"),
        }
    }
}

/// A script that serves with this handler body, which finds the path without its slash in `$at`.
pub fn serve(body: &str) -> String {
    format!(
        "Outboard\\serve(function (Outboard\\Request $request) {{
             $at = substr($request->path(), 1); {body}
         }});"
    )
}

pub fn ini(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A zygote.
pub struct Host {
    process: Child,
    control: Option<OwnedFd>,
    pub started: Event,
    next_worker: u64,
}

/// Starts the binary and sends the order to start; the event that it answers with.
pub fn start(settings: HostSettings) -> Host {
    let (ours, theirs) = control::pair().unwrap();
    let process = Command::new(env!("CARGO_BIN_EXE_outboard-php"))
        .stdin(Stdio::from(theirs))
        .spawn()
        .unwrap();
    control::send(&ours, &Order::Start { settings: Box::new(settings) }, &[]).unwrap();
    let started = receive_event(&ours).expect("the zygote answers");
    Host { process, control: Some(ours), started, next_worker: 1 }
}

fn receive_event(control: &OwnedFd) -> Option<Event> {
    let mut ready = [PollFd::new(control, PollFlags::IN)];
    assert_ne!(poll(&mut ready, Some(&PATIENCE)).unwrap(), 0, "no event came");
    control::receive(control).unwrap().map(|(event, _)| event)
}

impl Host {
    /// With the usual settings.
    pub fn new() -> Self {
        Self::with(settings())
    }

    pub fn with(settings: HostSettings) -> Self {
        let host = start(settings);
        assert!(matches!(host.started, Event::Started { .. }), "{:?}", host.started);
        host
    }

    pub fn control(&self) -> &OwnedFd {
        self.control.as_ref().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn event(&self) -> Event {
        receive_event(self.control()).expect("an event")
    }

    pub fn signal(&self, worker: u64, signal: i32) {
        control::send(self.control(), &Order::Signal { worker, signal }, &[]).unwrap();
    }

    /// Forks a worker and waits until it is ready.
    pub fn fork(&mut self) -> Worker {
        let mut worker = self.fork_unready(Capacities::default());
        let (header, _) = worker.frame();
        assert_eq!(header.kind, FrameKind::Ready);
        worker
    }

    pub fn fork_unready(&mut self, capacities: Capacities) -> Worker {
        let number = self.next_worker;
        self.next_worker += 1;
        let (channel, memory) = GatewayChannel::create(capacities, 1).unwrap();
        let bell = Doorbell::blocking().unwrap();
        let own_bell = Doorbell::nonblocking().unwrap();
        let (output, output_end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let descriptors = [memory.as_fd(), bell.as_fd(), own_bell.as_fd(), output_end.as_fd()];
        let order = Order::Fork { worker: number };
        control::send(self.control(), &order, &descriptors).unwrap();
        drop(output_end);
        let pid = match self.event() {
            Event::Forked { worker, pid } if worker == number => pid,
            other => panic!("expected the fork of {number}, got {other:?}"),
        };
        Worker { number, pid, channel, bell, own_bell, output: output.into(), generation: 0 }
    }

    /// Closes the control socket and waits for the zygote's end.
    pub fn close(&mut self) {
        self.control = None;
        self.process.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.control = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What to ask for.
#[derive(Clone)]
pub struct Ask {
    pub root: PathBuf,
    pub script: String,
    pub path_info: String,
    pub method: String,
    pub query: String,
    pub content_type: String,
    pub body: Option<Vec<u8>>,
    pub headers: Vec<(String, String)>,
    pub params: Vec<(String, String)>,
    pub scheme: String,
}

pub fn get(script: &str) -> Ask {
    Ask {
        root: fixtures(),
        script: script.into(),
        path_info: String::new(),
        method: "GET".into(),
        query: String::new(),
        content_type: String::new(),
        body: None,
        headers: vec![("Host".into(), "example.test".into())],
        params: Vec::new(),
        scheme: "http".into(),
    }
}

pub fn post(script: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Ask {
    let body = body.into();
    let ask = get(script).header("Content-Type", content_type);
    Ask { method: "POST".into(), content_type: content_type.into(), body: Some(body), ..ask }
}

impl Ask {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn param(mut self, name: &str, value: &str) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    pub fn query(self, query: &str) -> Self {
        Self { query: query.into(), ..self }
    }

    pub fn method(self, method: &str) -> Self {
        Self { method: method.into(), ..self }
    }

    pub fn path_info(self, path_info: &str) -> Self {
        Self { path_info: path_info.into(), ..self }
    }

    pub fn root(self, root: &Path) -> Self {
        Self { root: root.into(), ..self }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        let root = self.root.to_str().unwrap();
        let script_name = format!("/{}", self.script);
        let file = format!("{root}{script_name}");
        let document_uri = format!("{script_name}{}", self.path_info);
        let question = if self.query.is_empty() { "" } else { "?" };
        let uri = format!("{document_uri}{question}{}", self.query);
        let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
        for (field, value) in [
            (Field::Method, self.method.as_str()),
            (Field::Uri, &uri),
            (Field::Query, &self.query),
            (Field::ScriptFilename, &file),
            (Field::ScriptName, &script_name),
            (Field::PathInfo, &self.path_info),
            (Field::DocumentRoot, root),
            (Field::DocumentUri, &document_uri),
            (Field::Protocol, "HTTP/1.1"),
            (Field::ContentType, &self.content_type),
            (Field::RemoteAddr, "192.0.2.7"),
            (Field::ServerAddr, "192.0.2.1"),
            (Field::ServerName, "example.test"),
            (Field::Scheme, &self.scheme),
            (Field::RequestId, "r-1"),
        ] {
            fields[field as usize] = value.as_bytes();
        }
        let fixed = Fixed {
            content_length: self.body.as_ref().map(|body| body.len() as u64),
            received_us: 1_700_000_000_250_000,
            remote_port: 40_000,
            server_port: 8080,
            ..Fixed::default()
        };
        request::encode(
            RequestParts {
                fixed,
                fields,
                headers: self.headers.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())),
                params: self.params.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())),
            },
            out,
        );
    }
}

/// All that came for one request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub reason: String,
    pub lines: Vec<String>,
    pub body: Vec<u8>,
    pub logs: Vec<(u8, String)>,
    pub flushes: usize,
    /// Whether the answer was completed before the script ended.
    pub ended: bool,
    pub done: Done,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn log_text(&self) -> String {
        self.logs.iter().map(|(_, text)| format!("{text}\n")).collect()
    }

    pub fn line(&self, name: &str) -> Option<&str> {
        let prefix = format!("{}:", name.to_lowercase());
        let line = self.lines.iter().find(|line| line.to_lowercase().starts_with(&prefix))?;
        Some(line[prefix.len()..].trim())
    }
}

/// A worker and the gateway's end of its ring.
pub struct Worker {
    pub number: u64,
    pub pid: i32,
    pub channel: GatewayChannel,
    bell: Doorbell,
    own_bell: Doorbell,
    output: File,
    generation: u32,
}

impl Worker {
    /// Sends a request and waits for its end.
    pub fn ask(&mut self, ask: &Ask) -> Answer {
        let tag = self.begin(ask);
        self.finish(tag, ask.body.as_deref().unwrap_or(b""))
    }

    /// Sends the request frame alone.
    pub fn begin(&mut self, ask: &Ask) -> Tag {
        self.generation += 1;
        let tag = Tag { slot: self.generation % LEASES as u32, generation: self.generation };
        let mut payload = Vec::new();
        ask.encode(&mut payload);
        self.channel.offer(tag);
        assert!(self.channel.push(FrameKind::Request, tag, &[&payload]).unwrap());
        self.publish();
        tag
    }

    /// Sends the body as room allows and collects frames until `Done`.
    pub fn finish(&mut self, tag: Tag, body: &[u8]) -> Answer {
        let piece = self.channel.largest_payload_bytes() / 2;
        let mut pieces = body.chunks(piece);
        let mut waiting = pieces.next();
        let mut collected = Collected::default();
        loop {
            while let Some(bytes) = waiting {
                if !self.channel.push(FrameKind::RequestBody, tag, &[bytes]).unwrap() {
                    if self.channel.prepare_wait(bytes.len()).unwrap() == Sleep::MayBlock {
                        break;
                    }
                    continue;
                }
                waiting = pieces.next();
            }
            self.publish();
            if let Some((header, payload)) = self.try_frame() {
                assert_eq!(header.tag, tag, "{header:?}");
                if let Some(answer) = collected.take(header.kind, &payload) {
                    return answer;
                }
            } else {
                self.sleep();
            }
        }
    }

    /// Sends all at once, and returns the answers in the order in which they were completed, each
    /// with its place in `asks`.
    pub fn ask_all(&mut self, asks: &[Ask]) -> Vec<(usize, Answer)> {
        let tags: Vec<Tag> = asks.iter().map(|ask| self.begin(ask)).collect();
        self.finish_all(&tags)
    }

    /// Collects the answers to these requests, in the order in which they come.
    pub fn finish_all(&mut self, tags: &[Tag]) -> Vec<(usize, Answer)> {
        let mut collected: HashMap<u32, Collected> = HashMap::new();
        let mut answers = Vec::new();
        while answers.len() < tags.len() {
            let (header, payload) = self.frame();
            let place = tags.iter().position(|tag| *tag == header.tag).expect("a tag in flight");
            let own = collected.entry(header.tag.generation).or_default();
            if let Some(answer) = own.take(header.kind, &payload) {
                answers.push((place, answer));
            }
        }
        answers
    }

    pub fn push(&mut self, kind: FrameKind, tag: Tag, payload: &[u8]) {
        if kind == FrameKind::Request {
            self.channel.offer(tag);
        }
        assert!(self.channel.push(kind, tag, &[payload]).unwrap());
        self.publish();
    }

    pub fn abort(&mut self, tag: Tag) {
        self.channel.abort(tag);
        self.bell.ring();
    }

    pub fn stop(&mut self) {
        self.push(FrameKind::Stop, Tag::default(), b"");
    }

    pub fn publish(&mut self) {
        if self.channel.publish() == Wake::Needed {
            self.bell.ring();
        }
    }

    /// The next frame, waiting for it.
    pub fn frame(&mut self) -> (FrameHeader, Vec<u8>) {
        loop {
            match self.try_frame() {
                Some(frame) => return frame,
                None => self.sleep(),
            }
        }
    }

    pub fn try_frame(&mut self) -> Option<(FrameHeader, Vec<u8>)> {
        let mut payload = Vec::new();
        let header = self.channel.receive(&mut payload).unwrap()?;
        if self.channel.release() == Wake::Needed {
            self.bell.ring();
        }
        Some((header, payload))
    }

    fn sleep(&mut self) {
        if self.channel.prepare_sleep().unwrap() == Sleep::MayBlock {
            let mut ready = [PollFd::new(&self.own_bell, PollFlags::IN)];
            assert_ne!(poll(&mut ready, Some(&PATIENCE)).unwrap(), 0, "the worker says nothing");
            self.own_bell.wait();
            self.channel.cancel_sleep();
        }
    }

    /// Waits until a backtrace about `tag` is there.
    pub fn backtrace(&self, tag: Tag) -> String {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            if let Some(text) = self.channel.backtrace(tag) {
                return text;
            }
            assert!(std::time::Instant::now() < deadline, "no backtrace came");
            std::thread::yield_now();
        }
    }

    /// Drops frames until the request's end.
    pub fn drain(&mut self, tag: Tag) -> Done {
        loop {
            let (header, payload) = self.frame();
            assert_eq!(header.tag, tag);
            if header.kind == FrameKind::Done {
                return Done::decode(&payload).unwrap();
            }
        }
    }

    /// What the worker wrote to its standard streams, once it is gone.
    pub fn output(mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        text
    }
}

#[derive(Default)]
struct Collected {
    head: Option<(u16, String, Vec<String>)>,
    body: Vec<u8>,
    logs: Vec<(u8, String)>,
    flushes: usize,
    ended: bool,
}

impl Collected {
    fn take(&mut self, kind: FrameKind, payload: &[u8]) -> Option<Answer> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match kind {
            FrameKind::Head => {
                assert!(self.head.is_none(), "two heads");
                let head = ResponseHead::decode(payload).unwrap();
                let lines = head.lines().map(text).collect();
                self.head = Some((head.status, text(head.reason), lines));
            }
            FrameKind::Body => {
                assert!(self.head.is_some() && !self.ended, "body out of place");
                self.body.extend_from_slice(payload);
            }
            FrameKind::Flush => self.flushes += 1,
            FrameKind::End => self.ended = true,
            FrameKind::Log => {
                let line = LogLine::decode(payload).unwrap();
                self.logs.push((line.severity, text(line.text)));
            }
            FrameKind::Done => return Some(self.answer(Done::decode(payload).unwrap())),
            other => panic!("{other:?} within an answer"),
        }
        None
    }

    fn answer(&mut self, done: Done) -> Answer {
        let (status, reason, lines) = self.head.take().unwrap_or_default();
        Answer {
            status,
            reason,
            lines,
            body: std::mem::take(&mut self.body),
            logs: std::mem::take(&mut self.logs),
            flushes: self.flushes,
            ended: self.ended,
            done,
        }
    }
}

/// Asserts that the script ran to its end, and returns what it wrote.
pub fn finished(answer: &Answer) -> String {
    assert_eq!(answer.done.outcome, Outcome::Finished, "{answer:?}");
    answer.text()
}
