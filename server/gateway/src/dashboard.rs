//! The dashboard: its page, and what it shows.
//!
//! Called by [`crate::admin`]. Invariants: a request of another site's page gets nothing, whatever the name by
//! which the browser has found this server; the page has no scripts, styles or data but the server's own.

mod login;
mod recorder;

use crate::admin_reply::{self, Refusal};
use crate::gateway::Gateway;
use crate::{admission, certificates, page_cache, status};
use outboard_admin_api::Endpoint;
use outboard_admin_api::cache::Stats;
use outboard_admin_api::dashboard::{Dashboard, Get, PhpError, SlowRequest};
use outboard_config::LogTarget;
use outboard_dashboard::{Asset, HEADERS, Paths, Source, asset};
use outboard_http_server::{HeaderBlock, Request, ResponseWriter, Written};
use outboard_http1::Method;
use outboard_log::Wall;
use outboard_reactor::now_ms;
use outboard_supervisor::cpu;
use outboard_supervisor::memory::machine_bytes;
pub(crate) use recorder::record_regularly;
use std::cmp::Reverse;
use std::rc::Rc;

/// The responses that are put together at the same time.
const VIEWERS_MAX: usize = 16;
/// The bans that are listed.
const BANS_MAX: usize = 100;
/// The slow requests of all threads that are listed.
const SLOW_MAX: usize = 32;
/// The errors of all threads that are listed.
const ERRORS_MAX: usize = 32;

/// Refuses a browser's request for another site's page; `None` for programs and for this server's own page.
pub(crate) async fn try_refuse_other_sites(
    request: &Request,
    response: &mut ResponseWriter,
) -> Option<Written> {
    let source = source(request);
    if !source.is_browser() || source.is_own(&[]) {
        return None;
    }
    let refusal = Refusal::new(403, "the request is of a page of another site");
    let (status, kind, body) = admin_reply::render::<()>(Err(refusal));
    Some(admin_reply::send(response, status, kind, &body).await)
}

fn source(request: &Request) -> Source<'_> {
    let field = |name: &[u8]| request.header_if_alone(name);
    Source {
        host: request.named_host().unwrap_or_default(),
        origin: field(b"origin"),
        fetch_site: field(b"sec-fetch-site"),
        fetch_mode: field(b"sec-fetch-mode"),
        is_read: matches!(request.method(), Method::Get | Method::Head),
    }
}

/// Responds on the dashboard's own address.
pub(crate) async fn respond(
    gateway: &Rc<Gateway>,
    request: &Request,
    response: &mut ResponseWriter,
) -> Written {
    if let Err(refused) = login::check(gateway, request).await {
        return refused.send(response).await;
    }
    let path = request.encoded_path();
    if let Some(sent) = try_send_asset(response, path).await {
        return sent;
    }
    let query = request.query().unwrap_or_default();
    let get = Get::from_query(&String::from_utf8_lossy(query));
    let reply = match (path == Get::PATH.as_bytes() && request.method() == Method::Get, get) {
        (false, _) => Err(Refusal::new(404, "no such resource of the dashboard")),
        (true, Ok(get)) => state(gateway, &get).await,
        (true, Err(error)) => Err(Refusal::new(400, error)),
    };
    let (status, kind, body) = admin_reply::render(reply);
    send(response, (status, kind, HeaderBlock::default()), &body).await
}

/// Sends a file of the page.
pub(crate) async fn try_send_asset(response: &mut ResponseWriter, path: &[u8]) -> Option<Written> {
    let is_read = matches!(response.request.method, Method::Get | Method::Head);
    let Asset { content_type, bytes } =
        asset(std::str::from_utf8(path).ok()?).filter(|_| is_read)?;
    Some(send(response, (200, content_type, HeaderBlock::default()), bytes).await)
}

/// Sends a response with the fields of the page, in addition to own ones.
async fn send(
    response: &mut ResponseWriter,
    (status, content_type, mut headers): (u16, &str, HeaderBlock),
    body: &[u8],
) -> Written {
    for (name, value) in HEADERS.iter().chain(&[("Content-Type", content_type)]) {
        headers.add(name.as_bytes(), value.as_bytes()).expect("a constant");
    }
    response.respond(status, &headers, body).await
}

/// Everything that the page shows. Called on the lead's thread.
///
/// # Errors
/// Too many viewers are waiting for theirs.
pub(crate) async fn state(gateway: &Rc<Gateway>, get: &Get) -> Result<Dashboard, Refusal> {
    let _viewer = gateway.viewers.clone();
    if Rc::strong_count(&gateway.viewers) > 1 + VIEWERS_MAX {
        return Err(Refusal::new(503, "too many dashboards are open"));
    }
    let status = status::of(gateway).await;
    let others = gateway.shards.on_followers(async |gateway| watch(&gateway)).await;
    let Watched { mut paths, mut slow, mut errors } = watch(gateway);
    for other in others {
        paths.extend(other.paths);
        slow.extend(other.slow);
        errors.extend(other.errors);
    }
    errors.sort_by_key(|error| Reverse(error.at_ms));
    errors.truncate(ERRORS_MAX);
    slow.sort_by_key(|request| Reverse(request.at_ms));
    slow.truncate(SLOW_MAX);
    let caches = page_cache::admin::stats(gateway, &Stats::default()).ok();
    let mut bans = admission::admin::list(gateway).bans;
    let banned = bans.len();
    bans.truncate(BANS_MAX);
    let history = gateway.history.borrow();
    Ok(Dashboard {
        now_ms: Wall::now().unix_us / 1_000,
        started_ms: gateway.started.unix_us / 1_000,
        host: host_name(),
        cores: u32::try_from(cpu::cores()).unwrap_or(u32::MAX),
        machine_bytes: machine_bytes().unwrap_or(0),
        status,
        history: history.since(get.since_ms),
        apps: history.apps(),
        app_history: history.of_app_since(&get.app, get.since_ms),
        loads: history.loads(),
        errors,
        slow,
        slow_after_ms: slow_after_ms(gateway),
        paths: Paths::sum(paths),
        caches: caches.map(|caches| caches.apps).unwrap_or_default(),
        certificates: certificates::status(gateway).certificates,
        bans,
        banned,
    })
}

/// The name of the machine.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What a thread has counted.
struct Watched {
    paths: Vec<outboard_admin_api::dashboard::Path>,
    slow: Vec<SlowRequest>,
    errors: Vec<PhpError>,
}

fn watch(gateway: &Gateway) -> Watched {
    let generation = gateway.generation();
    // All pools of the thread share them.
    let recent = generation.pools().next().map(|pool| pool.recent()).unwrap_or_default();
    let mut slow = recent.slow.list();
    slow.extend(gateway.slow_proxied.list());
    Watched { paths: gateway.paths.watch(now_ms()), slow, errors: recent.errors.list() }
}

fn slow_after_ms(gateway: &Gateway) -> Option<u64> {
    let generation = gateway.generation();
    let logs = generation.config.apps.iter().map(|app| &app.log.slow);
    let is_on = logs.filter(|slow| slow.path != LogTarget::Off);
    is_on.map(|slow| slow.threshold_ms).min()
}

#[cfg(test)]
mod tests;
