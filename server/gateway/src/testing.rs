//! Sites for unit tests of handlers: a gateway on the test's event loop, whose clients use
//! in-memory connections, whose PHP is the test itself, and whose upstreams are servers in the same
//! loop.

mod handled;

use crate::access::{RateLimits, SharedAccess};
use crate::app::{App, Caches, Common};
use crate::gateway::{Gateway, SharedByThreads};
use crate::generation::{self, Generation};
use crate::logs::Sinks;
use crate::request::Request;
use crate::shards::ShardHandle;
use crate::upstreams::Upstreams;
use handled::Handled;
use outboard_buffer::Memory;
use outboard_config::Config;
use outboard_http_server::{ListenerContext, ResponseWriter, Role, TestClient, Written};
use outboard_log::Opener;
use outboard_operations::Entities;
use outboard_php_pool::pool::PoolSettings;
use outboard_php_pool::pool::testing::{PhpRequest, next_request, pool_without_workers};
pub(crate) use outboard_reactor::testing::{in_loop, wait_for};
use outboard_reactor::{Peer, Share, on_cpu_thread, spawn};
pub(crate) use outboard_upstream::testing::{Upstream, ok};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A gateway with one app named `site`.
pub(crate) struct Site {
    pub(crate) gateway: Rc<Gateway>,
    directory: PathBuf,
}

/// A response, split.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The status line and the header lines.
    pub(crate) head: String,
    /// The body, without chunks.
    pub(crate) body: String,
}

impl Response {
    /// Splits the only response of a connection, which was closed after it.
    fn read(text: &str) -> Self {
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.get(9..12).and_then(|status| status.parse().ok());
        let head = format!("{head}\r\n");
        let body = match head.contains("Transfer-Encoding: chunked\r\n") {
            true => unchunked(body),
            false => body.to_owned(),
        };
        Self { status: status.expect("a status line"), head, body }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Splits the only response of a connection.
pub(crate) fn response(text: &str) -> Response {
    Response::read(text)
}

/// The decoded chunks; a body without its last chunk ends with `(incomplete)`.
fn unchunked(mut body: &str) -> String {
    let mut decoded = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
        if size == 0 {
            return decoded;
        }
        decoded.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    decoded + "(incomplete)"
}

impl Site {
    /// A site with these files in its root. `keys` are those of `[app.site]`, and further sections.
    pub(crate) fn new(files: &[(&str, &str)], keys: &str) -> Self {
        Self::with_config(files, &format!("[app.site]\nroot = \"www\"\n{keys}\n"))
    }

    /// A gateway with this configuration, in whose directory `www` has these files.
    pub(crate) fn with_config(files: &[(&str, &str)], text: &str) -> Self {
        let (config, directory) = parsed(files, text);
        let memory = Memory::new(64 << 20);
        let (generation, sinks) = open(config, &memory);
        Self { gateway: gateway_of(generation, sinks, memory), directory }
    }

    /// One on another thread than the lead's, whose gateway is that of `lead`.
    pub(crate) fn following(lead: &Self, keys: &str) -> Self {
        let (config, directory) = parsed(&[], &format!("[app.site]\nroot = \"www\"\n{keys}\n"));
        let memory = Memory::new(64 << 20);
        let (mut generation, sinks) = open(config, &memory);
        generation.entities = Entities::without_store(&generation.config);
        let gateway = gateway_of(generation, sinks, memory);
        gateway.shards.set_lead(lead.handle());
        Self { gateway, directory }
    }

    /// The way to its thread.
    pub(crate) fn handle(&self) -> ShardHandle<Gateway> {
        let (handle, work) = ShardHandle::new();
        let gateway = self.gateway.clone();
        spawn(async move {
            loop {
                work.next().await(&gateway);
            }
        });
        handle
    }

    /// The directory of the configuration.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn app(&self) -> Rc<App> {
        self.gateway.generation().apps[0].clone()
    }

    /// Connects as a client of the apps.
    pub(crate) fn connect(&self) -> TestClient {
        self.connect_to(ListenerContext::plain(Role::Apps))
    }

    /// Connects from 127.0.0.1.
    pub(crate) fn connect_to(&self, listener: ListenerContext) -> TestClient {
        TestClient::connect(&self.gateway, listener, Peer::Tcp("127.0.0.1:50000".parse().unwrap()))
    }

    /// The response to a GET of a path.
    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request("GET", path, "", "").await
    }

    /// The response to a request with these header lines and this body.
    pub(crate) async fn request(
        &self,
        method: &str,
        target: &str,
        lines: &str,
        body: &str,
    ) -> Response {
        self.request_to(ListenerContext::plain(Role::Apps), method, target, lines, body).await
    }

    /// The same from another listener.
    pub(crate) async fn request_to(
        &self,
        listener: ListenerContext,
        method: &str,
        target: &str,
        lines: &str,
        body: &str,
    ) -> Response {
        let client = self.connect_to(listener);
        client.send(request_text(method, target, lines, body));
        Response::read(&client.receive_to_end().await)
    }

    /// Sends a request, which PHP handles; the response is that of `handler`.
    pub(crate) async fn with_php(
        &self,
        method: &str,
        target: &str,
        lines: &str,
        handler: impl FnOnce(&PhpRequest),
    ) -> Response {
        let client = self.connect();
        client.send(request_text(method, target, lines, ""));
        handler(&self.next_php_request().await);
        Response::read(&client.receive_to_end().await)
    }

    /// What a client receives if this handler has its request to `/a?b`, which no route or access rule has
    /// seen.
    pub(crate) async fn handled<F>(&self, lines: &str, handler: F) -> String
    where
        F: AsyncFn(&mut Request<'_>, &mut ResponseWriter) -> Written + 'static,
    {
        let service = Rc::new(Handled { gateway: self.gateway.clone(), handler });
        let peer = Peer::Tcp("127.0.0.1:50000".parse().unwrap());
        let client = TestClient::connect(&service, ListenerContext::plain(Role::Apps), peer);
        client.send(request_text("GET", "/a?b", lines, ""));
        client.receive_to_end().await
    }

    /// The next request that PHP receives.
    pub(crate) async fn next_php_request(&self) -> PhpRequest {
        let pool = self.app().pool();
        wait_for("a request to PHP", || next_request(&pool)).await
    }

    /// Whether a request waits for PHP.
    pub(crate) fn php_request(&self) -> Option<PhpRequest> {
        next_request(&self.app().pool())
    }

    /// The content of a log file of the configuration's directory.
    pub(crate) fn log(&self, name: &str) -> String {
        self.gateway.sinks.borrow().all().for_each(|sink| sink.flush());
        std::fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }

    /// How often requests were refused for a reason.
    pub(crate) fn refusals(&self, reason: &str) -> u64 {
        let counters = self.gateway.server.counters();
        let found = counters.reasons().into_iter().find(|counted| counted.reason == reason);
        found.map_or(0, |counted| counted.count)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A configuration, and its directory, in which `www` has these files.
fn parsed(files: &[(&str, &str)], text: &str) -> (Config, PathBuf) {
    let directory = temp_dir();
    std::fs::create_dir_all(directory.join("www")).unwrap();
    for (name, content) in files {
        let path = directory.join("www").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let text = text.replace("DIR", directory.to_str().unwrap());
    let config = Config::parse(&text, &directory.join("outboard.toml"))
        .unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"));
    (config, directory)
}

/// The gateway of the only thread.
fn gateway_of(generation: Generation, sinks: Sinks, memory: Rc<Memory>) -> Rc<Gateway> {
    let shared = SharedByThreads::new(&generation.config, 1);
    Gateway::new(generation, sinks, memory, &shared, Share::WHOLE)
}

/// Opens a generation without processes.
pub(crate) fn open(config: Config, memory: &Rc<Memory>) -> (Generation, Sinks) {
    let mut sinks = Sinks::new(Opener::default(), &[]);
    let logs = Rc::new(sinks.logs(&config.log).unwrap());
    let upstream = generation::upstream_client(&generation::upstream_group(&config, None), None);
    let entities = Entities::open(&config, None, None, &logs.error).unwrap();
    let access = Arc::<SharedAccess>::default();
    let upstreams = Upstreams::new(&config, None);
    let apps = config.apps.iter().map(|app| {
        let logs = Rc::new(sinks.logs(&app.log).unwrap());
        let settings = PoolSettings::of(app, Path::new("/nonexistent"), None).unwrap();
        let pool = pool_without_workers(settings, logs.error.clone());
        let account = generation::upstream_account(&config, &app.name);
        let client = (upstream.clone(), account);
        let memory = memory.of_app(&app.name);
        let common = Common {
            caches: Caches::Own { is_first: true },
            rate_limits: RateLimits::open(app, &access, None),
            upstreams: upstreams.clone(),
            snapshots: Arc::default(),
        };
        let background = (None, None);
        let opened = App::open(app.clone(), pool, background, logs, client, memory, common);
        Rc::new(opened.unwrap())
    });
    let apps: Vec<_> = apps.collect();
    let shares = (upstream, upstreams.clone(), access);
    (Generation::new(1, config, apps, logs, shares, entities).traced(None, 1), sinks)
}

/// A request after which the connection is closed.
pub(crate) fn request_text(method: &str, target: &str, lines: &str, body: &str) -> String {
    let length = match body {
        "" => String::new(),
        body => format!("Content-Length: {}\r\n", body.len()),
    };
    format!(
        "{method} {target} HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n{length}{lines}\r\n\
         {body}"
    )
}

/// Keeps all threads for computations busy until it is dropped.
pub(crate) struct BusyThreads(Arc<(Mutex<bool>, Condvar)>);

impl BusyThreads {
    pub(crate) fn new() -> Self {
        // As many as there are at most.
        const THREADS: usize = 8;
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        for _ in 0..THREADS {
            let gate = gate.clone();
            spawn(on_cpu_thread(move || {
                let is_open = gate.0.lock().unwrap();
                drop(gate.1.wait_while(is_open, |is_open| !*is_open));
            }));
        }
        Self(gate)
    }
}

impl Drop for BusyThreads {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// An own directory.
fn temp_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("outboard-gateway-{}-{number}", std::process::id()))
}
