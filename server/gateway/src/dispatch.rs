//! Dispatches requests to the handler of their route. It implements the server's [`Service`].
//!
//! Invariant: each request has exactly one response, or its connection is broken, and exactly one
//! access log line and one count.

mod server;

use crate::access_log;
use crate::app::App;
use crate::gateway::Gateway;
use crate::generation::Generation;
use crate::maintenance::Maintenance;
use crate::origin::Origin;
use crate::proxy::websocket;
use crate::refusal::{Outcome, Refusal};
use crate::request::{Request, ResponseSummary, respond, respond_with, respond_with_failure};
use crate::route::{self, Findings, Readings, Route};
use crate::{
    admin, admin_admission, admission, cold_files, compose, conditions, dashboard, debugging,
    direct_accounts, files, gathering, listing, observe, origin, page_cache,
};
use outboard_http_server::direct::DirectAnswer;
use outboard_http_server::{
    HeaderBlock, ListenerContext, MovedConnection, Request as HttpRequest, ResponseWriter, Role,
    ServerContext, Service, Upgraded, Written, error_page,
};
use outboard_log::{Level, Reason, Wall};
use outboard_reactor::{Stream, now_ms};
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

impl Service for Gateway {
    fn context(&self) -> &Rc<ServerContext> {
        &self.server
    }

    async fn respond(
        self: &Rc<Self>,
        request: &mut HttpRequest,
        response: &mut ResponseWriter,
        started: Wall,
    ) -> Written {
        gathering::look(self);
        match request.client.listener.role {
            Role::Apps | Role::Entities => {
                respond_to_client(self, request, response, started).await
            }
            // Its connections are passed to `serve_stream`.
            Role::Dashboard => dashboard::respond(self, request, response).await,
            Role::Admin | Role::Metrics | Role::Streams => {
                admin::respond(self, request, response).await
            }
        }
    }

    async fn serve_stream(self: &Rc<Self>, stream: Upgraded) {
        let client = stream.client().clone();
        let Some(port) = &client.listener.stream else { return };
        if let Some(server) = self.generation().streams(&port.app) {
            outboard_stream_server::serve(server, port.port, stream).await;
        }
    }

    async fn refuse_head(
        self: &Rc<Self>,
        request: &HttpRequest,
        response: &mut ResponseWriter,
        started: Wall,
        (reason, detail): (Reason, &str),
    ) -> Written {
        let text = format!("client={} {detail}", request.client.peer.text);
        self.log_refusal(None, 0, reason, &text);
        self.server.count_refusal(reason);
        self.server.count_response(reason.status(), 0);
        let generation = self.generation();
        let names_reason = generation.config.names_reasons;
        let mut headers = error_page::headers(reason, names_reason);
        generation.apply_rules(&mut headers, reason.status());
        let page = error_page::of_reason(reason, names_reason);
        let written = response.respond(reason.status(), &headers, page.as_bytes()).await;
        access_log::write_refused_head(&generation, request, started, reason);
        written
    }

    fn answered_directly(self: &Rc<Self>, request: &mut HttpRequest, answer: DirectAnswer) -> bool {
        direct_accounts::record(self, request, answer)
    }

    fn shard_after_response(&self, seen: &Cell<u64>) -> Option<usize> {
        self.spread.after_response(seen).filter(|shard| self.shards.knows(*shard))
    }

    fn shard_to_stay(&self) -> Option<usize> {
        self.spread.to_stay().filter(|shard| self.shards.knows(*shard))
    }

    fn send_to(self: &Rc<Self>, shard: usize, connection: MovedConnection) {
        gathering::send(self, shard, connection);
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
    http: &mut HttpRequest,
    response: &mut ResponseWriter,
    started: Wall,
) -> Written {
    let mut request = Request::new(gateway, http, started);
    if let Some(development) = gateway.development() {
        development.settle().await;
    }
    request.join_cookies();
    let generation = gateway.generation();
    request.trace = generation.tracer.as_ref().map(|tracer| tracer.begin(&request));
    let (mut app, request) = (None, &mut request);
    let summary = match dispatch(request, response, &generation, &mut app).await {
        Ok(summary) => summary,
        // Boxed, so that it does not enlarge the task of every request.
        Err(refusal) => Box::pin(refusal.respond(request, response, app.as_deref())).await,
    };
    if let Some(reason) = response.take_lost() {
        gateway.log_refusal(app.as_deref(), request.request_id, reason, &request.describe());
        gateway.server.count_refusal(reason);
    }
    gateway.server.count_response(summary.status, summary.body_bytes);
    let (first_byte, app, now) = (response.head_written.take(), app.as_deref(), Wall::now());
    observe::end(request, first_byte, app, &generation, &summary, now);
    if let Some((tracer, scope)) = generation.tracer.as_ref().zip(request.trace.take()) {
        tracer.reuse(scope);
    }
    summary.written
}

/// Responds to a request; `found` becomes the app that it is for.
async fn dispatch(
    request: &mut Request<'_>,
    response: &mut ResponseWriter,
    generation: &Generation,
    found: &mut Option<Rc<App>>,
) -> Outcome {
    if let Some(summary) = server::respond(request, response, generation).await? {
        return Ok(summary);
    }
    let app = generation.app(request.host(), request.path()).ok_or(Reason::NoApp)?;
    *found = Some(app.clone());
    if app.config.requires_client_certificate && !request.client.peer.has_valid_certificate() {
        return Err(Reason::ClientCertificate.into());
    }
    let maintenance = app.maintenance.as_ref();
    let maintenance = maintenance.filter(|own| own.refuses(request.client_ip()));
    if let Some(own) = maintenance
        && !own.is_asset(app.below_prefix(request.path()))
    {
        return Err(in_maintenance(own));
    }
    match find_route(request, response, generation, &app).await? {
        Found::Route(route) => match maintenance.filter(|_| !matches!(route, Route::File(_))) {
            Some(own) => Err(in_maintenance(own)),
            None => dispatch_route(request, response, &app, route).await,
        },
        Found::Responded(summary) => Ok(summary),
    }
}

fn in_maintenance(own: &Maintenance) -> Refusal {
    let (fields, page) = own.response();
    Refusal::with_page(Reason::Maintenance, fields, page)
}

/// A route, or that access rules have responded.
enum Found {
    Route(Route),
    Responded(ResponseSummary),
}

/// Finds the route of a request that satisfies the access rules.
async fn find_route(
    request: &mut Request<'_>,
    response: &mut ResponseWriter,
    generation: &Generation,
    app: &Rc<App>,
) -> Result<Found, Refusal> {
    admission::remove_identity(request, app);
    if !app.config.conditions.is_empty() {
        let countries = generation.config.countries.as_ref();
        request.conditions.set(conditions::holding(request, app, countries));
    }
    let conditions = request.conditions.get();
    let requested = app.config.access.of_request(app.below_prefix(request.path()), conditions);
    if let Some(summary) = admission::admit(request, response, app, requested).await? {
        return Ok(Found::Responded(summary));
    }
    let findings = Findings::new(requested, conditions);
    let target = (request.path(), request.query());
    let route = match route::find(app, target, now_ms(), (&[], &findings)) {
        Ok(route) => Ok(route),
        Err(cold) => {
            // Boxed, so that this rare wait does not enlarge the task of every request.
            Box::pin(cold_files::find_route(&request.client, app, target, cold, &findings)).await
        }
    };
    let target = request.path_and_query();
    let readings = Readings { generation, app, host: request.host(), target, findings: &findings };
    let route = route.map(|route| readings.check(route));
    let further = findings.rules.get().without(requested);
    request.is_conditional.set(findings.is_conditional.get());
    if !further.is_empty()
        && let Some(summary) = admission::admit(request, response, app, further).await?
    {
        return Ok(Found::Responded(summary));
    }
    Ok(Found::Route(route?))
}

async fn dispatch_route(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    route: Route,
) -> Outcome {
    if let Some(cache) = &app.page_cache
        && page_cache::is_purge(request)
    {
        return page_cache::purge(request, response, cache).await;
    }
    if route.needs_php()
        && let Some(text) = request.gateway.development().and_then(|found| found.failure())
    {
        return Ok(Box::pin(respond_with_failure(request, response, 500, &text)).await);
    }
    if !route.may_tunnel() && websocket::requests_tunnel(request) {
        return Err(Reason::NotImplemented.into());
    }
    request.is_debugged.set(route.needs_php() && debugging::is_wanted(request, app));
    let seat = || debugging::seat(request, app).unwrap_or(&app.seat);
    let _claim = route.needs_php().then(|| seat().expect_request());
    request.kind.set(route.kind(app));
    match route {
        Route::File(entry) => files::respond(request, response, app, &entry).await,
        Route::Listing(path) => Box::pin(listing::respond(request, response, app, &path)).await,
        Route::Script(script) => {
            serve_dynamic(request, response, app, &Origin::Script(script)).await
        }
        Route::Upstream(proxied) => {
            match Box::pin(websocket::try_handle(request, response, app, &proxied)).await? {
                Some(summary) => Ok(summary),
                None if websocket::requests_tunnel(request) => Err(Reason::NotImplemented.into()),
                None => serve_dynamic(request, response, app, &Origin::Upstream(proxied)).await,
            }
        }
        Route::Page(composed) => Box::pin(compose::respond(request, response, app, composed)).await,
        Route::Refuse(reason, hint) => {
            if let Some(hint) = &hint {
                app.log_text(Level::Info, request.request_id, hint);
            }
            Err(Refusal::with_hint(reason, hint.map(|hint| hint.to_string())))
        }
        Route::Redirect { status, location } => {
            let mut headers = HeaderBlock::default();
            headers.add(b"Location", &location).map_err(|_| Reason::BadPath)?;
            let page = error_page::of_status(status, "");
            Ok(respond(request, response, Some(app), status, headers, &page).await)
        }
        Route::Status(status, text) => {
            let sent = respond_with_status(request, response, app, status, text.as_deref());
            Ok(Box::pin(sent).await)
        }
    }
}

/// The response of a rewrite rule.
async fn respond_with_status(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &App,
    status: u16,
    text: Option<&str>,
) -> ResponseSummary {
    let Some(text) = text else {
        let (headers, page) = (HeaderBlock::default(), error_page::of_status(status, ""));
        return respond(request, response, Some(app), status, headers, &page).await;
    };
    let headers = HeaderBlock::constant(&[("Content-Type", "text/plain; charset=utf-8")]);
    respond_with(request, response, Some(app), status, headers, text.as_bytes()).await
}

/// Serves a request by its origin, or by the page cache in front of it.
async fn serve_dynamic(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    origin: &Origin,
) -> Outcome {
    match &app.page_cache {
        Some(cache) => page_cache::respond(request, response, app, cache, origin).await,
        None => origin::respond(request, response, app, origin).await,
    }
}

#[cfg(test)]
mod tests;
