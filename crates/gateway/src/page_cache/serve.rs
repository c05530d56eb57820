//! Answering from a stored page: whole, in part, or with 304.
//!
//! The hot path of a hit. Invariant: the lines that were stored go out as they are; only Age and
//! what is said about the cache are made anew.

use crate::request::{RequestContext, ResponseSummary};
use outboard_http_server::Connection;
use outboard_http_server::{Framing, HeadFacts, Written};
use outboard_http1::{Method, write_u64};
use outboard_page_cache::{
    CacheStatus, Conditions, ContentSelection, Entry, Field, Fields, Representation,
    belongs_into_304,
};

/// Answers the present request with `entry`.
pub(super) async fn entry(
    connection: &mut Connection,
    ctx: &RequestContext,
    entry: &Entry,
    outcome: CacheStatus,
) -> ResponseSummary {
    let (answer, chosen) = choose(connection, ctx, entry);
    let (status, body) = match answer {
        ContentSelection::Whole => (entry.status(), &chosen.body[..]),
        ContentSelection::NotModified => (304, &[][..]),
        // Both ends lie within the body.
        ContentSelection::Part(part) => (206, &chosen.body[part.start as usize..part.end as usize]),
        ContentSelection::Unsatisfiable => (416, &[][..]),
    };
    let lines = lines(entry, chosen, answer, outcome);
    let framing = ctx.request.framing_of_whole(status, body.len() as u64);
    let own_server = entry.has_server();
    let facts = HeadFacts { own_date: true, own_server, ..ctx.request.head(status, framing) };
    connection.put_head(facts, &lines);
    let body = if matches!(framing, Framing::Bodyless(_)) { &[] } else { body };
    if connection.flush(body).await {
        let sent = Written::Complete { keep_alive: ctx.request.keep_alive };
        ResponseSummary { written: sent, status, body_bytes: body.len() as u64 }
    } else {
        ResponseSummary::broken(status, 0)
    }
}

/// What the request's conditions make of the entry, and in which coding.
fn choose<'e>(
    connection: &mut Connection,
    ctx: &RequestContext,
    entry: &'e Entry,
) -> (ContentSelection, &'e Representation) {
    let buffers = connection.buffers();
    let fields: Vec<Field<'_>> = buffers.head.headers(&buffers.input).collect();
    let fields = Fields(&fields);
    let is_head = ctx.request.method == Method::Head;
    match entry.evaluate(&Conditions::read(fields), is_head) {
        // Ranges are of the body as it was received.
        answer @ (ContentSelection::Part(_) | ContentSelection::Unsatisfiable) => {
            (answer, entry.plain())
        }
        answer => (answer, entry.representation(fields.joined("accept-encoding").as_deref())),
    }
}

fn lines(
    entry: &Entry,
    chosen: &Representation,
    answer: ContentSelection,
    outcome: CacheStatus,
) -> Vec<u8> {
    let mut lines = Vec::with_capacity(chosen.head.len() + 160);
    match answer {
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
    match answer {
        ContentSelection::Part(part) => {
            put(&mut lines, "Content-Range", &part.content_range(chosen.body.len() as u64))
        }
        ContentSelection::Unsatisfiable => {
            put(&mut lines, "Content-Range", &format!("bytes */{}", chosen.body.len()));
        }
        ContentSelection::Whole | ContentSelection::NotModified => {}
    }
    lines.extend_from_slice(b"Age: ");
    write_u64(&mut lines, entry.times().age_s(super::now_s()).into());
    lines.extend_from_slice(b"\r\n");
    outcome.write(&mut lines);
    lines
}

fn put(lines: &mut Vec<u8>, name: &str, value: &str) {
    for piece in [name, ": ", value, "\r\n"] {
        lines.extend_from_slice(piece.as_bytes());
    }
}
