//! The listing of a directory without an index: a page, or JSON.
//!
//! Called by [`crate::dispatch`] where the configuration lists directories. Invariants: a name that is denied, or that needs
//! more rights than the directory itself, is not shown; names are text of strangers, so each is escaped.

use crate::app::App;
use crate::refusal::Outcome;
use crate::request::{Request, respond_with};
use outboard_development::failure::escape;
use outboard_http_server::{HeaderBlock, ResponseWriter};
use outboard_http1::encode_path;
use outboard_log::{Level, Reason, Wall};
use outboard_reactor::on_lookup_thread;
use outboard_static_files::{ListedFile, Listing};
use std::fmt::Write as _;
use std::rc::Rc;

/// `path` is below the app's prefix and ends with a slash.
pub(crate) async fn respond(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    app: &Rc<App>,
    path: &[u8],
) -> Outcome {
    if !request.is_read() {
        return Err(Reason::MethodNotAllowed.into());
    }
    let unread = app.files.listing(path);
    let read = on_lookup_thread(app.files.id(), move || unread.run());
    let mut listing = request.client.unless_gone(read).await?.map_err(|error| {
        let text = format!("cannot list {}: {error}", String::from_utf8_lossy(path));
        app.log_text(Level::Error, request.request_id, &text);
        Reason::ReadFailed
    })?;
    listing.files.retain(|file| is_shown(request, app, path, file));
    let accept = request.header(b"accept").unwrap_or_default();
    let (kind, body) = match accept.starts_with(b"application/json") {
        true => ("application/json", json(&listing)),
        false => ("text/html; charset=utf-8", page(request.path(), path == b"/", &listing)),
    };
    let headers = HeaderBlock::constant(&[("Content-Type", kind), ("Vary", "Accept")]);
    Ok(respond_with(request, response, Some(app), 200, headers, body.as_bytes()).await)
}

/// Whether the visitor of the directory gets the file by the rules of the app.
fn is_shown(request: &Request<'_>, app: &App, directory: &[u8], file: &ListedFile) -> bool {
    let (access, conditions) = (&app.config.access, request.conditions.get());
    let satisfied = access.of_request(directory, conditions);
    let may_get = |path: &[u8]| {
        let further = access.of_result(path, conditions).without(satisfied);
        !app.config.deny.denies(path) && further.is_empty()
    };
    let end: &[u8] = if file.bytes.is_none() { b"/" } else { b"" };
    may_get(&[directory, &file.name, end].concat())
        && file.real.as_ref().is_none_or(|real| may_get(&[real, end].concat()))
}

fn page(path: &[u8], is_top: bool, listing: &Listing) -> String {
    let title = escape(&String::from_utf8_lossy(path));
    let mut page = format!(
        "<!doctype html><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60em;\
         margin:2em auto;padding:0 1em;color:#223}}h1,td{{overflow-wrap:anywhere}}\
         td+td{{padding-left:1.5em;white-space:nowrap;text-align:right}}\
         @media(prefers-color-scheme:dark){{body{{background:#15181d;color:#dde}}a{{color:#8bf}}}}\
         </style><h1>{title}</h1><table>\n"
    );
    if !is_top {
        page.push_str("<tr><td><a href=\"../\">../</a>\n");
    }
    for file in &listing.files {
        let slash = if file.bytes.is_none() { "/" } else { "" };
        let target = escape(&String::from_utf8_lossy(&encode_path(&file.name)));
        let name = escape(&String::from_utf8_lossy(&file.name));
        let size = file.bytes.map_or(String::new(), |bytes| bytes.to_string());
        let time = modified(file);
        // With "./" a name is not read as a scheme. Writing to a String does not fail.
        let _ = writeln!(
            page,
            "<tr><td><a href=\"./{target}{slash}\">{name}{slash}</a><td>{size}<td>{time}"
        );
    }
    page.push_str("</table>\n");
    if listing.is_partial {
        page.push_str("<p>The directory has more files.\n");
    }
    page
}

fn json(listing: &Listing) -> String {
    let files = listing.files.iter().map(|file| {
        serde_json::json!({
            "name": String::from_utf8_lossy(&file.name),
            "type": if file.bytes.is_none() { "directory" } else { "file" },
            "bytes": file.bytes,
            "modified": modified(file),
        })
    });
    serde_json::Value::Array(files.collect()).to_string()
}

/// `2026-11-21T05:35:28Z`.
fn modified(file: &ListedFile) -> String {
    let wall = Wall { unix_us: file.modified_unix_s.saturating_mul(1_000_000) };
    wall.rfc3339().replace(".000Z", "Z")
}
