//! `X-Sendfile` and `X-Accel-Redirect`: the gateway sends a file that PHP names.
//!
//! Called by [`super`]. Invariants: only files below the app's root or its configured sendfile
//! directories are sent. A script may send files that clients may not request (`deny`, private
//! names), as with nginx's `internal`, but not run them. `X-Accel-Redirect` is a URL's path, decoded once, and
//! `X-Sendfile` a path on disk, which is not decoded; neither has a `..`, which may be the name of a file that a
//! client has chosen. Headers of the script (type, disposition,
//! cookies) remain; validators and ranges are those of the file.

use super::Origin;
use crate::app::App;
use crate::cold_files;
use crate::compose;
use crate::files;
use crate::proxy;
use crate::refusal::Outcome;
use crate::request::Request;
use crate::response_head::{ResponseHead, SendfileOrder};
use crate::route::{self, Findings, Proxied, Route, Script};
use outboard_config::RuleSet;
use outboard_http_server::{HeaderBlock, ResponseWriter};
use outboard_http1::{has_parent_segment, normalize_path};
use outboard_log::{Level, Reason};
use outboard_reactor::now_ms;
use outboard_static_files::{Entry, Lookup, Root};
use std::rc::Rc;

/// Sends the file that PHP named.
pub(super) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    script: &Script,
    head: ResponseHead,
    order: SendfileOrder,
) -> Outcome {
    match request.client.unless_gone(find(app, &order)).await? {
        Found::File(entry) => send(request, response, app, head, &entry).await,
        Found::Missing => Err(Reason::NotFound.into()),
        Found::Page(path) if !script.internal => page(request, response, app, &path, head).await,
        Found::Page(_) | Found::Outside => {
            let (SendfileOrder::Disk(path) | SendfileOrder::Accel(path)) = &order;
            let text = format!("cannot send {}", String::from_utf8_lossy(path));
            app.log_text(Level::Error, request.request_id, &text);
            Err(Reason::BadSendfile.into())
        }
    }
}

/// Sends a file under the headers of the script.
async fn send(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    head: ResponseHead,
    entry: &Entry,
) -> Outcome {
    let content_type =
        head.headers.lines().find(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
    let content_type = content_type.map(|(_, value)| value.to_vec());
    let mut plan = files::plan_for(request, entry, content_type.as_deref());
    if plan.status == 200 {
        plan.status = head.status;
    }
    let mut headers = head.headers;
    merge(&mut headers, &plan.headers);
    request.apply_rules(app, &mut headers, plan.status);
    Ok(files::send(response, &plan, &headers.bytes, headers.owns_server).await)
}

/// The plan's lines replace those of PHP with the same name. Its Content-Type is that of PHP unless
/// the body is multipart.
fn merge(headers: &mut HeaderBlock, plan: &[(&'static str, Vec<u8>)]) {
    for (name, value) in plan {
        headers.remove(name.as_bytes());
        // The plan's values are numbers and checked types.
        let _ = headers.add(name.as_bytes(), value);
    }
}

/// The target of a header.
enum Found {
    File(Rc<Entry>),
    /// Below an allowed directory, but not a file.
    Missing,
    /// A path of the app, as in nginx's internal redirects.
    Page(Vec<u8>),
    Outside,
}

async fn find(app: &App, order: &SendfileOrder) -> Found {
    match order {
        SendfileOrder::Accel(target) if has_parent_segment(path_of(target)) => Found::Outside,
        SendfileOrder::Disk(path) => {
            let directories = app.sendfile.disk.iter().filter_map(|(directory, root)| {
                let below = path.strip_prefix(directory.as_os_str().as_encoded_bytes())?;
                Some((root, on_disk(below)?))
            });
            best(directories).await.unwrap_or(Found::Outside)
        }
        SendfileOrder::Accel(target) => {
            let path = path_of(target);
            let prefixes = app.sendfile.accel.iter().filter_map(|(prefix, root)| {
                let below = path.strip_prefix(prefix.trim_end_matches('/').as_bytes())?;
                Some((root, in_url(below)?))
            });
            best(prefixes).await.unwrap_or_else(|| Found::Page(target.clone()))
        }
    }
}

/// A file in any of the directories; otherwise the last result.
async fn best<'a>(directories: impl Iterator<Item = (&'a Root, Below)>) -> Option<Found> {
    let mut last = None;
    for (root, below) in directories {
        let Ok(path) = below else {
            last = Some(Found::Outside);
            continue;
        };
        last = Some(match cold_files::lookup(root, &path).await {
            Lookup::File(entry) => return Some(Found::File(entry)),
            _ => Found::Missing,
        });
    }
    last
}

/// A path below a directory, or that it leads out of it.
type Below = Result<Vec<u8>, ()>;

/// `/srv/files-x` is not below `/srv/files`.
fn is_below(rest: &[u8]) -> bool {
    rest.starts_with(b"/")
}

fn in_url(rest: &[u8]) -> Option<Below> {
    let mut path = Vec::new();
    is_below(rest).then(|| normalize_path(rest, &mut path).map(|()| path).map_err(drop))
}

/// Every byte but the slash belongs to a name.
fn on_disk(rest: &[u8]) -> Option<Below> {
    let names = rest.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let path = |path: Vec<u8>, name: &[u8]| match name {
        b".." => Err(()),
        name => Ok([&path[..], b"/", name].concat()),
    };
    is_below(rest).then(|| names.into_iter().try_fold(Vec::new(), path))
}

/// The path of a URL's path and query.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|&byte| byte == b'?').next().unwrap_or_default()
}

/// Responds with another page of the app.
async fn page(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    target: &[u8],
    head: ResponseHead,
) -> Outcome {
    let (path, query) = match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    };
    let mut normalized = Vec::new();
    normalize_path(path, &mut normalized).map_err(|_| Reason::BadSendfile)?;
    if !app.has_path(&normalized) {
        return Err(Reason::BadSendfile.into());
    }
    let below = app.below_prefix(&normalized);
    if let Some(number) = app.config.proxies.iter().position(|to| to.path.matches(below)) {
        let proxied = Proxied { number, rewritten: Some(target.to_vec()), is_internal: true };
        return Box::pin(fetched(request, response, app, &proxied, &head)).await;
    }
    // A script has led here: the access rules were those of its request.
    let findings = Findings::new(RuleSet::default(), request.conditions.get());
    let target = (&normalized[..], query);
    let route = match route::find(app, target, now_ms(), (&[], &findings)) {
        Ok(route) => route,
        Err(cold) => cold_files::find_route(&request.client, app, target, cold, &findings).await?,
    };
    match route {
        Route::File(entry) => send(request, response, app, head, &entry).await,
        Route::Script(mut script) => {
            script.internal = true;
            script.query.get_or_insert_with(|| query.unwrap_or_default().to_vec());
            Box::pin(super::respond(request, response, app, &Origin::Script(script))).await
        }
        Route::Page(mut composed) => {
            composed.query.get_or_insert_with(|| query.unwrap_or_default().to_vec());
            compose::respond(request, response, app, composed).await
        }
        Route::Refuse(reason @ (Reason::Denied | Reason::PrivateFile), _) => {
            match cold_files::lookup(&app.files, below).await {
                Lookup::File(entry) | Lookup::Private(entry) | Lookup::Restricted(entry) => {
                    send(request, response, app, head, &entry).await
                }
                _ => Err(reason.into()),
            }
        }
        Route::Refuse(reason, _) => Err(reason.into()),
        // A script cannot send the client's request elsewhere.
        Route::Listing(_) | Route::Redirect { .. } | Route::Status(..) | Route::Upstream(_) => {
            Err(Reason::BadSendfile.into())
        }
    }
}

/// Headers of the script that replace those of the other server's response.
const PRESERVED: [&[u8]; 4] = [b"cache-control", b"content-disposition", b"expires", b"set-cookie"];

/// Responds with the response of another server.
async fn fetched(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    proxied: &Proxied,
    script_head: &ResponseHead,
) -> Outcome {
    let mut started = proxy::start(request, response, app, proxied, None).await?;
    if started.head.status < 300 {
        let is_preserved = |name: &[u8]| PRESERVED.iter().any(|one| name.eq_ignore_ascii_case(one));
        let preserved: Vec<_> =
            script_head.headers.lines().filter(|(name, _)| is_preserved(name)).collect();
        preserved.iter().for_each(|(name, _)| started.head.headers.remove(name));
        for (name, value) in preserved {
            // It was checked when the script's head was read.
            let _ = started.head.headers.add(name, value);
        }
    }
    Ok(started.send(request, response, app).await)
}

#[cfg(test)]
mod tests;
