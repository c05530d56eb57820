//! [`Client`]: sends requests over pooled connections, follows redirects, and retries.
//!
//! One per loop, shared as `Rc`; every call runs in the task of its caller and uses that task's
//! deadline. Invariants: a request that is not idempotent is sent once; a call ends by its
//! time-out, whatever the peer does.

mod dialing;

use crate::client_group::ClientGroup;
use crate::connection::{Broken, Connection};
use crate::connections::Connections;
use crate::counters::{Counters, Gauges};
use crate::dns::Resolver;
use crate::error::{Error, Kind};
use crate::http2::{self, Multiplexed};
use crate::origin_pool::OriginPool;
use crate::request::{BodyLength, Request};
use crate::response::{Body, Deadline, Response};
use crate::response_facts::ResponseFacts;
use crate::settings::Settings;
use crate::tls::{Sessions, TlsOptions};
use crate::upload::Upload;
use outboard_reactor::{Elapsed, now_ms, sleep, with_deadline};
use std::rc::Rc;
use std::sync::Arc;

/// The pause before a retry, times the number of the attempt.
const RETRY_PAUSE_MS: u64 = 20;
/// The body of a redirect is read up to this size, so that its connection can be reused.
const REDIRECT_BODY_BYTES: usize = 64 * 1024;

/// An HTTP client of the loop.
#[derive(Debug)]
pub struct Client {
    connections: Rc<Connections>,
    resolver: Resolver,
    sessions: Sessions,
}

/// The connection of a request.
enum Way {
    Http1(Box<Connection>),
    Http2(Multiplexed),
}

/// Why an attempt failed.
enum Failed {
    /// The connection failed before a response; the peer may not have received the request.
    Connection { error: Error, was_pooled: bool },
    /// A retry would not help, or is not allowed.
    Finally(Error),
}

impl Client {
    /// The only client with these settings.
    pub fn new(settings: Settings) -> Rc<Self> {
        Self::of(&ClientGroup::new(settings))
    }

    /// A client without connections, which shares the limits of its group.
    pub fn of(group: &Arc<ClientGroup>) -> Rc<Self> {
        Rc::new(Self {
            sessions: Sessions::new(group.settings().ca_file.clone()),
            connections: Connections::new(group),
            resolver: Resolver::new(group.lookups()),
        })
    }

    /// The clients whose limits it shares.
    pub fn group(&self) -> &Arc<ClientGroup> {
        self.connections.group()
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// # Errors
    /// There is no response. A response with an error status is not an error.
    pub async fn send(self: &Rc<Self>, request: Request) -> Result<Response, Error> {
        self.connections.count(|counters| counters.requests += 1);
        let sent = self.follow(request).await;
        if let Err(error) = &sent {
            self.connections.count(|counters| counters.failed(error.kind));
        }
        sent
    }

    /// The same in a single attempt, without redirects; the request is the caller's for further ones. Over
    /// a pooled connection that the server has closed meanwhile, an idempotent request is sent again.
    ///
    /// # Errors
    /// There is no response.
    pub async fn send_once(self: &Rc<Self>, request: &Request) -> Result<Response, Error> {
        self.connections.count(|counters| counters.requests += 1);
        let timeout_ms = request.timeout_ms;
        let deadline = Deadline { at_ms: now_ms() + timeout_ms, timeout_ms };
        let sent = self.try_hard(request, deadline).await;
        if let Err(error) = &sent {
            self.connections.count(|counters| counters.failed(error.kind));
        }
        sent
    }

    /// The caller sends a request again after [`Self::send_once`] has failed.
    pub fn count_retry(&self) {
        self.connections.count(|counters| counters.retries += 1);
    }

    /// Starts a request whose body the caller streams, over HTTP/1.1. The body in `request` is not sent,
    /// redirects are not followed, and `timeout_ms` applies to each step.
    ///
    /// # Errors
    /// No connection was established.
    ///
    /// # Examples
    ///
    /// ```
    /// use outboard_upstream::{BodyLength, Client, Error, Request, Settings, Url};
    /// use std::io::{Read, Write};
    ///
    /// let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let url = format!("http://{}/", server.local_addr()?);
    /// let received = std::thread::spawn(move || {
    ///     let (mut peer, mut bytes) = (server.accept().expect("the client connects").0, Vec::new());
    ///     while !bytes.ends_with(b"0\r\n\r\n") {
    ///         let mut piece = [0; 4096];
    ///         let count = peer.read(&mut piece).expect("the body arrives");
    ///         bytes.extend_from_slice(&piece[..count]);
    ///     }
    ///     peer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("the client reads");
    ///     String::from_utf8(bytes).expect("it is text")
    /// });
    /// let status = outboard_reactor::run(async move {
    ///     let client = Client::new(Settings::default());
    ///     let mut request = Request::get(Url::parse(url.as_bytes())?);
    ///     request.method = b"PUT".into();
    ///     let mut upload = client.upload(request, BodyLength::Chunked).await?;
    ///     upload.write(b"first").await;
    ///     upload.write(b"second").await;
    ///     Ok::<_, Error>(upload.finish().await?.status)
    /// })??;
    /// assert_eq!(status, 204);
    /// assert!(received.join().expect("it ends").ends_with("5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn upload(
        self: &Rc<Self>,
        mut request: Request,
        length: BodyLength,
    ) -> Result<Upload, Error> {
        self.connections.count(|counters| counters.requests += 1);
        request.http2 = false;
        let timeout_ms = request.timeout_ms;
        let deadline = Deadline { at_ms: now_ms() + timeout_ms, timeout_ms };
        let begun = self.begin_upload(request, length, deadline).await;
        if let Err(error) = &begun {
            self.connections.count(|counters| counters.failed(error.kind));
        }
        begun
    }

    async fn begin_upload(
        self: &Rc<Self>,
        request: Request,
        length: BodyLength,
        deadline: Deadline,
    ) -> Result<Upload, Error> {
        let pool = self.connections.pool(request.server());
        let permit = pool.enter(request.account.as_ref(), deadline.at_ms).await;
        let permit = permit.map_err(Error::unsent)?;
        let tls =
            request.url.is_https().then_some(TlsOptions { verify: request.verify, http2: false });
        let idle = request.shares_connection().then(|| pool.take_idle(tls)).flatten();
        let connection = match idle {
            Some(connection) => connection,
            None => match self.connect(&request, tls, deadline).await {
                Ok(transport) => Box::new(Connection::new(transport, tls)),
                Err(Failed::Connection { error, .. } | Failed::Finally(error)) => {
                    return Err(error);
                }
            },
        };
        let mut upload = Upload::new(self.connections.clone(), request, connection, permit, length);
        upload.begin().await?;
        Ok(upload)
    }

    /// The counts since the start.
    pub fn counters(&self) -> Counters {
        self.connections.counters()
    }

    /// The present state, over all origins.
    pub fn gauges(&self) -> Gauges {
        self.connections.gauges()
    }

    async fn follow(self: &Rc<Self>, mut request: Request) -> Result<Response, Error> {
        let deadline =
            Deadline { at_ms: now_ms() + request.timeout_ms, timeout_ms: request.timeout_ms };
        let mut followed = 0;
        loop {
            request.check_port()?;
            let mut response = self.try_hard(&request, deadline).await?;
            let Some(location) = response.location().filter(|_| request.max_redirects > 0) else {
                return Ok(response);
            };
            if followed == request.max_redirects {
                let message = format!("{} redirects did not lead to a response", followed);
                return Err(Error::new(Kind::Redirects, message));
            }
            let url = request.url.join(location).map_err(|error| {
                let message = format!("{} redirects to nowhere: {error}", request.url.origin());
                Error::new(Kind::Redirects, message).because(error)
            })?;
            let mut body = Vec::new();
            while body.len() < REDIRECT_BODY_BYTES && response.read(&mut body).await? {}
            request.redirect(response.status, url);
            followed += 1;
            self.connections.count(|counters| counters.redirects += 1);
        }
    }

    /// Sends one request, and retries where that is allowed and can help (RFC 9110 9.2.2).
    async fn try_hard(
        self: &Rc<Self>,
        request: &Request,
        deadline: Deadline,
    ) -> Result<Response, Error> {
        let pool = self.connections.pool(request.server());
        let permit = pool.enter(request.account.as_ref(), deadline.at_ms).await;
        let permit = permit.map_err(Error::unsent)?;
        let most = if request.is_idempotent() { request.retries } else { 0 };
        let mut retries = 0;
        let mut may_pool = request.shares_connection();
        let (facts, body) = loop {
            let error = match self.attempt(request, &pool, may_pool, deadline).await {
                Ok(answer) => break answer,
                Err(Failed::Finally(error)) => return Err(error),
                Err(Failed::Connection { was_pooled: true, .. }) if request.is_idempotent() => {
                    // The peer closed the connection while it was idle, which is not an error.
                    may_pool = false;
                    continue;
                }
                Err(Failed::Connection { error, .. }) => error,
            };
            if retries == most || now_ms() >= deadline.at_ms {
                return Err(error);
            }
            retries += 1;
            self.connections.count(|counters| counters.retries += 1);
            sleep(RETRY_PAUSE_MS * u64::from(retries)).await;
        };
        Response::new(self.connections.clone(), request, facts, body, permit, deadline)
    }

    async fn attempt(
        &self,
        request: &Request,
        pool: &OriginPool,
        may_pool: bool,
        deadline: Deadline,
    ) -> Result<(ResponseFacts, Body), Failed> {
        let http2 = request.http2 && request.switch_to.is_none() && request.shares_connection();
        let tls = request.url.is_https().then_some(TlsOptions { verify: request.verify, http2 });
        let way = match self.known_way(pool, tls, may_pool) {
            Some(way) => way,
            // Boxed: its future is large, and rarely needed.
            None => Box::pin(self.open(request, pool, tls, may_pool, deadline)).await?,
        };
        match way {
            Way::Http1(connection) => Self::exchange(request, connection, deadline).await,
            Way::Http2(shared) => {
                let exchange = Box::pin(shared.exchange(request));
                match with_deadline(deadline.at_ms, exchange).await {
                    Err(Elapsed) => Err(Failed::Finally(deadline.error(request.server()))),
                    Ok(Ok((facts, body))) => Ok((facts, Body::Http2(body))),
                    Ok(Err(http2::Broken::Connection(error))) => {
                        pool.unshare(&shared);
                        Err(Failed::Connection { error, was_pooled: may_pool })
                    }
                    Ok(Err(http2::Broken::Failed(error))) => Err(Failed::Finally(error)),
                }
            }
        }
    }

    /// A pooled or shared connection.
    fn known_way(&self, pool: &OriginPool, tls: Option<TlsOptions>, may_pool: bool) -> Option<Way> {
        if !may_pool {
            return None;
        }
        let shared = tls.filter(|tls| tls.http2).and_then(|tls| pool.http2(tls));
        let way = match shared {
            Some(shared) => Way::Http2(shared),
            None => Way::Http1(pool.take_idle(tls)?),
        };
        self.connections.count(|counters| counters.reused += 1);
        Some(way)
    }

    /// Opens a connection. Until it is known whether the peer speaks HTTP/2, other requests wait for the
    /// first one, since all of them could share its connection.
    async fn open(
        &self,
        request: &Request,
        pool: &OriginPool,
        tls: Option<TlsOptions>,
        may_pool: bool,
        deadline: Deadline,
    ) -> Result<Way, Failed> {
        let Some(tls) = tls.filter(|tls| tls.http2) else {
            let transport = self.connect(request, tls, deadline).await?;
            return Ok(Way::Http1(Box::new(Connection::new(transport, tls))));
        };
        let turn = with_deadline(deadline.at_ms, pool.opening().turn()).await;
        let turn = turn.map_err(|Elapsed| Failed::Finally(deadline.error(request.server())))?;
        if let Some(way) = self.known_way(pool, Some(tls), may_pool) {
            return Ok(way);
        }
        match self.connect(request, Some(tls), deadline).await?.into_http2() {
            Ok((session, socket)) => {
                let begun = Multiplexed::begin(session, socket);
                let shared = with_deadline(deadline.at_ms, begun).await;
                let shared = shared
                    .map_err(|Elapsed| Failed::Finally(deadline.error(request.server())))?
                    .map_err(Failed::Finally)?;
                pool.share(tls, shared.clone());
                Ok(Way::Http2(shared))
            }
            Err(transport) => {
                turn.is_http1();
                Ok(Way::Http1(Box::new(Connection::new(transport, Some(tls)))))
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
            Err(Elapsed) => Err(Failed::Finally(deadline.error(request.server()))),
            Ok(Err(Broken::Unanswered(error))) => Err(Failed::Connection { error, was_pooled }),
            Ok(Err(Broken::Failed(error))) => Err(Failed::Finally(error)),
            Ok(Ok(head)) => Ok(Body::of_http1(request, connection, head)),
        }
    }
}

#[cfg(test)]
mod tests;
