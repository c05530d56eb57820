//! `X-Sendfile` and `X-Accel-Redirect`: PHP decides, the gateway sends.
//!
//! Invariants: only files below the app's root or its configured sendfile folders are sent,
//! whatever PHP says. What clients may not ask for (`deny`, private names) a script may have sent to
//! them, as behind nginx's `internal`, but not run. Headers that PHP set (type, disposition,
//! cookies) stay; validators and ranges are the file's own.

use super::Origin;
use crate::app::App;
use crate::compose;
use crate::files;
use crate::proxy;
use crate::response_head::{ResponseHead, SendfileOrder};
use crate::route::{self, Proxied, Route, Script};
use outboard_http_server::Connection;
use outboard_http_server::HeaderBlock;
use outboard_log::Level;
use outboard_log::Reason;

use crate::request::{RequestContext, ResponseSummary};
use outboard_http1::normalize_path;
use outboard_reactor::now_ms;
use outboard_static_files::{Entry, Lookup, Root};
use std::rc::Rc;

/// Sends the file that PHP named.
pub(super) async fn answer(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    script: &Script,
    head: ResponseHead,
    order: SendfileOrder,
) -> Result<ResponseSummary, Reason> {
    match find(app, &order) {
        Found::File(entry) => send(connection, ctx, app, head, &entry).await,
        Found::Missing => Err(Reason::NotFound),
        Found::Page(path) if !script.internal => page(connection, ctx, app, &path, head).await,
        Found::Page(_) | Found::Outside => {
            let (SendfileOrder::Disk(path) | SendfileOrder::Accel(path)) = &order;
            let text = format!("cannot send {}", String::from_utf8_lossy(path));
            app.log_text(Level::Error, ctx.request_id, &text);
            Err(Reason::BadSendfile)
        }
    }
}

/// Sends a file under the headers of the script.
async fn send(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    head: ResponseHead,
    entry: &Entry,
) -> Result<ResponseSummary, Reason> {
    let given_type =
        head.headers.lines().find(|(name, _)| name.eq_ignore_ascii_case(b"content-type"));
    let given_type = given_type.map(|(_, value)| value.to_vec());
    let mut plan = files::plan_for(connection, ctx, entry, given_type.as_deref());
    if plan.status == 200 {
        plan.status = head.status;
    }
    let mut headers = head.headers;
    merge(&mut headers, &plan.headers);
    headers.apply(&app.config.headers, app.below_prefix(&connection.buffers().path));
    Ok(files::send(connection, ctx, &plan, &headers.bytes, headers.owns_server).await)
}

/// The plan's lines replace those of PHP with the same name: its Content-Type is PHP's own where
/// that fits the body that is sent.
fn merge(headers: &mut HeaderBlock, plan: &[(&'static str, Vec<u8>)]) {
    for (name, value) in plan {
        headers.remove(name.as_bytes());
        // The plan's values are made from numbers and checked types.
        let _ = headers.add(name.as_bytes(), value);
    }
}

/// What an order leads to.
enum Found {
    File(Rc<Entry>),
    /// Below an allowed folder, but no file.
    Missing,
    /// A path of the app itself, as nginx's internal redirect.
    Page(Vec<u8>),
    Outside,
}

fn find(app: &App, order: &SendfileOrder) -> Found {
    match order {
        SendfileOrder::Disk(path) => {
            let folders = app.sendfile.disk.iter();
            let found = folders.filter_map(|(folder, root)| {
                open(root, path.strip_prefix(folder.as_os_str().as_encoded_bytes())?)
            });
            best(found).unwrap_or(Found::Outside)
        }
        SendfileOrder::Accel(path) => {
            let prefixes = app.sendfile.accel.iter();
            let found = prefixes.filter_map(|(prefix, root)| {
                open(root, path.strip_prefix(prefix.trim_end_matches('/').as_bytes())?)
            });
            best(found).unwrap_or_else(|| Found::Page(path.clone()))
        }
    }
}

/// A file in any of the folders, or else that one of them was meant.
fn best(found: impl Iterator<Item = Found>) -> Option<Found> {
    found.reduce(|first, other| if matches!(first, Found::File(_)) { first } else { other })
}

fn open(root: &Root, below: &[u8]) -> Option<Found> {
    // `/srv/files-x` is not below `/srv/files`.
    if !below.starts_with(b"/") {
        return None;
    }
    let mut path = Vec::new();
    if normalize_path(below, &mut path).is_err() {
        return Some(Found::Outside);
    }
    Some(match root.lookup(&path, now_ms()) {
        Lookup::File(entry) => Found::File(entry),
        _ => Found::Missing,
    })
}

/// Answers with another page of the app.
async fn page(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    target: &[u8],
    said: ResponseHead,
) -> Result<ResponseSummary, Reason> {
    let (path, query) = match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    };
    let mut normalised = Vec::new();
    normalize_path(path, &mut normalised).map_err(|_| Reason::BadSendfile)?;
    if !app.has_path(&normalised) {
        return Err(Reason::BadSendfile);
    }
    let below = app.below_prefix(&normalised);
    if let Some(number) = app.config.proxies.iter().position(|to| to.path.matches(below)) {
        let proxied = Proxied { number, rewritten: Some(target.to_vec()), is_ordered: true };
        return Box::pin(fetched(connection, ctx, app, &proxied, &said)).await;
    }
    match route::find(app, &normalised, query, now_ms()) {
        Route::File(entry) => send(connection, ctx, app, said, &entry).await,
        Route::Script(mut script) => {
            script.internal = true;
            script.query.get_or_insert_with(|| query.unwrap_or_default().to_vec());
            Ok(Box::pin(super::answer(connection, ctx, app, &Origin::Script(script))).await)
        }
        Route::Page(mut composed) => {
            composed.query.get_or_insert_with(|| query.unwrap_or_default().to_vec());
            Ok(compose::answer(connection, ctx, app, composed).await)
        }
        Route::Refuse(reason @ (Reason::Denied | Reason::PrivateFile), _) => {
            match app.files.lookup(below, now_ms()) {
                Lookup::File(entry) | Lookup::Private(entry) => {
                    send(connection, ctx, app, said, &entry).await
                }
                _ => Err(reason),
            }
        }
        Route::Refuse(reason, _) => Err(reason),
        // What the client sent is not what the script wants sent there.
        Route::Redirect { .. } | Route::Status(_) | Route::Upstream(_) => Err(Reason::BadSendfile),
    }
}

/// Fields of the script's own answer that stay when another server's is sent for it.
const STAYING: [&[u8]; 4] = [b"cache-control", b"content-disposition", b"expires", b"set-cookie"];

/// Answers with what another server has.
async fn fetched(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    proxied: &Proxied,
    said: &ResponseHead,
) -> Result<ResponseSummary, Reason> {
    let mut begun = proxy::begin(connection, ctx, app, proxied, None).await?;
    if begun.head.status < 300 {
        let stays = |name: &[u8]| STAYING.iter().any(|one| name.eq_ignore_ascii_case(one));
        let staying: Vec<_> = said.headers.lines().filter(|(name, _)| stays(name)).collect();
        staying.iter().for_each(|(name, _)| begun.head.headers.remove(name));
        for (name, value) in staying {
            // It was checked when the script said it.
            let _ = begun.head.headers.add(name, value);
        }
    }
    Ok(begun.send(connection, ctx, app).await)
}
