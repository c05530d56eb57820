//! Routes that another server answers: a reverse proxy.
//!
//! Called by [`crate::origin`]. Bodies go through while they come, in both directions; only what a
//! cache may keep is waited for. Invariants: nothing of the connection is passed on (RFC 9110
//! 7.6.1); what a client says about who it is counts only from a trusted proxy; once a head is out,
//! a failure breaks the connection instead of pretending a whole answer.

mod fields;
pub(crate) mod switch;

use crate::app::App;
use crate::connection::Connection;
use crate::log::Level;
use crate::php_head::PhpHead;
use crate::reason::Reason;
use crate::receive::Pieces;
use crate::script::{ForCache, relay};
use crate::turn::{Answered, Turn};
use outboard_http1::Method;
use outboard_page_cache::{Field, Fields};
use outboard_upstream::{BodyLength, Error, Kind, Request, Response, Url};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// Which server gets a request, and what it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proxied {
    /// Its place in the app's `proxies`.
    pub(crate) number: usize,
    /// Path and query after a rewrite; `None` for those of the request as they were received.
    pub(crate) rewritten: Option<Vec<u8>>,
    /// Whether a script ordered it: then it is a GET or HEAD, whatever the client asked.
    pub(crate) is_ordered: bool,
}

/// An answer whose head has come.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The head, under the app's rules.
    pub(crate) head: PhpHead,
    /// The body so far.
    body: Vec<u8>,
    /// Brings the rest of it.
    response: Response,
    timeout_ms: u64,
}

/// Asks the upstream until its head has come; for a cache, until all has come that it takes.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn begin(
    connection: &mut Connection,
    turn: &Turn,
    app: &Rc<App>,
    proxied: &Proxied,
    for_cache: Option<&ForCache>,
) -> Result<Begun, Reason> {
    let request = request(connection, turn, app, proxied, for_cache);
    let request = request.map_err(|error| told(app, turn.request_id, &error))?;
    let timeout_ms = request.timeout_ms;
    let pieces = match proxied.is_ordered {
        // The script had it.
        true => None,
        false => Pieces::of(connection, &app.config.limits).await?,
    };
    let asked = match pieces {
        None => until_hangup(connection, app.upstream.send(request)).await?,
        Some(pieces) => upload(connection, app, request, pieces).await?,
    };
    let mut response = asked.map_err(|error| told(app, turn.request_id, &error))?;
    response.wait_at_most(timeout_ms);
    let path = connection.buffers().path.clone();
    let head = head(app, &response, &path)?;
    let most_bytes = for_cache.filter(|_| may_be_kept(&head)).map_or(0, |wish| wish.whole_bytes);
    let mut begun = Begun { head, body: Vec::new(), response, timeout_ms };
    while !begun.response.is_over() && begun.body.len() < most_bytes {
        let more = until_hangup(connection, begun.read()).await?;
        more.map_err(|error| told(app, turn.request_id, &error))?;
    }
    Ok(begun)
}

/// Hands the body through, and waits for the head of the answer.
async fn upload(
    connection: &mut Connection,
    app: &App,
    request: Request,
    mut pieces: Pieces,
) -> Result<Result<Response, Error>, Reason> {
    let length = pieces.length().map_or(BodyLength::Chunked, BodyLength::Known);
    let mut upload = match until_hangup(connection, app.upstream.upload(request, length)).await? {
        Ok(upload) => upload,
        Err(error) => return Ok(Err(error)),
    };
    while let Some(range) = pieces.next(connection, &app.config.limits).await? {
        upload.write(&connection.buffers().input[range]).await;
    }
    until_hangup(connection, upload.finish()).await
}

/// What [`make`] asks the upstream: the present request as a GET for the whole page.
///
/// # Errors
/// It cannot be asked.
pub(crate) fn request_for_cache(
    connection: &mut Connection,
    turn: &Turn,
    app: &App,
    proxied: &Proxied,
    wish: &ForCache,
) -> Result<Request, Error> {
    let mut request = request(connection, turn, app, proxied, Some(wish))?;
    request.method = b"GET".to_vec();
    Ok(request)
}

/// Has a page made that no client waits for; `None` for one that is longer than `whole_bytes`.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn make(
    app: &Rc<App>,
    request: Request,
    request_id: u64,
    path: &[u8],
    whole_bytes: usize,
) -> Result<Option<(PhpHead, Vec<u8>)>, Reason> {
    let timeout_ms = request.timeout_ms;
    let sent = app.upstream.send(request).await;
    let mut response = sent.map_err(|error| told(app, request_id, &error))?;
    response.wait_at_most(timeout_ms);
    let head = head(app, &response, path)?;
    let mut begun = Begun { head, body: Vec::new(), response, timeout_ms };
    while !begun.response.is_over() {
        begun.read().await.map_err(|error| told(app, request_id, &error))?;
        if begun.body.len() > whole_bytes {
            return Ok(None);
        }
    }
    Ok(Some((begun.head, begun.body)))
}

impl Begun {
    /// The body, if all of it has come.
    pub(crate) fn whole_body(&self) -> Option<&[u8]> {
        self.response.is_over().then_some(&self.body)
    }

    /// How much of the body has come.
    pub(crate) fn body_bytes(&self) -> usize {
        self.body.len()
    }

    async fn read(&mut self) -> Result<(), Error> {
        self.response.wait_at_most(self.timeout_ms);
        self.response.read(&mut self.body).await.map(drop)
    }

    /// Relays it.
    pub(crate) async fn send(
        mut self,
        connection: &mut Connection,
        turn: &Turn,
        app: &App,
    ) -> Answered {
        if self.response.is_over() {
            return relay::whole(connection, turn, &self.head, &self.body).await;
        }
        let status = self.head.status;
        let framing = turn.asked.framing(status, self.head.content_length);
        let facts = self.head.facts(turn.asked, framing);
        connection.put_head(facts, &self.head.headers.bytes);
        let mut sent_bytes = 0;
        loop {
            if !relay::write_piece(connection, framing, &self.body, &mut sent_bytes).await {
                return Answered::broken(status, sent_bytes);
            }
            if self.response.is_over() {
                let facts = self.head.facts(turn.asked, framing);
                return relay::finish(connection, facts, sent_bytes).await;
            }
            self.body.clear();
            match until_hangup(connection, self.read()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    let reason = told(app, turn.request_id, &error);
                    connection.gateway.counters.borrow_mut().refused(reason);
                    return Answered::broken(status, sent_bytes);
                }
                Err(reason) => {
                    connection.lost = Some(reason);
                    return Answered::broken(status, sent_bytes);
                }
            }
        }
    }
}

fn request(
    connection: &mut Connection,
    turn: &Turn,
    app: &App,
    proxied: &Proxied,
    for_cache: Option<&ForCache>,
) -> Result<Request, Error> {
    let to = &app.config.proxies[proxied.number];
    let conditions = for_cache.map(|wish| &wish.conditions[..]);
    let mut headers = fields::of(connection, turn, to, conditions)?;
    if proxied.is_ordered {
        headers.remove(|name| name[..name.len().min(8)].eq_ignore_ascii_case(b"content-"));
    }
    let buffers = connection.buffers();
    let target = match &proxied.rewritten {
        Some(target) => target.clone(),
        None => buffers.head.origin_form(&buffers.input).into_owned(),
    };
    let mut request = Request::get(Url::parse(&[to.upstream.as_bytes(), &target].concat())?);
    if !proxied.is_ordered || turn.asked.method == Method::Head {
        request.method = buffers.head.method(&buffers.input).to_vec();
    }
    request.headers = headers;
    request.connect_timeout_ms = to.connect_timeout_ms;
    request.timeout_ms = to.timeout_ms;
    request.max_body_bytes = u64::MAX;
    request.max_redirects = 0;
    request.verify = to.verifies;
    request.decompress = false;
    Ok(request)
}

fn head(app: &App, response: &Response, path: &[u8]) -> Result<PhpHead, Reason> {
    let mut head = PhpHead::of_upstream(response.status, &response.headers).map_err(|bad| {
        app.log_text(Level::Error, 0, &bad.why);
        Reason::UpstreamFailed
    })?;
    head.headers.apply(&app.config.headers, app.below_prefix(path));
    Ok(head)
}

fn may_be_kept(head: &PhpHead) -> bool {
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = outboard_page_cache::Response { status: head.status, fields: Fields(&fields) };
    outboard_page_cache::may_be_kept(response)
}

/// Logs what went wrong, and gives the word for it.
fn told(app: &App, request_id: u64, error: &Error) -> Reason {
    app.log_text(Level::Error, request_id, &error.message);
    match error.kind {
        Kind::Timeout => Reason::UpstreamTimeout,
        Kind::Busy => Reason::UpstreamBusy,
        _ => Reason::UpstreamFailed,
    }
}

/// Does it as long as there is a client.
async fn until_hangup<T>(
    connection: &Connection,
    work: impl Future<Output = T>,
) -> Result<T, Reason> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => connection.poll_gone().map(|()| Err(Reason::ClientGone)),
    })
    .await
}
