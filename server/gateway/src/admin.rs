//! The admin socket: the endpoints of `outboard_admin_api`, metrics and the key-value store, as
//! plain HTTP over a Unix socket.
//!
//! Called by connections of the admin listener and of the metrics listener. Invariant: the metrics
//! listener serves only the metrics, since its address may be open to a network.

use crate::admin_reply::{self, Refusal, Response, json, render};
use crate::admission;
use crate::certificates as obtained;
use crate::gateway::Gateway;
use crate::{
    configuration, dashboard, entity_api, metrics, opcache, page_cache, snapshot_admin, status,
    upstream_admin,
};
use outboard_admin_api::{
    Endpoint, Method, bans, cache, certificates, config, dashboard as dashboard_api, kv,
    opcache as opcache_api, processes, server, snapshot, upstreams,
};
use outboard_http_server::{Request, ResponseWriter, Role, Written};
use outboard_http1::Method as HttpMethod;
use std::rc::Rc;

/// Responds to a request of the admin or metrics listener.
pub(crate) async fn respond(
    gateway: &Rc<Gateway>,
    request: &mut Request,
    response: &mut ResponseWriter,
) -> Written {
    let path = request.encoded_path().to_vec();
    let query = String::from_utf8_lossy(request.query().unwrap_or_default()).into_owned();
    let method = match request.method() {
        HttpMethod::Get | HttpMethod::Head => Some(Method::Get),
        HttpMethod::Post => Some(Method::Post),
        _ => None,
    };
    let format = metrics::Format::accepted(request.header(b"accept").unwrap_or_default());
    let is_admin = request.client.listener.role == Role::Admin;
    if is_admin {
        if let Some(refused) = dashboard::try_refuse_other_sites(request, response).await {
            return refused;
        }
        if let Some(sent) = dashboard::try_send_asset(response, &path).await {
            return sent;
        }
        if let Some(sent) = entity_api::admin::try_handle(gateway, request, response, &path).await {
            return sent;
        }
    }
    let (status, kind, body) = match (method, std::str::from_utf8(&path)) {
        (Some(Method::Get), Ok("/metrics")) => {
            (200, format.content_type(), metrics::of(gateway, format).await)
        }
        (Some(method), Ok(path)) if is_admin => reply(gateway, method, path, &query).await,
        _ => unknown(),
    };
    admin_reply::send(response, status, kind, &body).await
}

/// The reply of an endpoint that needs no body of the request.
async fn reply(gateway: &Rc<Gateway>, method: Method, path: &str, query: &str) -> Response {
    type StatusGet = outboard_admin_api::status::Get;
    match (method, path) {
        (StatusGet::METHOD, StatusGet::PATH) => {
            call(query, async |_: StatusGet| Ok(status::of(gateway).await)).await
        }
        (dashboard_api::Get::METHOD, dashboard_api::Get::PATH) => {
            call(query, async |get: dashboard_api::Get| dashboard::state(gateway, &get).await).await
        }
        (config::Get::METHOD, config::Get::PATH) => {
            call(query, async |_: config::Get| Ok(configuration::of(&gateway.generation().config)))
                .await
        }
        (opcache_api::Get::METHOD, opcache_api::Get::PATH) => {
            call(query, async |_: opcache_api::Get| Ok(opcache::status(gateway).await)).await
        }
        (snapshot::Retire::METHOD, snapshot::Retire::PATH) => {
            let retire = async |retire: snapshot::Retire| snapshot_admin::retire(gateway, &retire);
            call(query, retire).await
        }
        (processes::Restart::METHOD, processes::Restart::PATH) => {
            call(query, async |restart: processes::Restart| restart_processes(gateway, &restart))
                .await
        }
        (certificates::Get::METHOD, certificates::Get::PATH) => {
            call(query, async |_: certificates::Get| Ok(obtained::status(gateway))).await
        }
        _ => control_reply(gateway, method, path, query).await,
    }
}

/// The reply of an endpoint of the server as a whole.
async fn control_reply(gateway: &Rc<Gateway>, method: Method, path: &str, query: &str) -> Response {
    match (method, path) {
        (server::Reload::METHOD, server::Reload::PATH) => {
            call(query, async |_: server::Reload| match gateway.control.reload_and_wait().await {
                Ok(generation) => Ok(server::Reloaded { generation }),
                Err(why) => Err(Refusal::new(409, why)),
            })
            .await
        }
        (server::Upgrade::METHOD, server::Upgrade::PATH) => {
            call(query, async |_: server::Upgrade| match gateway.control.upgrade_and_wait().await {
                Ok(pid) => Ok(server::Upgraded { pid }),
                Err(why) => Err(Refusal::new(409, why)),
            })
            .await
        }
        (server::Stop::METHOD, server::Stop::PATH) => {
            gateway.control.stop.set();
            let (_, kind, body) = json(202, &server::Stopping { stopping: true });
            (202, kind, body)
        }
        _ => traffic_reply(gateway, method, path, query).await,
    }
}

/// The reply of an endpoint of clients and upstreams.
async fn traffic_reply(gateway: &Rc<Gateway>, method: Method, path: &str, query: &str) -> Response {
    match (method, path) {
        (bans::List::METHOD, bans::List::PATH) => {
            call(query, async |_: bans::List| Ok(admission::admin::list(gateway))).await
        }
        (bans::Add::METHOD, bans::Add::PATH) => {
            call(query, async |add: bans::Add| admission::admin::ban(gateway, &add).await).await
        }
        (bans::Remove::METHOD, bans::Remove::PATH) => {
            call(query, async |remove: bans::Remove| {
                admission::admin::unban(gateway, &remove).await
            })
            .await
        }
        (upstreams::List::METHOD, upstreams::List::PATH) => {
            call(query, async |_: upstreams::List| Ok(upstream_admin::list(gateway))).await
        }
        (upstreams::Drain::METHOD, upstreams::Drain::PATH) => {
            let drain = async |drain: upstreams::Drain| upstream_admin::drain(gateway, &drain);
            call(query, drain).await
        }
        (upstreams::Enable::METHOD, upstreams::Enable::PATH) => {
            let enable = async |enable: upstreams::Enable| upstream_admin::enable(gateway, &enable);
            call(query, enable).await
        }
        _ => store_reply(gateway, method, path, query).await,
    }
}

/// The reply of an endpoint of the page cache and the key-value store.
async fn store_reply(gateway: &Rc<Gateway>, method: Method, path: &str, query: &str) -> Response {
    match (method, path) {
        (cache::Stats::METHOD, cache::Stats::PATH) => {
            call(query, async |stats: cache::Stats| page_cache::admin::stats(gateway, &stats)).await
        }
        (cache::List::METHOD, cache::List::PATH) => {
            call(query, async |list: cache::List| page_cache::admin::list(gateway, &list)).await
        }
        (cache::Get::METHOD, cache::Get::PATH) => {
            call(query, async |get: cache::Get| page_cache::admin::get(gateway, &get)).await
        }
        (cache::Purge::METHOD, cache::Purge::PATH) => {
            call(query, async |purge: cache::Purge| page_cache::admin::purge(gateway, &purge).await)
                .await
        }
        (cache::Audit::METHOD, cache::Audit::PATH) => {
            call(query, async |audit: cache::Audit| {
                Ok(page_cache::admin::audit(gateway, &audit).await)
            })
            .await
        }
        (kv::Stats::METHOD, kv::Stats::PATH) => {
            call(query, async |stats: kv::Stats| entity_api::admin::stats(gateway, &stats)).await
        }
        (kv::Compact::METHOD, kv::Compact::PATH) => {
            call(query, async |compact: kv::Compact| {
                entity_api::admin::compact(gateway, &compact).await
            })
            .await
        }
        _ => unknown(),
    }
}

fn restart_processes(
    gateway: &Gateway,
    restart: &processes::Restart,
) -> Result<processes::Restarted, Refusal> {
    let (app, process) = (restart.app.as_deref(), restart.process.as_deref());
    match (gateway.processes.restart(app, process), app) {
        (0, Some(app)) => Err(Refusal::new(404, format!("app {app} has no such process"))),
        (instances, _) => Ok(processes::Restarted { instances }),
    }
}

/// Reads the parameters of an endpoint and renders the handler's reply.
async fn call<E: Endpoint>(
    query: &str,
    handler: impl AsyncFnOnce(E) -> Result<E::Reply, Refusal>,
) -> Response {
    let parameters = E::from_query(query).map_err(|error| Refusal::new(400, error));
    let reply = match parameters {
        Ok(parameters) => handler(parameters).await,
        Err(refusal) => Err(refusal),
    };
    render(reply)
}

fn unknown() -> Response {
    render::<()>(Err(Refusal::new(404, "no such admin resource")))
}

#[cfg(test)]
mod tests;
