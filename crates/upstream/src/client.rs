//! [`Client`]: sends requests over pooled connections, follows redirects, tries again.
//!
//! One per gateway, shared as `Rc`; every call runs in the task of its caller and uses that task's
//! deadline. Invariants: a request that is not idempotent is sent once; a call ends by its
//! time-out, whatever the peer does.

use crate::account::Account;
use crate::channel::{Channel, Destination};
use crate::connection::{self, Broken, Connection};
use crate::counters::{Counters, Gauges};
use crate::error::{Error, Kind};
use crate::host::{Host, HostLimits};
use crate::http2::{self, Multiplexed};
use crate::names::Names;
use crate::request::Request;
use crate::response::{Body, Deadline, Response, ResponseFacts};
use crate::sockets::{Socket, Sockets};
use crate::tcp;
use crate::tls::{Sessions, Wish};
use crate::transport::Transport;
use crate::upload::{BodyLength, Upload};
use crate::url::Url;
use outboard_reactor::{Elapsed, now_ms, sleep, spawn, with_deadline};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

/// Pause before a connection that failed is tried for again, times the number of the attempt.
const RETRY_PAUSE_MS: u64 = 20;
/// A redirect's own body up to this is read, so that its connection can be used again.
const REDIRECT_BODY_BYTES: usize = 64 * 1024;

/// How a client behaves towards all hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Requests that may be under way to one host.
    pub requests_per_host: usize,
    /// Responses of one host that may be under way beside them.
    pub responses_per_host: usize,
    /// Requests that may wait for one of them to end.
    pub waiting_per_host: usize,
    /// How long they wait.
    pub wait_ms: u64,
    /// Connections to all hosts.
    pub connections: usize,
    /// Idle connections that are kept to one host.
    pub idle_per_host: usize,
    /// How long they are kept.
    pub idle_timeout_ms: u64,
    /// Certificate authorities beside the system's, as PEM.
    pub ca_file: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            requests_per_host: 1024,
            responses_per_host: 4096,
            waiting_per_host: 1024,
            wait_ms: 1_000,
            connections: 16_384,
            idle_per_host: 512,
            idle_timeout_ms: 30_000,
            ca_file: None,
        }
    }
}

/// An HTTP client of the loop.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    hosts: RefCell<HashMap<Box<str>, Rc<Host>>>,
    names: Names,
    sockets: Rc<Sockets>,
    sessions: Sessions,
    counters: RefCell<Counters>,
    sweeping: Cell<bool>,
}

/// What a request goes over.
enum Way {
    Http1(Box<Connection>),
    Http2(Multiplexed),
}

/// One attempt came to nothing.
enum Failed {
    /// The connection did: the request was not answered, maybe not seen.
    Connection { error: Error, was_pooled: bool },
    /// Trying again would not help, or not be right.
    Finally(Error),
}

impl Client {
    /// A client without connections.
    pub fn new(settings: Settings) -> Rc<Self> {
        Rc::new(Self {
            sessions: Sessions::new(settings.ca_file.clone()),
            sockets: Sockets::new(settings.connections),
            settings,
            hosts: RefCell::default(),
            names: Names::default(),
            counters: RefCell::default(),
            sweeping: Cell::new(false),
        })
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// Why there is none. Any status is an answer.
    pub async fn send(self: &Rc<Self>, request: Request) -> Result<Response, Error> {
        self.count(|counters| counters.requests += 1);
        let sent = self.follow(request).await;
        if let Err(error) = &sent {
            self.count(|counters| counters.failed(error.kind));
        }
        sent
    }

    /// Begins a request whose body the caller writes piece by piece, over HTTP/1.1; the one in the
    /// request is not sent, and redirects are answers. `timeout_ms` is for each step.
    ///
    /// # Errors
    /// No connection came about.
    pub async fn upload(
        self: &Rc<Self>,
        mut request: Request,
        length: BodyLength,
    ) -> Result<Upload, Error> {
        self.count(|counters| counters.requests += 1);
        request.http2 = false;
        let timeout_ms = request.timeout_ms;
        let deadline = Deadline { at_ms: now_ms() + timeout_ms, timeout_ms };
        let begun = self.begin_upload(request, length, deadline).await;
        if let Err(error) = &begun {
            self.count(|counters| counters.failed(error.kind));
        }
        begun
    }

    async fn begin_upload(
        self: &Rc<Self>,
        request: Request,
        length: BodyLength,
        deadline: Deadline,
    ) -> Result<Upload, Error> {
        let host = self.host(&request.url);
        let limits = self.host_limits();
        let permit = host.enter(limits, request.account.as_ref(), deadline.at_ms).await?;
        let wish = request.url.is_https().then_some(Wish { verify: request.verify, http2: false });
        let connection = match host.take_idle(wish) {
            Some(connection) => connection,
            None => match self.connect(&request, wish, deadline).await {
                Ok(transport) => Box::new(Connection::new(transport, wish)),
                Err(Failed::Connection { error, .. } | Failed::Finally(error)) => {
                    return Err(error);
                }
            },
        };
        let mut upload = Upload::new(self.clone(), request, connection, permit, length);
        upload.begin().await?;
        Ok(upload)
    }

    /// What was counted so far.
    pub fn counters(&self) -> Counters {
        *self.counters.borrow()
    }

    /// What there is now, over all hosts.
    pub fn gauges(&self) -> Gauges {
        let hosts = self.hosts.borrow();
        let mut gauges = Gauges::default();
        for host in hosts.values() {
            gauges.idle += host.idle_count();
            gauges.under_way += host.under_way();
            gauges.responses += host.responses();
        }
        gauges
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut Counters)) {
        add(&mut self.counters.borrow_mut());
    }

    async fn follow(self: &Rc<Self>, mut request: Request) -> Result<Response, Error> {
        let deadline =
            Deadline { at_ms: now_ms() + request.timeout_ms, timeout_ms: request.timeout_ms };
        let mut followed = 0;
        loop {
            let mut response = self.try_hard(&request, deadline).await?;
            let Some(location) = response.location().filter(|_| request.max_redirects > 0) else {
                return Ok(response);
            };
            if followed == request.max_redirects {
                let message = format!("{} redirects did not lead to an answer", followed);
                return Err(Error::new(Kind::Redirects, message));
            }
            let url = request.url.join(location).map_err(|error| {
                let message = format!("{} redirects to nowhere: {error}", request.url.origin());
                Error::new(Kind::Redirects, message)
            })?;
            let mut body = Vec::new();
            while body.len() < REDIRECT_BODY_BYTES && response.read(&mut body).await? {}
            request.redirect(response.status, url);
            followed += 1;
            self.count(|counters| counters.redirects += 1);
        }
    }

    /// Sends one request, again where that is allowed and can help (RFC 9110 9.2.2).
    async fn try_hard(
        self: &Rc<Self>,
        request: &Request,
        deadline: Deadline,
    ) -> Result<Response, Error> {
        let host = self.host(&request.url);
        let limits = self.host_limits();
        let permit = host.enter(limits, request.account.as_ref(), deadline.at_ms).await?;
        let most = if request.is_idempotent() { request.retries } else { 0 };
        let mut retries = 0;
        let mut may_pool = true;
        let (facts, body) = loop {
            let error = match self.attempt(request, &host, may_pool, deadline).await {
                Ok(answer) => break answer,
                Err(Failed::Finally(error)) => return Err(error),
                Err(Failed::Connection { was_pooled: true, .. }) if request.is_idempotent() => {
                    // The peer closed it while it was idle, which is nobody's fault.
                    may_pool = false;
                    continue;
                }
                Err(Failed::Connection { error, .. }) => error,
            };
            if retries == most || now_ms() >= deadline.at_ms {
                return Err(error);
            }
            retries += 1;
            self.count(|counters| counters.retries += 1);
            sleep(RETRY_PAUSE_MS * u64::from(retries)).await;
        };
        Response::new(self.clone(), request, facts, body, permit, deadline)
    }

    async fn attempt(
        &self,
        request: &Request,
        host: &Host,
        may_pool: bool,
        deadline: Deadline,
    ) -> Result<(ResponseFacts, Body), Failed> {
        let http2 = request.http2 && request.switch_to.is_none();
        let wish = request.url.is_https().then_some(Wish { verify: request.verify, http2 });
        let way = match self.known_way(host, wish, may_pool) {
            Some(way) => way,
            // Rare, and much larger than the rest: not a part of every call.
            None => Box::pin(self.open(request, host, wish, may_pool, deadline)).await?,
        };
        match way {
            Way::Http1(connection) => Self::exchange(request, connection, deadline).await,
            Way::Http2(shared) => {
                let exchange = Box::pin(shared.exchange(request));
                match with_deadline(deadline.at_ms, exchange).await {
                    Err(Elapsed) => Err(Failed::Finally(deadline.error(&request.url))),
                    Ok(Ok((facts, body))) => Ok((facts, Body::Http2(body))),
                    Ok(Err(http2::Broken::Connection(error))) => {
                        host.unshare(&shared);
                        Err(Failed::Connection { error, was_pooled: may_pool })
                    }
                    Ok(Err(http2::Broken::Failed(error))) => Err(Failed::Finally(error)),
                }
            }
        }
    }

    /// A connection that is there already.
    fn known_way(&self, host: &Host, wish: Option<Wish>, may_pool: bool) -> Option<Way> {
        if !may_pool {
            return None;
        }
        let shared = wish.filter(|wish| wish.http2).and_then(|wish| host.http2(wish));
        let way = match shared {
            Some(shared) => Way::Http2(shared),
            None => Way::Http1(host.take_idle(wish)?),
        };
        self.count(|counters| counters.reused += 1);
        Some(way)
    }

    /// Makes a connection. As long as it is not known whether the peer speaks HTTP/2, requests
    /// wait for the first to find out, since all of them could go over its connection.
    async fn open(
        &self,
        request: &Request,
        host: &Host,
        wish: Option<Wish>,
        may_pool: bool,
        deadline: Deadline,
    ) -> Result<Way, Failed> {
        let Some(wish) = wish.filter(|wish| wish.http2) else {
            let transport = self.connect(request, wish, deadline).await?;
            return Ok(Way::Http1(Box::new(Connection::new(transport, wish))));
        };
        let turn = with_deadline(deadline.at_ms, host.opening().turn()).await;
        let turn = turn.map_err(|Elapsed| Failed::Finally(deadline.error(&request.url)))?;
        if let Some(way) = self.known_way(host, Some(wish), may_pool) {
            return Ok(way);
        }
        match self.connect(request, Some(wish), deadline).await?.into_http2() {
            Ok((tls, socket)) => {
                let begun = Multiplexed::begin(tls, socket);
                let shared = with_deadline(deadline.at_ms, begun).await;
                let shared = shared
                    .map_err(|Elapsed| Failed::Finally(deadline.error(&request.url)))?
                    .map_err(Failed::Finally)?;
                host.share(wish, shared.clone());
                Ok(Way::Http2(shared))
            }
            Err(transport) => {
                turn.is_http1();
                Ok(Way::Http1(Box::new(Connection::new(transport, Some(wish)))))
            }
        }
    }

    async fn exchange(
        request: &Request,
        mut connection: Box<Connection>,
        deadline: Deadline,
    ) -> Result<(ResponseFacts, Body), Failed> {
        let was_pooled = connection.was_used();
        match with_deadline(deadline.at_ms, connection.exchange(request)).await {
            Err(Elapsed) => Err(Failed::Finally(deadline.error(&request.url))),
            Ok(Err(Broken::Unanswered(error))) => Err(Failed::Connection { error, was_pooled }),
            Ok(Err(Broken::Failed(error))) => Err(Failed::Finally(error)),
            Ok(Ok(head)) => Ok(Self::answered(request, connection, head)),
        }
    }

    /// An answer whose head lies in its connection's input.
    pub(crate) fn answered(
        request: &Request,
        connection: Box<Connection>,
        head: connection::Head,
    ) -> (ResponseFacts, Body) {
        let fields: Vec<_> = connection.headers().collect();
        let status = connection.status();
        let facts = ResponseFacts::new(request, status, 1, fields.iter().copied());
        (facts, Body::Http1(connection::Body::new(connection, head)))
    }

    async fn connect(
        &self,
        request: &Request,
        wish: Option<Wish>,
        deadline: Deadline,
    ) -> Result<Transport, Failed> {
        let url = &request.url;
        let until_ms = deadline.at_ms.min(now_ms() + request.connect_timeout_ms);
        let account = request.account.as_ref();
        self.reach(url.host(), url.port(), url.origin(), wish, account, until_ms).await
    }

    /// Connects for another protocol than HTTP, until `until_ms` (monotonic).
    ///
    /// # Errors
    /// No connection came about.
    pub async fn dial(&self, to: &Destination, until_ms: u64) -> Result<Channel, Error> {
        let wish = to.tls_verified.map(|verify| Wish { verify, http2: false });
        let name = format!("{}:{}", to.host, to.port);
        match self.reach(&to.host, to.port, &name, wish, None, until_ms).await {
            Ok(transport) => Ok(Channel::new(transport, Vec::new(), None)),
            Err(Failed::Connection { error, .. } | Failed::Finally(error)) => Err(error),
        }
    }

    /// `name` is for messages.
    async fn reach(
        &self,
        host: &str,
        port: u16,
        name: &str,
        wish: Option<Wish>,
        account: Option<&Rc<Account>>,
        until_ms: u64,
    ) -> Result<Transport, Failed> {
        let late = || {
            let message = format!("no connection to {name} in time");
            Failed::Finally(Error::new(Kind::Timeout, message))
        };
        let addresses = with_deadline(until_ms, self.names.resolve(host, account)).await;
        let addresses = addresses.map_err(|Elapsed| late())?.map_err(Failed::Finally)?;
        let socket = self.socket(name).map_err(Failed::Finally)?;
        let stream = tcp::connect(&addresses, port, until_ms).await.map_err(|error| {
            if error.kind() == io::ErrorKind::TimedOut {
                return late();
            }
            let message = format!("no connection to {name}: {error}");
            let error = Error::new(Kind::Connect, message);
            Failed::Connection { error, was_pooled: false }
        })?;
        self.count(|counters| counters.connections += 1);
        match wish {
            None => Ok(Transport::plain(stream, socket)),
            Some(wish) => {
                let session = self.sessions.connect(stream, host, wish);
                let tls = with_deadline(until_ms, session).await;
                let tls = tls.map_err(|Elapsed| late())?.map_err(Failed::Finally)?;
                Ok(Transport::tls(tls, socket))
            }
        }
    }

    /// The right to one more connection; the longest idle one is closed for it if need be.
    fn socket(&self, name: &str) -> Result<Socket, Error> {
        loop {
            if let Some(socket) = self.sockets.take() {
                return Ok(socket);
            }
            let hosts = self.hosts.borrow();
            let idle = hosts.values().filter_map(|host| Some((host.idle_since_ms()?, host)));
            let longest = idle.min_by_key(|(since_ms, _)| *since_ms);
            let Some((_, host)) = longest.map(|(since_ms, host)| (since_ms, host.clone())) else {
                let most = self.sockets.most();
                let message = format!(
                    "no connection to {name}: {most} are open to other servers, as many as may be"
                );
                return Err(Error::new(Kind::Busy, message));
            };
            drop(hosts);
            host.close_longest_idle();
        }
    }

    fn host(&self, url: &Url) -> Rc<Host> {
        let mut hosts = self.hosts.borrow_mut();
        if let Some(host) = hosts.get(url.origin()) {
            return host.clone();
        }
        let host = Rc::new(Host::new(url.origin()));
        hosts.insert(url.origin().into(), host.clone());
        host
    }

    pub(crate) fn host_limits(&self) -> HostLimits {
        HostLimits {
            requests: self.settings.requests_per_host,
            responses: self.settings.responses_per_host,
            waiting: self.settings.waiting_per_host,
            wait_ms: self.settings.wait_ms,
            idle: self.settings.idle_per_host,
        }
    }

    /// Keeps a connection whose answer was read to its end, and looks after those of its host.
    pub(crate) fn keep(self: &Rc<Self>, host: &Host, connection: Option<Box<Connection>>) {
        if let Some(connection) = connection {
            host.keep(connection, self.host_limits());
        }
        if !self.sweeping.replace(true) {
            spawn(sweep(Rc::downgrade(self), self.settings.idle_timeout_ms));
        }
    }

    /// Closes what has been idle for too long; whether there is anything left to look after.
    fn expire(&self) -> bool {
        let since_ms = now_ms().saturating_sub(self.settings.idle_timeout_ms);
        let mut hosts = self.hosts.borrow_mut();
        hosts.retain(|_, host| {
            host.expire(since_ms);
            !host.is_forgettable()
        });
        if hosts.is_empty() {
            self.sweeping.set(false);
        }
        !hosts.is_empty()
    }
}

/// Looks after idle connections as long as there are any.
async fn sweep(client: Weak<Client>, idle_timeout_ms: u64) {
    loop {
        sleep((idle_timeout_ms / 4).max(10)).await;
        match client.upgrade() {
            Some(client) if client.expire() => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests;
