//! The handler of files: static ones, and those that a script names.
//!
//! Called by [`crate::dispatch`]. `outboard_static_files::plan_as` plans the response; it is
//! written here, bodies in memory in one write with the head, large ones by `sendfile(2)`. A file that the
//! client would take compressed is sent as it is, and compressed for later requests.

use crate::app::App;
use crate::refusal::Outcome;
use crate::request::{Request, ResponseSummary};
use outboard_development::tag;
use outboard_http_semantics::Conditions;
use outboard_http_server::{Framing, HeadFacts, HeaderBlock, ResponseWriter, Written};
use outboard_http1::Method;
use outboard_log::Reason;
use outboard_static_files::{Entry, Headers, Part, Plan, plan_as};
use std::borrow::Cow;
use std::rc::Rc;

/// Responds with a static file.
pub(crate) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    entry: &Rc<Entry>,
) -> Outcome {
    if !request.is_read() {
        return Err(Reason::MethodNotAllowed.into());
    }
    let mut plan = plan_for(request, entry, None);
    if let Some(coding) = plan.missing {
        app.file_compressor.push(entry, coding);
    }
    tag::append_to_file(request.gateway.development().as_deref(), &mut plan);
    let headers = block(request, app, &plan.headers, plan.status).ok_or(Reason::Internal)?;
    let (lines, own_server) = headers;
    Ok(send(response, &plan, &lines, own_server).await)
}

/// The plan's header lines under the app's rules, and whether these set Server; `None` if one is
/// invalid, which the plan rules out.
fn block<'a>(
    request: &Request<'_>,
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
            request.apply_rules(app, &mut headers, status);
            Some((Cow::Owned(headers.bytes), headers.owns_server))
        }
    }
}

/// The plan for an entry under the conditions of the current request.
pub(crate) fn plan_for(request: &Request<'_>, entry: &Entry, content_type: Option<&[u8]>) -> Plan {
    let header = |name: &[u8]| request.header(name);
    let conditions = Conditions {
        is_head: request.method() == Method::Head,
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
    response: &mut ResponseWriter,
    plan: &Plan,
    headers: &[u8],
    own_server: bool,
) -> ResponseSummary {
    let status = plan.status;
    let length = plan.content_length;
    let framing = response.request.framing_of_whole(status, length);
    let facts = HeadFacts { own_server, ..response.request.head(status, framing) };
    response.put_head(facts, headers);
    let parts: &[Part] = if matches!(framing, Framing::Bodyless(_)) { &[] } else { &plan.body };
    if write_parts(response, parts).await {
        let body_bytes = if parts.is_empty() { 0 } else { length };
        ResponseSummary {
            written: Written::Complete { keep_alive: response.request.keep_alive },
            status,
            body_bytes,
        }
    } else {
        ResponseSummary::broken(status, 0)
    }
}

async fn write_parts(response: &mut ResponseWriter, parts: &[Part]) -> bool {
    let mut parts = parts.iter();
    // The head and the first piece in memory are one write.
    let first = parts.as_slice().first().and_then(Part::bytes);
    if first.is_some() {
        parts.next();
    }
    if !response.flush(first.unwrap_or_default()).await {
        return false;
    }
    for part in parts {
        let written = match part {
            Part::File { file, offset, len } => {
                response.send_file(std::os::fd::AsFd::as_fd(file), *offset, *len).await
            }
            in_memory => response.flush(in_memory.bytes().unwrap_or_default()).await,
        };
        if !written {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests;
