//! [`Outgoing`]: the request of a route to its server, or to one after another of a group.
//!
//! Made by [`super`] for each request. Invariants: a request is sent to another server only if nothing of it
//! was sent, or if its method is idempotent and its body is in memory; each attempt counts for its server.

use super::failure::Failure;
use crate::app::App;
use crate::upstreams;
use outboard_balancer::{Attempt, Choice, Group, Server};
use outboard_config::ProxyTarget;
use outboard_log::{Level, Wall};
use outboard_reactor::now_ms;
use outboard_upstream::{BodyLength, Error, Kind, Request, Response, Upload, Url};
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) request: Request,
    balanced: Option<Balanced>,
}

/// What the choice of a server depends on.
#[derive(Debug, Clone)]
struct Balanced {
    group: Arc<Group>,
    /// Path and query.
    target: Vec<u8>,
    key: Option<u64>,
    cookie: Option<Vec<u8>>,
    tried: Vec<Arc<Server>>,
}

/// What was sent, and the server that has it.
#[derive(Debug)]
pub(crate) struct Sent<T> {
    pub(crate) result: T,
    pub(crate) attempt: Option<Attempt>,
}

impl Outgoing {
    /// A request for a target, path and query, of a route.
    ///
    /// # Errors
    /// The target is invalid.
    pub(crate) fn new(app: &App, to: &ProxyTarget, target: &[u8]) -> Result<Self, Error> {
        match to {
            ProxyTarget::Url(url) => {
                let url = Url::parse(&[url.as_bytes(), target].concat())?;
                Ok(Self { request: Request::get(url), balanced: None })
            }
            ProxyTarget::Group { name, path } => {
                let group = app.upstreams.group(name).cloned();
                let group = group.ok_or_else(|| {
                    Error::new(Kind::BadCall, format!("there is no upstream {name}"))
                })?;
                let target = [path.as_bytes(), target].concat();
                // The server is not known yet.
                let url = Url::parse(&[b"http://localhost", &target[..]].concat())?;
                let (key, cookie, tried) = (None, None, Vec::new());
                let balanced = Balanced { group, target, key, cookie, tried };
                Ok(Self { request: Request::get(url), balanced: Some(balanced) })
            }
        }
    }

    /// The group of its servers.
    pub(super) fn group(&self) -> Option<&Arc<Group>> {
        self.balanced.as_ref().map(|balanced| &balanced.group)
    }

    /// The client's part in the choice: the hash of the key, and the sticky cookie.
    pub(super) fn bind(&mut self, key: Option<u64>, cookie: Option<Vec<u8>>) {
        if let Some(balanced) = &mut self.balanced {
            (balanced.key, balanced.cookie) = (key, cookie);
        }
    }

    /// Sends it, with its body in the request, and waits for the head of the response.
    ///
    /// # Errors
    /// No server has responded.
    pub(crate) async fn send(mut self, app: &App) -> Result<Sent<Response>, Failure> {
        let Some(mut balanced) = self.balanced.take() else {
            let result = app.upstream.send(self.request).await?;
            return Ok(Sent { result, attempt: None });
        };
        let mut request = self.request;
        let timeout_ms = request.timeout_ms;
        let mut attempt = balanced.choose(&request)?;
        loop {
            balanced.direct(&mut request, &attempt)?;
            request.timeout_ms = balanced.try_timeout_ms(&request, timeout_ms);
            let started = Wall::now();
            let sent = app.upstream.send_once(&request).await;
            let us = Wall::now().unix_us.saturating_sub(started.unix_us);
            let Some(error) = balanced.failure(&sent) else {
                upstreams::succeeded(&app.logs.error, &attempt, us);
                return balanced.end(sent, attempt);
            };
            log_failed_attempt(app, &attempt, error);
            balanced.tried.push(attempt.server().clone());
            let may_retry = request.is_idempotent() || is_unsent(&sent);
            let next = may_retry.then(|| balanced.choose_again(&request)).flatten();
            let Some(next) = next else { return balanced.end(sent, attempt) };
            app.upstream.count_retry();
            attempt = next;
        }
    }

    /// Begins a request whose body is streamed.
    ///
    /// # Errors
    /// There is no connection to any server.
    pub(super) async fn upload(
        mut self,
        app: &App,
        length: BodyLength,
    ) -> Result<Sent<Upload>, Failure> {
        let Some(mut balanced) = self.balanced.take() else {
            let result = app.upstream.upload(self.request, length).await?;
            return Ok(Sent { result, attempt: None });
        };
        let mut request = self.request;
        let mut attempt = balanced.choose(&request)?;
        loop {
            balanced.direct(&mut request, &attempt)?;
            let sent = app.upstream.upload(request.clone(), length).await;
            let error = match sent {
                Ok(result) => return Ok(Sent { result, attempt: Some(attempt) }),
                Err(error) => error,
            };
            log_failed_attempt(app, &attempt, Some(&error));
            balanced.tried.push(attempt.server().clone());
            let next = error.is_unsent().then(|| balanced.choose_again(&request)).flatten();
            let Some(next) = next else { return Err(Failure::of(error, &attempt)) };
            app.upstream.count_retry();
            attempt = next;
        }
    }
}

impl Balanced {
    fn choice<'a>(&'a self, request: &Request) -> Choice<'a> {
        Choice {
            key: self.key,
            cookie: self.cookie.as_deref(),
            tried: &self.tried,
            may_try_out: request.is_idempotent() && self.group.rules().retries > 0,
        }
    }

    fn choose(&self, request: &Request) -> Result<Attempt, Failure> {
        let chosen = self.group.choose(self.choice(request), now_ms());
        chosen.map_err(|refused| Failure::refused(&self.group.rules().name, refused))
    }

    fn choose_again(&self, request: &Request) -> Option<Attempt> {
        self.group.choose_again(self.choice(request), now_ms())
    }

    /// Directs the request to the server of the attempt.
    fn direct(&self, request: &mut Request, attempt: &Attempt) -> Result<(), Error> {
        let server = attempt.server();
        request.url = Url::parse(&[server.origin().as_bytes(), &self.target].concat())?;
        request.endpoint = server.endpoint().cloned();
        // Another attempt is at another server.
        request.retries = 0;
        Ok(())
    }

    /// Only an attempt that another one can follow is cut short.
    fn try_timeout_ms(&self, request: &Request, timeout_ms: u64) -> u64 {
        let rules = self.group.rules();
        let may_follow = request.is_idempotent() && self.tried.len() < rules.retries as usize;
        match rules.try_timeout_ms.filter(|_| may_follow) {
            Some(try_timeout_ms) => try_timeout_ms.min(timeout_ms),
            None => timeout_ms,
        }
    }

    /// `Some` if the attempt has failed, with its error if that is the server's.
    fn failure<'e>(&self, sent: &'e Result<Response, Error>) -> Option<Option<&'e Error>> {
        match sent {
            Ok(response) if self.group.rules().failure_status.contains(response.status) => {
                Some(None)
            }
            Ok(_) => None,
            Err(error) => Some(Some(error)),
        }
    }

    fn end(
        &self,
        sent: Result<Response, Error>,
        attempt: Attempt,
    ) -> Result<Sent<Response>, Failure> {
        match sent {
            Ok(result) => Ok(Sent { result, attempt: Some(attempt) }),
            Err(error) => Err(Failure::of(error, &attempt)),
        }
    }
}

/// The outcome of a request whose body was streamed, which counts for its server.
pub(super) fn uploaded(
    app: &App,
    response: Result<Response, Error>,
    attempt: Option<Attempt>,
    finished: Wall,
) -> Result<Sent<Response>, Failure> {
    let Some(attempt) = attempt else {
        return Ok(Sent { result: response?, attempt: None });
    };
    let us = Wall::now().unix_us.saturating_sub(finished.unix_us);
    let statuses = &attempt.group().rules().failure_status;
    match &response {
        Ok(response) if statuses.contains(response.status) => {
            log_failed_attempt(app, &attempt, None);
        }
        Ok(_) => upstreams::succeeded(&app.logs.error, &attempt, us),
        Err(error) => log_failed_attempt(app, &attempt, Some(error)),
    }
    match response {
        Ok(result) => Ok(Sent { result, attempt: Some(attempt) }),
        Err(error) => Err(Failure::of(error, &attempt)),
    }
}

fn is_unsent(sent: &Result<Response, Error>) -> bool {
    sent.as_ref().is_err_and(Error::is_unsent)
}

/// Whether the server is to blame.
fn is_fault(error: &Error) -> bool {
    matches!(error.kind, Kind::Resolve | Kind::Connect | Kind::Tls | Kind::Timeout | Kind::Protocol)
}

/// `error`: `None` for a response with the status of a failure.
fn log_failed_attempt(app: &App, attempt: &Attempt, error: Option<&Error>) {
    if error.is_none_or(is_fault) {
        upstreams::failed(&app.logs.error, attempt);
    }
    let why = error.map_or("the status of a failure", |error| &error.message);
    let server = attempt.server().name();
    app.logs.error.note(Level::Debug, &format!("attempt at {server}: {why}"));
}
