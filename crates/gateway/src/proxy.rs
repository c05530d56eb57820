//! Routes that another server answers: a reverse proxy.
//!
//! Called by [`crate::origin`]. A request's body is taken whole before the upstream is asked, unless the
//! route says otherwise; an answer goes through while it comes, and what a slow client does not take
//! is kept for it; only what a cache may keep is waited for. Invariants: a slow client does not hold one
//! of the upstream's places; nothing of the connection is passed on (RFC 9110
//! 7.6.1); what a client says about who it is counts only from a trusted proxy; once a head is out,
//! a failure breaks the connection instead of pretending a whole answer.

mod fields;
mod inflow;
pub(crate) mod websocket;

use crate::app::App;
use crate::cache_requirements::CacheRequirements;
use crate::origin_response;
use crate::request::{RequestContext, ResponseSummary};
use crate::response_head::ResponseHead;
use crate::route::Proxied;
use inflow::{Inflow, Next};
use outboard_buffer::Held;
use outboard_buffer::RequestBody;
use outboard_http_server::body_reader::{self, Pieces};
use outboard_http_server::{BodyWriter, Connection};
use outboard_http1::Method;
use outboard_log::Level;
use outboard_log::Reason;
use outboard_page_cache::{Field, Fields};
use outboard_reactor::{clear_deadline, deadline_ms, set_deadline, yield_now};
use outboard_upstream::{BodyLength, Error, Interims, Kind, Request, Response, Url};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// An answer whose head has come.
#[derive(Debug)]
pub(crate) struct Begun {
    /// The head, under the app's rules.
    pub(crate) head: ResponseHead,
    /// The body so far.
    body: Vec<u8>,
    /// Counts it.
    held: Held,
    /// Brings the rest of it.
    response: Response,
    timeout_ms: u64,
    /// Whether the rest is kept for a slow client.
    is_buffered: bool,
}

/// Asks the upstream until its head has come; for a cache, until all has come that it takes.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn begin(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    proxied: &Proxied,
    for_cache: Option<&CacheRequirements>,
) -> Result<Begun, Reason> {
    let request = request(connection, ctx, app, proxied, for_cache);
    let mut request = request.map_err(|error| told(app, ctx.request_id, &error))?;
    let timeout_ms = request.timeout_ms;
    let interims = Rc::<Interims>::default();
    request.interims = Some(interims.clone());
    let asking = Asking { ctx, app, interims: &interims };
    let is_streamed = !app.config.proxies[proxied.number].buffers_request;
    let asked = if proxied.is_ordered {
        // The script had the body.
        asking.send(connection, request).await?
    } else if is_streamed && let Some(pieces) = Pieces::of(connection, &app.config.limits).await? {
        asking.stream(connection, request, pieces).await?
    } else {
        let received = body_reader::body(connection, &app.config.limits).await?;
        asking.hand_over(connection, request, received.body).await?
    };
    let mut response = asked.map_err(|error| told(app, ctx.request_id, &error))?;
    response.wait_at_most(timeout_ms);
    let path = connection.buffers().path.clone();
    let head = head(app, &response, &path)?;
    let most_bytes = for_cache.filter(|_| may_be_kept(&head)).map_or(0, |wish| wish.whole_bytes);
    let mut begun = Begun::new(app, proxied, head, response, timeout_ms);
    // While memory is scarce, an answer is sent rather than collected.
    let memory = &app.memory.responses;
    while !begun.response.is_over() && begun.body.len() < most_bytes && !memory.is_scarce() {
        let more = until_hangup(connection, begun.read()).await?;
        more.map_err(|error| told(app, ctx.request_id, &error))?;
    }
    begun.read_at_hand().await.map_err(|error| told(app, ctx.request_id, &error))?;
    Ok(begun)
}

/// A request that waits for its answer.
struct Asking<'a> {
    ctx: &'a RequestContext,
    app: &'a App,
    interims: &'a Interims,
}

impl Asking<'_> {
    async fn send(
        &self,
        connection: &mut Connection,
        request: Request,
    ) -> Result<Result<Response, Error>, Reason> {
        self.hear(connection, self.app.upstream.send(request)).await
    }

    /// Sends a body that has come whole.
    async fn hand_over(
        &self,
        connection: &mut Connection,
        mut request: Request,
        mut body: RequestBody,
    ) -> Result<Result<Response, Error>, Reason> {
        if body.memory().len() as u64 == body.length() {
            request.body = body.memory().to_vec();
            return self.send(connection, request).await;
        }
        let length = BodyLength::Known(body.length());
        let begun = self.app.upstream.upload(request, length);
        let mut upload = match until_hangup(connection, begun).await? {
            Ok(upload) => upload,
            Err(error) => return Ok(Err(error)),
        };
        let mut piece = Vec::new();
        while !body.is_spent() {
            let taken = body.next(SPOOLED_PIECE_BYTES, |bytes| {
                piece.clear();
                piece.extend_from_slice(bytes);
                Ok::<_, Reason>(true)
            });
            taken.map_err(|_| Reason::SpoolFailed)??;
            until_hangup(connection, upload.write(&piece)).await?;
            yield_now().await;
        }
        self.hear(connection, upload.finish()).await
    }

    /// Hands a body through while it comes.
    async fn stream(
        &self,
        connection: &mut Connection,
        request: Request,
        mut pieces: Pieces,
    ) -> Result<Result<Response, Error>, Reason> {
        let length = pieces.length().map_or(BodyLength::Chunked, BodyLength::Known);
        let begun = self.app.upstream.upload(request, length);
        let mut upload = match until_hangup(connection, begun).await? {
            Ok(upload) => upload,
            Err(error) => return Ok(Err(error)),
        };
        while let Some(range) = pieces.next(connection, &self.app.config.limits).await? {
            upload.write(&connection.buffers().input[range]).await;
        }
        self.hear(connection, upload.finish()).await
    }

    /// Waits for the answer, as long as there is a client, and passes on what comes before it
    /// (RFC 9110 15.2).
    async fn hear<T>(
        &self,
        connection: &mut Connection,
        answer: impl Future<Output = T>,
    ) -> Result<T, Reason> {
        let mut answer = pin!(answer);
        loop {
            let heard = poll_fn(|context| match answer.as_mut().poll(context) {
                Poll::Ready(done) => Poll::Ready(Ok(Some(done))),
                Poll::Pending if !self.interims.is_empty() => Poll::Ready(Ok(None)),
                Poll::Pending => connection.poll_gone().map(|()| Err(Reason::ClientGone)),
            });
            let heard = heard.await?;
            // The answer's own, which another wait of this task would take back.
            let until_ms = deadline_ms();
            while let Some(interim) = self.interims.take() {
                // One that cannot be written down is not worth the answer.
                if let Ok(head) = ResponseHead::of_upstream(interim.status, &interim.headers) {
                    origin_response::write_interim(connection, self.ctx, &head).await?;
                }
            }
            set_deadline(until_ms);
            if let Some(done) = heard {
                return Ok(done);
            }
        }
    }
}

/// What is read of a spooled body at once.
const SPOOLED_PIECE_BYTES: usize = 64 << 10;

/// What [`make`] asks the upstream: the present request as a GET for the whole page.
///
/// # Errors
/// It cannot be asked.
pub(crate) fn request_for_cache(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &App,
    proxied: &Proxied,
    wish: &CacheRequirements,
) -> Result<Request, Error> {
    let mut request = request(connection, ctx, app, proxied, Some(wish))?;
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
) -> Result<Option<(ResponseHead, Vec<u8>)>, Reason> {
    let timeout_ms = request.timeout_ms;
    let sent = app.upstream.send(request).await;
    let mut response = sent.map_err(|error| told(app, request_id, &error))?;
    response.wait_at_most(timeout_ms);
    let head = head(app, &response, path)?;
    let held = app.memory.responses.hold(0);
    let mut begun =
        Begun { head, body: Vec::new(), held, response, timeout_ms, is_buffered: false };
    while !begun.response.is_over() {
        begun.read().await.map_err(|error| told(app, request_id, &error))?;
        if begun.body.len() > whole_bytes || app.memory.responses.is_full() {
            return Ok(None);
        }
    }
    Ok(Some((begun.head, begun.body)))
}

impl Begun {
    fn new(
        app: &App,
        proxied: &Proxied,
        head: ResponseHead,
        response: Response,
        timeout_ms: u64,
    ) -> Self {
        let is_to_flow = response.header(b"x-accel-buffering") == Some(b"no");
        let is_buffered = app.config.proxies[proxied.number].buffers_response && !is_to_flow;
        let held = app.memory.responses.hold(0);
        Self { head, body: Vec::new(), held, response, timeout_ms, is_buffered }
    }

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
        let read = self.response.read(&mut self.body).await;
        self.held.set(self.body.len());
        read.map(drop)
    }

    /// Takes what has come with the head: often all there is.
    async fn read_at_hand(&mut self) -> Result<(), Error> {
        if self.response.is_over() {
            return Ok(());
        }
        let read = poll_fn(|context| match pin!(self.read()).poll(context) {
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => Poll::Ready(Ok(())),
        });
        let outcome = read.await;
        clear_deadline();
        outcome
    }

    /// Relays it.
    pub(crate) async fn send(
        self,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &App,
    ) -> ResponseSummary {
        let Self { head, body, held, mut response, timeout_ms, is_buffered } = self;
        if response.is_over() {
            return origin_response::write_complete(connection, ctx, &head, &body).await;
        }
        response.count_as_response();
        let account = &app.memory.responses;
        let turns = ctx.gateway.read_turns.clone();
        let inflow = Inflow::start(response, timeout_ms, account, turns);
        let status = head.status;
        let framing = ctx.request.framing(status, head.content_length);
        let facts = head.facts(ctx.request, framing);
        connection.put_head(facts, &head.headers.bytes);
        let mut writer = BodyWriter::new(framing);
        let mut piece = body;
        let mut held = Some(held);
        loop {
            let is_put = match is_buffered {
                true => writer.write_or_spool(connection, &piece, account).await,
                false => writer.write(connection, &piece).await,
            };
            drop((piece, held.take()));
            if !is_put {
                return ResponseSummary::broken(status, writer.written_bytes());
            }
            let reason = match inflow.next(connection).await {
                Ok(Next::Piece(next)) => {
                    piece = next;
                    continue;
                }
                Ok(Next::End) => {
                    let written = writer.finish(connection, b"", facts.keep_alive, account).await;
                    let body_bytes = writer.written_bytes();
                    return ResponseSummary { written, status, body_bytes };
                }
                Ok(Next::Broken(error)) => told(app, ctx.request_id, &error),
                Err(reason) => {
                    connection.note_lost(Err(reason));
                    return ResponseSummary::broken(status, writer.written_bytes());
                }
            };
            connection.context.count_refusal(reason);
            return ResponseSummary::broken(status, writer.written_bytes());
        }
    }
}

fn request(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &App,
    proxied: &Proxied,
    for_cache: Option<&CacheRequirements>,
) -> Result<Request, Error> {
    let to = &app.config.proxies[proxied.number];
    let conditions = for_cache.map(|wish| &wish.conditions[..]);
    let mut headers = fields::of(connection, ctx, to, conditions)?;
    if proxied.is_ordered {
        headers.remove(|name| name[..name.len().min(8)].eq_ignore_ascii_case(b"content-"));
    }
    let buffers = connection.buffers();
    let target = match &proxied.rewritten {
        Some(target) => target.clone(),
        None => buffers.head.origin_form(&buffers.input).into_owned(),
    };
    let mut request = Request::get(Url::parse(&[to.upstream.as_bytes(), &target].concat())?);
    if !proxied.is_ordered || ctx.request.method == Method::Head {
        request.method = buffers.head.method(&buffers.input).to_vec();
    }
    request.headers = headers;
    request.connect_timeout_ms = to.connect_timeout_ms;
    request.timeout_ms = to.timeout_ms;
    request.max_body_bytes = u64::MAX;
    request.max_redirects = 0;
    request.verify = to.verifies;
    request.decompress = false;
    request.introduces_itself = false;
    request.account = Some(app.upstream_account.clone());
    Ok(request)
}

fn head(app: &App, response: &Response, path: &[u8]) -> Result<ResponseHead, Reason> {
    let mut head =
        ResponseHead::of_upstream(response.status, &response.headers).map_err(|bad| {
            app.log_text(Level::Error, 0, &bad.why);
            Reason::UpstreamFailed
        })?;
    head.headers.apply(&app.config.headers, app.below_prefix(path));
    Ok(head)
}

fn may_be_kept(head: &ResponseHead) -> bool {
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    let response = outboard_page_cache::Response { status: head.status, fields: Fields(&fields) };
    outboard_page_cache::may_be_stored(response)
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
