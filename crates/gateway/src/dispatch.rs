//! Dispatches requests to the handler of their route. It implements the server's [`Service`].
//!
//! Invariant: each request has exactly one response, or its connection is broken, and exactly one
//! access log line and one count.

mod server;

use crate::access_log;
use crate::app::App;
use crate::gateway::Gateway;
use crate::generation::Generation;
use crate::latencies::Kind;
use crate::origin::Origin;
use crate::proxy::websocket;
use crate::request::{
    RequestContext, ResponseSummary, refuse, refuse_with_hint, respond, respond_with_failure,
};
use crate::route::{self, Readings, Route};
use crate::{
    admin, admin_admission, admission, certificates, cold_files, compose, dashboard, files,
    observe, origin, page_cache,
};
use outboard_http_server::error_page;
use outboard_http_server::{
    Buffers, Connection, ConnectionEntry, Forwarded, HeaderBlock, ListenerContext, PeerInfo,
    RequestFacts, Role, ServerContext, Service, StreamPort, Upgraded, Written,
};
use outboard_http1::{Method, Version, normalize_path, split_host_port};
use outboard_log::{Level, Reason, Wall};
use outboard_reactor::{Stream, now_ms};
use std::cell::{Cell, OnceCell};
use std::net::IpAddr;
use std::rc::Rc;

impl Service for Gateway {
    fn context(&self) -> &Rc<ServerContext> {
        &self.server
    }

    async fn respond(self: &Rc<Self>, connection: &mut Connection, started: Wall) -> Written {
        match connection.listener.role {
            Role::Apps | Role::Entities => respond_to_client(self, connection, started).await,
            // Its connections are passed to `serve_stream`.
            Role::Dashboard => dashboard::respond(self, connection).await,
            Role::Admin | Role::Metrics | Role::Streams => admin::respond(self, connection).await,
        }
    }

    async fn serve_stream(
        self: &Rc<Self>,
        port: &StreamPort,
        stream: Upgraded,
        peer: PeerInfo,
        entry: ConnectionEntry,
    ) {
        if let Some(server) = self.generation().streams(&port.app) {
            outboard_stream_server::serve(server, port.port, stream, peer, entry).await;
        }
    }

    async fn refuse_head(
        self: &Rc<Self>,
        connection: &mut Connection,
        started: Wall,
        reason: Reason,
        detail: &str,
    ) -> Written {
        let text = format!("client={} {detail}", connection.peer.text);
        self.log_refusal(None, 0, reason, &text);
        self.server.count_refusal(reason);
        self.server.count_response(reason.status(), 0);
        let generation = self.generation();
        let names_reason = generation.config.names_reasons;
        let mut headers = error_page::headers(reason, names_reason);
        generation.apply_rules(&mut headers, reason.status());
        let page = error_page::of_reason(reason, names_reason);
        let request =
            RequestFacts { method: Method::Get, version: Version::Http11, keep_alive: false };
        let written = connection.respond(request, reason.status(), &headers, page.as_bytes()).await;
        access_log::write_refused_head(&generation, connection, started, reason);
        written
    }

    fn refuses(&self, listener: &ListenerContext, address: Option<IpAddr>) -> Option<Reason> {
        admission::refuses(&self.generation(), listener, address)
    }

    fn admits(&self, listener: &ListenerContext, stream: &Stream) -> bool {
        if listener.role != Role::Admin {
            return true;
        }
        let admission = admin_admission::check(&self.generation().config, stream);
        if let Err(error) = &admission {
            self.server.log(Level::Warn, error);
        }
        admission.is_ok()
    }
}

async fn respond_to_client(
    gateway: &Rc<Gateway>,
    connection: &mut Connection,
    started: Wall,
) -> Written {
    let mut ctx = RequestContext {
        gateway: gateway.clone(),
        request: RequestFacts::of(connection),
        forwarded: forwarded(connection),
        request_id: gateway.next_request_id(),
        started,
        kind: Cell::default(),
        trace: None,
        server: OnceCell::new(),
    };
    if let Some(development) = gateway.development() {
        development.settle().await;
    }
    connection.join_cookies();
    let generation = gateway.generation();
    ctx.trace = generation.tracer.as_ref().map(|tracer| tracer.begin(connection));
    let (app, summary) = dispatch(connection, &ctx, &generation).await;
    if let Some(reason) = connection.take_lost() {
        let text = ctx.describe(connection);
        gateway.log_refusal(app.as_deref(), ctx.request_id, reason, &text);
        gateway.server.count_refusal(reason);
    }
    gateway.server.count_response(summary.status, summary.body_bytes);
    observe::end(connection, &ctx, app.as_deref(), &generation, &summary);
    if let Some((tracer, scope)) = generation.tracer.as_ref().zip(ctx.trace) {
        tracer.reuse(scope);
    }
    summary.written
}

fn forwarded(connection: &mut Connection) -> Forwarded {
    let forwarding = &connection.listener.clone().forwarding;
    let https = connection.transport.is_encrypted();
    if !forwarding.has_proxies() {
        return Forwarded { https, ..Forwarded::default() };
    }
    let buffers = connection.buffers.as_ref().expect("a request is being processed");
    let reported = Forwarded::read(forwarding, &connection.peer, &buffers.head, &buffers.input);
    Forwarded { https: reported.https || https, ..reported }
}

async fn dispatch(
    connection: &mut Connection,
    ctx: &RequestContext,
    generation: &Generation,
) -> (Option<Rc<App>>, ResponseSummary) {
    if server::is_options_of_all(connection, ctx) {
        return (None, server::options_of_all(connection, ctx).await);
    }
    if matches!(ctx.request.method, Method::Connect | Method::Trace) {
        return (None, refuse(connection, ctx, None, Reason::MethodRefused).await);
    }
    if let Some(summary) = admission::try_refuse_banned(connection, ctx, generation).await {
        return (None, summary);
    }
    if ctx.forwarded.has_bad_host {
        return (None, refuse(connection, ctx, None, Reason::BadRequest).await);
    }
    let buffers = connection.buffers();
    if normalize_path(buffers.head.path(&buffers.input), &mut buffers.path).is_err() {
        return (None, refuse(connection, ctx, None, Reason::BadPath).await);
    }
    if let Some(summary) = certificates::try_handle(connection, ctx).await {
        return (None, summary);
    }
    if server::is_misdirected(connection) {
        return (None, refuse(connection, ctx, None, Reason::Misdirected).await);
    }
    if let Some(summary) = server::redirect_to_https(connection, ctx, generation).await {
        return (None, summary);
    }
    if let Some(summary) = server::serve_without_app(connection, ctx, generation).await {
        return (None, summary);
    }
    let buffers = connection.buffers();
    let app = generation.app(host(ctx, buffers), &buffers.path);
    let Some(app) = app else {
        return (None, refuse(connection, ctx, None, Reason::NoApp).await);
    };
    if app.config.requires_client_certificate && !connection.peer.has_valid_certificate() {
        return (
            Some(app.clone()),
            refuse(connection, ctx, Some(&app), Reason::ClientCertificate).await,
        );
    }
    let summary = match find_route(connection, ctx, generation, &app).await {
        Err(refused) => refused,
        Ok(route) => dispatch_route(connection, ctx, &app, route).await,
    };
    (Some(app), summary)
}

/// The host that the request is for, without a port.
fn host<'r>(ctx: &'r RequestContext, buffers: &'r Buffers) -> &'r [u8] {
    let host = ctx.forwarded.host.as_deref().or(buffers.head.host(&buffers.input));
    split_host_port(host.unwrap_or_default()).0
}

/// Finds the route of a request that satisfies the access rules.
async fn find_route(
    connection: &mut Connection,
    ctx: &RequestContext,
    generation: &Generation,
    app: &Rc<App>,
) -> Result<Route, ResponseSummary> {
    admission::remove_identity(connection, app);
    let requested = app.config.access.of_request(app.below_prefix(&connection.buffers().path));
    if let Some(refused) = admission::try_refuse(connection, ctx, app, requested).await {
        return Err(refused);
    }
    let (buffers, rules) = (connection.buffers(), Cell::new(requested));
    let query = buffers.head.query(&buffers.input);
    let route = match route::find(app, &buffers.path, query, now_ms(), (&[], &rules)) {
        Ok(route) => Ok(route),
        Err(cold) => {
            let (path, query) = (buffers.path.clone(), query.map(<[u8]>::to_vec));
            // Boxed, so that this rare wait does not enlarge the task of every request.
            let target = (&path[..], query.as_deref());
            Box::pin(cold_files::find_route(connection, app, target, cold, &rules)).await
        }
    };
    let buffers = connection.buffers();
    let target = buffers.head.path_and_query(&buffers.input);
    let readings = Readings { generation, app, host: host(ctx, buffers), target, rules: &rules };
    let route = route.map(|route| readings.check(route));
    let further = rules.get().without(requested);
    if let Some(refused) = admission::try_refuse(connection, ctx, app, further).await {
        return Err(refused);
    }
    match route {
        Ok(route) => Ok(route),
        Err(reason) => Err(refuse(connection, ctx, Some(app), reason).await),
    }
}

async fn dispatch_route(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    route: Route,
) -> ResponseSummary {
    if let Some(cache) = &app.page_cache
        && page_cache::is_purge(connection, ctx)
    {
        return page_cache::purge(connection, ctx, app, cache).await;
    }
    if matches!(route, Route::Script(_) | Route::Page(_))
        && let Some(text) = ctx.gateway.development().and_then(|found| found.failure())
    {
        return respond_with_failure(connection, ctx, 500, &text).await;
    }
    let may_tunnel =
        matches!(route, Route::Upstream(_) | Route::Refuse(..) | Route::Redirect { .. });
    if !may_tunnel && websocket::requests_tunnel(connection, ctx) {
        return refuse(connection, ctx, Some(app), Reason::NotImplemented).await;
    }
    let may_need_php = matches!(route, Route::Script(_) | Route::Page(_));
    let _claim = may_need_php.then(|| app.seat.expect_request());
    ctx.kind.set(kind_of(app, &route));
    match route {
        Route::File(entry) => files::respond(connection, ctx, app, &entry).await,
        Route::Script(script) => serve_dynamic(connection, ctx, app, Origin::Script(script)).await,
        Route::Upstream(proxied) => {
            match Box::pin(websocket::try_handle(connection, ctx, app, &proxied)).await {
                Some(summary) => summary,
                None if websocket::requests_tunnel(connection, ctx) => {
                    refuse(connection, ctx, Some(app), Reason::NotImplemented).await
                }
                None => serve_dynamic(connection, ctx, app, Origin::Upstream(proxied)).await,
            }
        }
        Route::Page(composed) => compose::respond(connection, ctx, app, composed).await,
        Route::Refuse(reason, hint) => {
            if let Some(hint) = &hint {
                app.log_text(Level::Info, ctx.request_id, hint);
            }
            refuse_with_hint(connection, ctx, Some(app), reason, hint.as_deref()).await
        }
        Route::Redirect { status, location } => {
            let mut headers = HeaderBlock::default();
            if headers.add(b"Location", &location).is_err() {
                return refuse(connection, ctx, Some(app), Reason::BadPath).await;
            }
            respond(connection, ctx, Some(app), status, headers, &error_page::of_status(status, ""))
                .await
        }
        Route::Status(status) => {
            let page = error_page::of_status(status, "");
            respond(connection, ctx, Some(app), status, HeaderBlock::default(), &page).await
        }
    }
}

/// What responds to a route, unless the page cache does.
fn kind_of(app: &App, route: &Route) -> Kind {
    match route {
        Route::File(_) => Kind::File,
        Route::Script(_) => app.kind(),
        Route::Upstream(_) => Kind::Proxy,
        Route::Page(_) => Kind::Composed,
        Route::Refuse(..) | Route::Redirect { .. } | Route::Status(_) => Kind::Other,
    }
}

/// Serves a request by its origin, or by the page cache in front of it.
async fn serve_dynamic(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    origin: Origin,
) -> ResponseSummary {
    match &app.page_cache {
        Some(cache) => page_cache::respond(connection, ctx, app, cache, origin).await,
        None => origin::respond(connection, ctx, app, &origin).await,
    }
}

#[cfg(test)]
mod tests;
