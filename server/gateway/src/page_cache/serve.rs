//! Responses from a stored page: whole, in part, or with 304.
//!
//! The hot path of a hit. Invariant: stored header lines are sent as they are; only Age and the
//! cache status are rendered.

use crate::latencies::Kind;
use crate::request::{Request, ResponseSummary};
use outboard_http_server::{Framing, HeadFacts, ResponseWriter, Written};
use outboard_http1::{Method, write_u64};
use outboard_page_cache::{
    CacheStatus, Conditions, ContentSelection, Entry, Field, Fields, PageCache, Representation,
    belongs_into_304, now_s,
};
use smallvec::SmallVec;

/// Responds to the current request with `entry`, and counts it.
pub(super) async fn entry(
    cache: &PageCache,
    request: &Request<'_>,
    response: &mut ResponseWriter,
    entry: &Entry,
    cache_status: CacheStatus,
) -> ResponseSummary {
    cache.count(cache_status);
    // A page that PHP or another server has just rendered or confirmed is a response of theirs.
    if !matches!(cache_status, CacheStatus::Miss { .. } | CacheStatus::Revalidated { .. }) {
        request.kind.set(Kind::Hit);
    }
    let (selection, chosen) = choose(request, entry);
    let (status, body) = match selection {
        ContentSelection::Whole => (entry.status(), &chosen.body[..]),
        ContentSelection::NotModified => (304, &[][..]),
        // Both ends lie within the body.
        ContentSelection::Part(part) => (206, &chosen.body[part.start as usize..part.end as usize]),
        ContentSelection::Unsatisfiable => (416, &[][..]),
    };
    let framing = response.request.framing_of_whole(status, body.len() as u64);
    let own_server = entry.has_server();
    let facts = HeadFacts { own_date: true, own_server, ..response.request.head(status, framing) };
    response.put_head_with(facts, |out| {
        write_lines(out, entry, chosen, selection, cache_status);
    });
    let body = if matches!(framing, Framing::Bodyless(_)) { &[] } else { body };
    if response.flush(body).await {
        let written = Written::Complete { keep_alive: response.request.keep_alive };
        ResponseSummary { written, status, body_bytes: body.len() as u64 }
    } else {
        ResponseSummary::broken(status, 0)
    }
}

/// The part of the entry that the request's conditions select, and the coding.
fn choose<'e>(request: &Request<'_>, entry: &'e Entry) -> (ContentSelection, &'e Representation) {
    let fields: SmallVec<[Field<'_>; 32]> = request.headers().collect();
    let fields = Fields(&fields);
    let is_head = request.method() == Method::Head;
    match entry.evaluate(&Conditions::read(fields), is_head) {
        // Ranges are of the body as it was received.
        selection @ (ContentSelection::Part(_) | ContentSelection::Unsatisfiable) => {
            (selection, entry.plain())
        }
        selection => (selection, entry.representation(fields.joined("accept-encoding").as_deref())),
    }
}

fn write_lines(
    lines: &mut Vec<u8>,
    entry: &Entry,
    chosen: &Representation,
    selection: ContentSelection,
    cache_status: CacheStatus,
) {
    match selection {
        ContentSelection::NotModified => {
            for line in chosen.head.split_inclusive(|&byte| byte == b'\n') {
                let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
                if belongs_into_304(name) {
                    lines.extend_from_slice(line);
                }
            }
        }
        _ => lines.extend_from_slice(&chosen.head),
    }
    match selection {
        ContentSelection::Part(part) => {
            write_line(lines, "Content-Range", &part.content_range(chosen.body.len() as u64))
        }
        ContentSelection::Unsatisfiable => {
            write_line(lines, "Content-Range", &format!("bytes */{}", chosen.body.len()));
        }
        ContentSelection::Whole | ContentSelection::NotModified => {}
    }
    lines.extend_from_slice(b"Age: ");
    write_u64(lines, entry.times().age_s(now_s()).into());
    lines.extend_from_slice(b"\r\n");
    cache_status.write(lines);
}

fn write_line(lines: &mut Vec<u8>, name: &str, value: &str) {
    for piece in [name, ": ", value, "\r\n"] {
        lines.extend_from_slice(piece.as_bytes());
    }
}
