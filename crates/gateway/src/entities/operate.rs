//! The store's part of the admin socket: `/v0/…` as over HTTP, and `/entities/…` for whoever looks
//! after it.
//!
//! `GET /entities/stats`, `GET /entities/backup` of all or of `start=` to before `end=`, `POST /entities/restore` with a part of a backup,
//! `POST /entities/compact`; `namespace=` picks one.

use super::call::Query;
use super::record::Stream;
use super::{Entities, OWN_PREFIX, reason};
use crate::answer::{Asked, Sent};
use crate::client::Forwarded;
use crate::connection::Connection;
use crate::header_block::HeaderBlock;
use crate::receive;
use crate::turn::Turn;
use outboard_config::Limits;
use outboard_entity_store::{
    Change, Condition, Durability, Namespace, Scan, Write, read_backup, write_backup_head,
    write_backup_record,
};
use outboard_http1::Method;
use outboard_log::Wall;
use serde_json::{Value, json};
use std::ops::Bound;

/// Longest part of a backup that a restore sends at once.
const PART_MAX_BYTES: u64 = 80 << 20;

/// Records that a restore has committed together, fewer than may wait.
const TOGETHER: usize = 256;

/// Answers a request to the admin socket if it is for the store.
pub(crate) async fn operate(
    connection: &mut Connection,
    asked: Asked,
    path: &[u8],
) -> Option<Sent> {
    let is_own = |prefix: &str| {
        path.strip_prefix(prefix.as_bytes())
            .filter(|rest| rest.starts_with(b"/"))
            .map(<[u8]>::to_vec)
    };
    let (below, verb) = (is_own(OWN_PREFIX), is_own("/entities"));
    if below.is_none() && verb.is_none() {
        return None;
    }
    let turn = Turn {
        asked,
        forwarded: Forwarded::default(),
        request_id: connection.gateway.next_request_id(),
        started: Wall::now(),
    };
    let Some(entities) = connection.gateway.generation().entities.clone() else {
        let why = "this server has no entity store; see [kv] in its configuration";
        return Some(tell(connection, asked, 409, &json!({ "error": why })).await);
    };
    if let Some(below) = below {
        return Some(super::answer(connection, &turn, &entities, &below).await.sent);
    }
    let buffers = connection.buffers();
    let query = Query::read(buffers.head.query(&buffers.input).unwrap_or_default());
    let Ok(query) = query else {
        let why = "the query cannot be read";
        return Some(tell(connection, asked, 400, &json!({ "error": why })).await);
    };
    let Query { namespace: named, start, end, .. } = query;
    let Some(namespace) = entities.namespace(named.as_deref().unwrap_or("default")).cloned() else {
        let why = "there is no such namespace";
        return Some(tell(connection, asked, 404, &json!({ "error": why })).await);
    };
    let (status, body) = match (asked.method, verb.as_deref().unwrap_or_default()) {
        (Method::Get, b"/stats") => (200, stats(&entities, named.as_deref())),
        (Method::Get, b"/backup") => {
            let start = start.map_or(Bound::Unbounded, Bound::Included);
            let end = end.map_or(Bound::Unbounded, Bound::Excluded);
            return Some(backup(connection, &turn, namespace.scan(start, end)).await);
        }
        (Method::Post, b"/restore") => restore(connection, &entities.limits, &namespace).await,
        (Method::Post, b"/compact") => match namespace.compact().await {
            Ok(()) => (200, json!({ "compacted": namespace.name() })),
            Err(error) => (500, json!({ "error": error.to_string() })),
        },
        _ => (404, json!({ "error": "no such admin resource" })),
    };
    Some(tell(connection, asked, status, &body).await)
}

async fn tell(connection: &mut Connection, asked: Asked, status: u16, body: &Value) -> Sent {
    let mut headers = HeaderBlock::default();
    headers.add(b"Content-Type", b"application/json").expect("a constant header");
    connection.respond(asked, status, &headers, format!("{body}\n").as_bytes()).await
}

fn stats(entities: &Entities, named: Option<&str>) -> Value {
    let namespaces = entities.namespaces().iter();
    let picked = namespaces.filter(|namespace| named.is_none_or(|name| name == namespace.name()));
    let each = picked.map(|namespace| {
        let stats = namespace.stats();
        json!({
            "namespace": namespace.name(),
            "durability": match namespace.durability() {
                Some(Durability::Always) => "always".to_owned(),
                Some(Durability::Interval(every_ms)) => format!("interval of {every_ms} ms"),
                Some(Durability::Memory) => "memory".to_owned(),
                None => "that of Redis".to_owned(),
            },
            "records": stats.records,
            "files": stats.files,
            "file_bytes": stats.file_bytes,
            "buffered_bytes": stats.buffered_bytes,
            "cached_records": stats.cached_records,
            "cached_bytes": stats.cached_bytes,
            "writes": stats.writes,
            "commits": stats.commits,
            "writes_refused": stats.writes_refused,
            "writes_waiting": stats.writes_waiting,
            "reads_from_disk": stats.reads_from_disk,
            "reads_refused": stats.reads_refused,
            "reads_waiting": stats.reads_waiting,
            "damaged": stats.damaged,
            "findings": stats.findings,
        })
    });
    json!({ "namespaces": each.collect::<Vec<_>>() })
}

async fn backup(connection: &mut Connection, turn: &Turn, mut scan: Scan) -> Sent {
    let mut stream = Stream::begin(connection, turn);
    let (mut bytes, mut records) = (Vec::new(), 0);
    write_backup_head(&mut bytes);
    loop {
        // A scan that fails leaves a backup without an end, which no restore takes for a whole one.
        let Ok(piece) = scan.next().await else { return stream.broken().sent };
        if piece.is_empty() {
            break;
        }
        for (id, record) in &piece {
            write_backup_record(&mut bytes, Ok((id, record)));
            records += 1;
        }
        if !stream.send(connection, &bytes).await {
            return stream.broken().sent;
        }
        bytes.clear();
    }
    write_backup_record(&mut bytes, Err(records));
    if !stream.send(connection, &bytes).await {
        return stream.broken().sent;
    }
    stream.end(connection).await.sent
}

/// Writes the records of a part of a backup, which is a whole one by itself.
async fn restore(
    connection: &mut Connection,
    limits: &Limits,
    namespace: &Namespace,
) -> (u16, Value) {
    let limits =
        Limits { body_bytes: PART_MAX_BYTES, body_memory_bytes: PART_MAX_BYTES, ..limits.clone() };
    let received = match receive::body(connection, &limits).await {
        Ok(received) => received,
        Err(reason) => return (400, json!({ "error": reason.text() })),
    };
    let now_ms = Wall::now().unix_us / 1000;
    let mut writes = Vec::new();
    for record in read_backup(received.body.memory(), limits.body_bytes as usize) {
        let record = match record {
            Ok(record) => record,
            Err(error) => return (400, json!({ "error": error.to_string() })),
        };
        let ttl_ms = record.expires_ms.map(|expires_ms| expires_ms.saturating_sub(now_ms));
        let change = Change::Put { value: record.value.into(), ttl_ms };
        writes.push(Write { id: record.id.into(), change, condition: Condition::Always });
    }
    let (count, mut writes) = (writes.len(), writes.into_iter());
    loop {
        let together: Vec<Write> = writes.by_ref().take(TOGETHER).collect();
        if together.is_empty() {
            return (200, json!({ "restored": count }));
        }
        for answer in namespace.write_many(together).await {
            if let Err(error) = answer {
                return (reason(&error).status(), json!({ "error": error.to_string() }));
            }
        }
    }
}
