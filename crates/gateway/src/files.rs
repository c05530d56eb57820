//! The handler of files: static ones, and those that a script names.
//!
//! Called by [`crate::dispatch`]. `outboard_static_files::plan_as` plans the response; it is
//! written here, bodies in memory in one write with the head, large ones by `sendfile(2)`. A file that the
//! client would take compressed is sent as it is, and compressed for later requests.

use crate::app::App;
use crate::request::{RequestContext, ResponseSummary, refuse};
use outboard_development::tag;
use outboard_http_semantics::Conditions;
use outboard_http_server::{Connection, Framing, HeadFacts, HeaderBlock, Written};
use outboard_http1::Method;
use outboard_log::Reason;
use outboard_static_files::{Entry, Headers, Part, Plan, plan_as};
use std::borrow::Cow;
use std::rc::Rc;

/// Responds with a static file.
pub(crate) async fn respond(
    connection: &mut Connection,
    ctx: &RequestContext,
    app: &Rc<App>,
    entry: &Rc<Entry>,
) -> ResponseSummary {
    if !ctx.is_read() {
        return refuse(connection, ctx, Some(app), Reason::MethodNotAllowed).await;
    }
    let mut plan = plan_for(connection, ctx, entry, None);
    if let Some(coding) = plan.missing {
        app.file_compressor.push(entry, coding);
    }
    tag::append_to_file(ctx.gateway.development().as_deref(), &mut plan);
    let headers = match block(connection, app, &plan.headers, plan.status) {
        Some(headers) => headers,
        None => return refuse(connection, ctx, Some(app), Reason::Internal).await,
    };
    let (lines, own_server) = headers;
    send(connection, ctx, &plan, &lines, own_server).await
}

/// The plan's header lines under the app's rules, and whether these set Server; `None` if one is
/// invalid, which the plan rules out.
fn block<'a>(
    connection: &mut Connection,
    app: &App,
    planned: &'a Headers,
    status: u16,
) -> Option<(Cow<'a, [u8]>, bool)> {
    match planned {
        Headers::Shared { rendered, .. } if app.config.headers.is_empty() => {
            Some((Cow::Borrowed(rendered), false))
        }
        lines => {
            let mut headers = HeaderBlock::default();
            for (name, value) in lines.iter() {
                headers.add(name.as_bytes(), value).ok()?;
            }
            let path = app.below_prefix(&connection.buffers().path);
            headers.apply(&app.config.headers, path, status);
            Some((Cow::Owned(headers.bytes), headers.owns_server))
        }
    }
}

/// The plan for an entry under the conditions of the current request.
pub(crate) fn plan_for(
    connection: &mut Connection,
    ctx: &RequestContext,
    entry: &Entry,
    content_type: Option<&[u8]>,
) -> Plan {
    let buffers = connection.buffers();
    let (head, input) = (&buffers.head, &buffers.input);
    let header = |name: &[u8]| head.header(input, name);
    let conditions = Conditions {
        is_head: ctx.request.method == Method::Head,
        if_match: header(b"if-match"),
        if_none_match: header(b"if-none-match"),
        if_modified_since: header(b"if-modified-since"),
        if_unmodified_since: header(b"if-unmodified-since"),
        range: header(b"range"),
        if_range: header(b"if-range"),
    };
    plan_as(entry, header(b"accept-encoding"), &conditions, content_type)
}

/// Writes a plan with these header lines; `own_server` as in [`HeadFacts`].
pub(crate) async fn send(
    connection: &mut Connection,
    ctx: &RequestContext,
    plan: &Plan,
    headers: &[u8],
    own_server: bool,
) -> ResponseSummary {
    let status = plan.status;
    let length = plan.content_length;
    let framing = ctx.request.framing_of_whole(status, length);
    let facts = HeadFacts { own_server, ..ctx.request.head(status, framing) };
    connection.put_head(facts, headers);
    let parts: &[Part] = if matches!(framing, Framing::Bodyless(_)) { &[] } else { &plan.body };
    if write_parts(connection, parts).await {
        let body_bytes = if parts.is_empty() { 0 } else { length };
        ResponseSummary {
            written: Written::Complete { keep_alive: ctx.request.keep_alive },
            status,
            body_bytes,
        }
    } else {
        ResponseSummary::broken(status, 0)
    }
}

async fn write_parts(connection: &mut Connection, parts: &[Part]) -> bool {
    let mut parts = parts.iter();
    // The head and the first piece in memory are one write.
    let first = parts.as_slice().first().and_then(Part::bytes);
    if first.is_some() {
        parts.next();
    }
    if !connection.flush(first.unwrap_or_default()).await {
        return false;
    }
    for part in parts {
        connection.buffers().output.clear();
        let written = match part {
            Part::File { file, offset, len } => {
                connection.send_file(std::os::fd::AsFd::as_fd(file), *offset, *len).await
            }
            in_memory => connection.flush(in_memory.bytes().unwrap_or_default()).await,
        };
        if !written {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests;
