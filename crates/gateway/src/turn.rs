//! One request on a connection: find the app and the route, have it answered, log it.
//!
//! Called by the connection for each request of an app listener. Invariant: whatever happens,
//! exactly one answer is written or the connection is broken, and exactly one access entry and
//! one count are made.

use crate::answer::{Asked, METHODS, Sent, error_headers, error_page, status_page};
use crate::app::App;
use crate::client::Forwarded;
use crate::connection::Connection;
use crate::development::{failure, live};
use crate::generation::Generation;
use crate::header_block::HeaderBlock;
use crate::listener::set::{self, HTTPS_PORT};
use crate::metrics;
use crate::origin::Origin;
use crate::proxy::switch;
use crate::route::{self, Route};
use crate::{compose, entities, files, origin, page_cache, upgrade};
use outboard_config::Metrics;
use outboard_http1::{Method, Version, normalize_path, split_host_port};
use outboard_log::Reason;
use outboard_log::{AccessEntry, Level, Wall};
use outboard_reactor::now_ms;
use std::net::IpAddr;
use std::rc::Rc;

/// What is known of the request beyond its head.
pub(crate) struct Turn {
    pub(crate) asked: Asked,
    pub(crate) forwarded: Forwarded,
    pub(crate) request_id: u64,
    pub(crate) started: Wall,
}

impl Turn {
    /// Who asks, as far as it has an address.
    pub(crate) fn client_ip(&self, connection: &Connection) -> Option<IpAddr> {
        match &self.forwarded.client {
            Some(client) => client.parse().ok(),
            None => connection.ends.peer_ip(),
        }
    }
}

/// How a request was answered.
pub(crate) struct Answered {
    pub(crate) sent: Sent,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
}

impl Answered {
    pub(crate) fn broken(status: u16, body_bytes: u64) -> Self {
        Self { sent: Sent::Broken, status, body_bytes }
    }
}

/// Answers the request whose head is in the input.
pub(crate) async fn answer(connection: &mut Connection, started: Wall) -> Sent {
    let turn = Turn {
        asked: Asked::of(connection),
        forwarded: forwarded(connection),
        request_id: connection.gateway.next_request_id(),
        started,
    };
    if let Some(development) = connection.gateway.development() {
        development.settle(&connection.gateway).await;
    }
    let generation = connection.gateway.generation();
    let (app, answered) = dispatch(connection, &turn, &generation).await;
    if let Some(reason) = connection.lost.take() {
        let text = told(connection, &turn);
        connection.gateway.log_refusal(app.as_deref(), turn.request_id, reason, &text);
        connection.gateway.counters.borrow_mut().refused(reason);
    }
    connection.gateway.counters.borrow_mut().answered(answered.status, answered.body_bytes);
    log_access(connection, &turn, app.as_deref(), &generation, &answered);
    answered.sent
}

fn forwarded(connection: &mut Connection) -> Forwarded {
    let forwarding = &connection.listener.clone().forwarding;
    let https = connection.wire.is_encrypted();
    if !forwarding.has_proxies() {
        return Forwarded { https, ..Forwarded::default() };
    }
    let buffers = connection.buffers.as_ref().expect("a request is being worked on");
    let told = Forwarded::read(forwarding, &connection.ends, &buffers.head, &buffers.input);
    Forwarded { https: told.https || https, ..told }
}

async fn dispatch(
    connection: &mut Connection,
    turn: &Turn,
    generation: &Generation,
) -> (Option<Rc<App>>, Answered) {
    if is_options_of_all(connection, turn) {
        return (None, options_of_all(connection, turn).await);
    }
    if matches!(turn.asked.method, Method::Connect | Method::Trace) {
        return (None, refuse(connection, turn, None, Reason::MethodRefused).await);
    }
    if turn.forwarded.has_bad_host {
        return (None, refuse(connection, turn, None, Reason::BadRequest).await);
    }
    let buffers = connection.buffers();
    if normalize_path(buffers.head.path(&buffers.input), &mut buffers.path).is_err() {
        return (None, refuse(connection, turn, None, Reason::BadPath).await);
    }
    if is_misdirected(connection) {
        return (None, refuse(connection, turn, None, Reason::Misdirected).await);
    }
    if let Some(answered) = send_to_https(connection, turn, generation).await {
        return (None, answered);
    }
    if let Some(answered) = entities::attempt(connection, turn, generation).await {
        return (None, answered);
    }
    if let Some(answered) = live::attempt(connection, turn).await {
        return (None, answered);
    }
    if is_metrics(generation, &connection.buffers().path) {
        return (None, metrics(connection, turn).await);
    }
    let buffers = connection.buffers();
    let host = turn.forwarded.host.as_deref().or(buffers.head.host(&buffers.input));
    let host = split_host_port(host.unwrap_or_default()).0;
    let app = generation.app(host, &buffers.path);
    if let Some(answered) = upgrade::attempt(connection, turn, app.as_deref()).await {
        return (app, answered);
    }
    let Some(app) = app else {
        return (None, refuse(connection, turn, None, Reason::NoApp).await);
    };
    let buffers = connection.buffers();
    let query = buffers.head.query(&buffers.input);
    let route = route::find(&app, &buffers.path, query, now_ms());
    let answered = follow(connection, turn, &app, route).await;
    (Some(app), answered)
}

/// RFC 9110 9.3.7: a ping of the server itself.
fn is_options_of_all(connection: &mut Connection, turn: &Turn) -> bool {
    let buffers = connection.buffers();
    turn.asked.method == Method::Options && buffers.head.target(&buffers.input) == b"*"
}

async fn options_of_all(connection: &mut Connection, turn: &Turn) -> Answered {
    let mut headers = HeaderBlock::default();
    headers.add(b"Allow", METHODS.as_bytes()).expect("a constant header");
    let sent = connection.respond(turn.asked, 204, &headers, b"").await;
    Answered { sent, status: 204, body_bytes: 0 }
}

/// Whether another certificate would have been shown for the host (RFC 9110 7.4). A trusted proxy may
/// ask for all of them on one connection.
fn is_misdirected(connection: &mut Connection) -> bool {
    let facts = connection.listener.clone();
    let Some((chosen, settings)) = connection.ends.chosen.zip(facts.tls.as_ref()) else {
        return false;
    };
    let is_trusted = connection.ends.is_trusted(&facts.forwarding);
    let buffers = connection.buffers();
    let host = split_host_port(buffers.head.host(&buffers.input).unwrap_or_default()).0;
    !is_trusted && settings.is_misdirected(chosen, &String::from_utf8_lossy(host))
}

/// Has a client come back with TLS, to a host that is known. Who checks the name for a certificate
/// comes without (RFC 8555 8.3).
async fn send_to_https(
    connection: &mut Connection,
    turn: &Turn,
    generation: &Generation,
) -> Option<Answered> {
    if !connection.listener.redirects_to_https || turn.forwarded.https {
        return None;
    }
    let port = set::https_port(&connection.gateway)?;
    let buffers = connection.buffers();
    if buffers.path.starts_with(b"/.well-known/acme-challenge/") {
        return None;
    }
    let host = turn.forwarded.host.as_deref().or(buffers.head.host(&buffers.input))?;
    let host = split_host_port(host).0;
    if generation.app(host, &buffers.path).is_none() {
        return Some(refuse(connection, turn, None, Reason::NoApp).await);
    }
    let port = if port == HTTPS_PORT { String::new() } else { format!(":{port}") };
    let target = buffers.head.origin_form(&buffers.input);
    let location = [b"https://", host, port.as_bytes(), &target].concat();
    let mut headers = HeaderBlock::default();
    headers.add(b"Location", &location).ok()?;
    Some(respond(connection, turn, None, 308, headers, &status_page(308, "")).await)
}

fn is_metrics(generation: &Generation, path: &[u8]) -> bool {
    matches!(&generation.config.admin.metrics, Some(Metrics::Path(at)) if at.as_bytes() == path)
}

async fn metrics(connection: &mut Connection, turn: &Turn) -> Answered {
    let page = metrics::of(&connection.gateway);
    let mut headers = HeaderBlock::default();
    headers.add(b"Content-Type", metrics::CONTENT_TYPE.as_bytes()).expect("a constant header");
    let sent = connection.respond(turn.asked, 200, &headers, &page).await;
    Answered { sent, status: 200, body_bytes: page.len() as u64 }
}

async fn follow(connection: &mut Connection, turn: &Turn, app: &Rc<App>, route: Route) -> Answered {
    if let Some(cache) = &app.page_cache
        && page_cache::is_purge(connection, turn)
    {
        return page_cache::purge(connection, turn, app, cache).await;
    }
    if matches!(route, Route::Script(_) | Route::Page(_))
        && let Some(words) = connection.gateway.development().and_then(|found| found.failure())
    {
        return tell_failure(connection, turn, 500, &words).await;
    }
    let may_need_php = matches!(route, Route::Script(_) | Route::Page(_));
    let _claim = may_need_php.then(|| app.pool.claim());
    match route {
        Route::File(entry) => files::answer(connection, turn, app, &entry).await,
        Route::Script(script) => made(connection, turn, app, Origin::Script(script)).await,
        Route::Upstream(proxied) => {
            match Box::pin(switch::attempt(connection, turn, app, &proxied)).await {
                Some(answered) => answered,
                None => made(connection, turn, app, Origin::Upstream(proxied)).await,
            }
        }
        Route::Page(composed) => compose::answer(connection, turn, app, composed).await,
        Route::Refuse(reason, hint) => {
            if let Some(hint) = &hint {
                app.log_text(Level::Info, turn.request_id, hint);
            }
            refuse_with(connection, turn, Some(app), reason, hint.as_deref()).await
        }
        Route::Redirect { status, location } => {
            let mut headers = HeaderBlock::default();
            if headers.add(b"Location", &location).is_err() {
                return refuse(connection, turn, Some(app), Reason::BadPath).await;
            }
            respond(connection, turn, Some(app), status, headers, &status_page(status, "")).await
        }
        Route::Status(status) => {
            let page = status_page(status, "");
            respond(connection, turn, Some(app), status, HeaderBlock::default(), &page).await
        }
    }
}

/// Has a request answered by who makes the answer, or by what was kept of that.
async fn made(connection: &mut Connection, turn: &Turn, app: &Rc<App>, origin: Origin) -> Answered {
    match &app.page_cache {
        Some(cache) => page_cache::answer(connection, turn, app, cache, origin).await,
        None => origin::answer(connection, turn, app, &origin).await,
    }
}

/// Answers with the page of a reason, and counts and logs it.
pub(crate) async fn refuse(
    connection: &mut Connection,
    turn: &Turn,
    app: Option<&Rc<App>>,
    reason: Reason,
) -> Answered {
    refuse_with(connection, turn, app, reason, None).await
}

/// The same, with what the operator can do about it, for developers to read on the page.
async fn refuse_with(
    connection: &mut Connection,
    turn: &Turn,
    app: Option<&Rc<App>>,
    reason: Reason,
    hint: Option<&str>,
) -> Answered {
    let text = told(connection, turn);
    connection.gateway.log_refusal(app.map(|app| &**app), turn.request_id, reason, &text);
    connection.gateway.counters.borrow_mut().refused(reason);
    if matches!(reason, Reason::ClientGone | Reason::WriteTimeout | Reason::BodyCut) {
        return Answered::broken(reason.status(), 0);
    }
    let tells = connection.gateway.generation().config.tells_reasons;
    let mut page = error_page(reason, tells);
    if let Some(hint) = hint.filter(|_| connection.gateway.development().is_some()) {
        page += &format!("<p>{}</p>\n", failure::escape(hint));
    }
    let headers = error_headers(reason, tells);
    respond(connection, turn, app, reason.status(), headers, &page).await
}

/// Answers with what PHP failed at, in development.
pub(crate) async fn tell_failure(
    connection: &mut Connection,
    turn: &Turn,
    status: u16,
    words: &str,
) -> Answered {
    let label = label(connection);
    let buffers = connection.buffers();
    let accept = buffers.head.header(&buffers.input, b"accept").unwrap_or_default();
    let is_browser = memchr::memmem::find(accept, b"text/html").is_some();
    let (kind, page) = match is_browser {
        true => ("text/html; charset=utf-8", failure::html(words, &label)),
        false => ("text/plain; charset=utf-8", failure::plain(words)),
    };
    let mut headers = HeaderBlock::default();
    headers.add(b"Content-Type", kind.as_bytes()).expect("a constant header");
    headers.add(b"Cache-Control", b"no-store").expect("a constant header");
    respond(connection, turn, None, status, headers, &page).await
}

/// Who asks and for what, for the error log. The client's address stands before all that it can
/// choose itself.
pub(crate) fn told(connection: &mut Connection, turn: &Turn) -> String {
    let label = label(connection);
    let client = turn.forwarded.client.as_deref().unwrap_or(&connection.ends.peer_text);
    format!("client={client} {label}")
}

/// Method and target, for the status page.
pub(crate) fn label(connection: &mut Connection) -> Box<str> {
    let buffers = connection.buffers();
    let method = String::from_utf8_lossy(buffers.head.method(&buffers.input));
    let target = String::from_utf8_lossy(buffers.head.target(&buffers.input));
    format!("{method} {target}").into()
}

/// Answers with a small page, or with the app's own page for that status.
async fn respond(
    connection: &mut Connection,
    turn: &Turn,
    app: Option<&Rc<App>>,
    status: u16,
    mut headers: HeaderBlock,
    page: &str,
) -> Answered {
    let own_page = app.and_then(|app| app.error_pages.get(&status).cloned());
    let body = own_page.as_deref().unwrap_or(page.as_bytes());
    if !headers.contains(b"Content-Type") {
        headers.add(b"Content-Type", b"text/html; charset=utf-8").expect("a constant header");
    }
    match app {
        Some(app) => {
            let path = connection.buffers().path.clone();
            headers.apply(&app.config.headers, app.below_prefix(&path));
        }
        None => connection.gateway.generation().apply_rules(&mut headers),
    }
    let body = live::with_tag(&connection.gateway, &headers, body);
    let sent = connection.respond(turn.asked, status, &headers, &body).await;
    Answered { sent, status, body_bytes: body.len() as u64 }
}

fn log_access(
    connection: &Connection,
    turn: &Turn,
    app: Option<&App>,
    generation: &Generation,
    answered: &Answered,
) {
    let log = generation.access_log(app);
    if !log.sink().is_on() {
        return;
    }
    let Some(buffers) = connection.buffers.as_ref() else { return };
    let header = |name: &[u8]| buffers.head.header(&buffers.input, name).unwrap_or_default();
    let now = Wall::now();
    let entry = AccessEntry {
        client: turn.forwarded.client.as_deref().unwrap_or(&connection.ends.peer_text),
        method: buffers.head.method(&buffers.input),
        target: buffers.head.target(&buffers.input),
        protocol: protocol(connection, turn),
        status: answered.status,
        body_bytes: answered.body_bytes,
        duration_us: now.unix_us.saturating_sub(turn.started.unix_us),
        referer: header(b"referer"),
        user_agent: header(b"user-agent"),
        request: turn.request_id,
        app: app.map_or("", |app| &app.config.name),
    };
    log.write(now, &entry);
}

/// `SERVER_PROTOCOL`.
pub(crate) fn protocol(connection: &Connection, turn: &Turn) -> &'static str {
    match turn.asked.version {
        _ if connection.wire.is_http2() => "HTTP/2.0",
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

/// Whether the method may ask for a file.
pub(crate) fn may_read(method: Method) -> bool {
    matches!(method, Method::Get | Method::Head)
}
