//! The key-value store's part of the admin API: records, statistics, backup, restore, compaction.
//!
//! Called by [`crate::admin`]. Invariant: a restore writes either all of a part or replies with an
//! error.

use super::OWN_PREFIX;
use super::call::Query;
use super::record::Stream;
use crate::admin_reply::{self, Refusal};
use crate::gateway::Gateway;
use crate::request::Request;
use outboard_admin_api::{Endpoint, kv};
use outboard_config::Limits;
use outboard_entity_store::{
    Change, Condition, Durability, Namespace, Scan, Write, read_backup, write_backup_head,
    write_backup_record,
};
use outboard_http_server::{Request as HttpRequest, ResponseWriter, Written, body_reader};
use outboard_http1::Method;
use outboard_log::Wall;
use outboard_operations::{Entities, reason};
use std::ops::Bound;
use std::rc::Rc;

/// Largest part of a backup in one request of a restore.
const PART_MAX_BYTES: u64 = 80 << 20;

/// Records that a restore commits together, fewer than the queue holds.
const MAX_QUEUED: usize = 256;

/// Responds to a request of the admin socket for records, a backup or a restore.
pub(crate) async fn try_handle(
    gateway: &Rc<Gateway>,
    http: &mut HttpRequest,
    response: &mut ResponseWriter,
    path: &[u8],
) -> Option<Written> {
    let below = path.strip_prefix(OWN_PREFIX.as_bytes()).filter(|rest| rest.starts_with(b"/"));
    let is_backup = http.method() == Method::Get && path == kv::BACKUP_PATH.as_bytes();
    let is_restore = http.method() == Method::Post && path == kv::Restore::PATH.as_bytes();
    if below.is_none() && !is_backup && !is_restore {
        return None;
    }
    let request = Request::new(gateway, http, Wall::now());
    let entities = match store(gateway) {
        Ok(entities) => entities,
        Err(refusal) => return Some(refuse(response, refusal).await),
    };
    if let Some(below) = below {
        let summary = match super::respond(&request, response, &entities, below).await {
            Ok(summary) => summary,
            Err(refusal) => refusal.respond(&request, response, None).await,
        };
        return Some(summary.written);
    }
    let query = Query::read(request.query().unwrap_or_default());
    let query = query.map_err(|_| Refusal::new(400, "the query is invalid"));
    let found = query.and_then(|query| {
        let namespace = namespace(&entities, query.namespace.as_deref())?;
        Ok((query, namespace))
    });
    let (Query { start, end, .. }, namespace) = match found {
        Ok(found) => found,
        Err(refusal) => return Some(refuse(response, refusal).await),
    };
    if is_backup {
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        return Some(backup(response, namespace.scan(start, end)).await);
    }
    let restored = restore(&request, response, &entities.limits, &namespace).await;
    let (status, kind, body) = admin_reply::render(restored);
    Some(admin_reply::send(response, status, kind, &body).await)
}

async fn refuse(response: &mut ResponseWriter, refusal: Refusal) -> Written {
    let (status, kind, body) = admin_reply::render::<()>(Err(refusal));
    admin_reply::send(response, status, kind, &body).await
}

/// A namespace of the store, `default` if none is named.
fn namespace(entities: &Entities, name: Option<&str>) -> Result<Rc<Namespace>, Refusal> {
    let found = entities.namespace(name.unwrap_or("default")).cloned();
    found.ok_or_else(|| Refusal::new(404, "there is no such namespace"))
}

fn store(gateway: &Gateway) -> Result<Rc<Entities>, Refusal> {
    let message = "this server has no key-value store; see [kv] in its configuration";
    gateway.generation().entities.clone().ok_or_else(|| Refusal::new(409, message))
}

pub(crate) fn stats(gateway: &Gateway, stats: &kv::Stats) -> Result<kv::Namespaces, Refusal> {
    let entities = store(gateway)?;
    if let Some(name) = &stats.namespace {
        namespace(&entities, Some(name))?;
    }
    let all = entities.namespaces().iter();
    let selected =
        all.filter(|one| stats.namespace.as_deref().is_none_or(|name| name == one.name()));
    Ok(kv::Namespaces { namespaces: selected.map(|one| stats_of(one)).collect() })
}

fn stats_of(namespace: &Namespace) -> kv::NamespaceStats {
    let durability = match namespace.durability() {
        Some(Durability::Always) => "always".to_owned(),
        Some(Durability::Interval(interval_ms)) => format!("interval of {interval_ms} ms"),
        Some(Durability::Memory) => "memory".to_owned(),
        None => "that of Redis".to_owned(),
    };
    let stats = namespace.stats();
    kv::NamespaceStats {
        namespace: namespace.name().to_owned(),
        durability,
        records: stats.records,
        files: stats.files,
        file_bytes: stats.file_bytes,
        buffered_bytes: stats.buffered_bytes,
        cached_records: stats.cached_records,
        cached_bytes: stats.cached_bytes,
        writes: stats.writes,
        commits: stats.commits,
        writes_refused: stats.writes_refused,
        writes_waiting: stats.writes_waiting,
        reads_from_disk: stats.reads_from_disk,
        reads_refused: stats.reads_refused,
        reads_waiting: stats.reads_waiting,
        damaged: stats.damaged,
        findings: stats.findings,
    }
}

pub(crate) async fn compact(
    gateway: &Gateway,
    compact: &kv::Compact,
) -> Result<kv::Compacted, Refusal> {
    let namespace = namespace(&*store(gateway)?, compact.namespace.as_deref())?;
    match namespace.compact().await {
        Ok(()) => Ok(kv::Compacted { compacted: namespace.name().to_owned() }),
        Err(error) => Err(Refusal::new(500, error.to_string())),
    }
}

async fn backup(response: &mut ResponseWriter, mut scan: Scan) -> Written {
    let mut stream = Stream::start(response);
    let (mut bytes, mut records) = (Vec::new(), 0);
    write_backup_head(&mut bytes);
    loop {
        // If the scan fails, the backup has no end record, so that a restore refuses it.
        let Ok(piece) = scan.next().await else { return stream.broken().written };
        if piece.is_empty() {
            break;
        }
        for (id, record) in &piece {
            write_backup_record(&mut bytes, Ok((id, record)));
            records += 1;
        }
        if !stream.send(response, &bytes).await {
            return stream.broken().written;
        }
        bytes.clear();
    }
    write_backup_record(&mut bytes, Err(records));
    if !stream.send(response, &bytes).await {
        return stream.broken().written;
    }
    stream.end(response).await.written
}

/// Writes the records of a part of a backup, which has the format of a complete one.
async fn restore(
    request: &Request<'_>,
    response: &mut ResponseWriter,
    limits: &Limits,
    namespace: &Namespace,
) -> Result<kv::Restored, Refusal> {
    let limits =
        Limits { body_bytes: PART_MAX_BYTES, body_memory_bytes: PART_MAX_BYTES, ..limits.clone() };
    let (part, _held) = match body_reader::in_memory(request, response, &limits).await {
        Ok(part) => part,
        Err(reason) => return Err(Refusal::new(400, reason.text())),
    };
    let now_ms = Wall::now().unix_us / 1000;
    let mut writes = Vec::new();
    for record in read_backup(&part[..], limits.body_bytes as usize) {
        let record = match record {
            Ok(record) => record,
            Err(error) => return Err(Refusal::new(400, error.to_string())),
        };
        let ttl_ms = record.expires_ms.map(|expires_ms| expires_ms.saturating_sub(now_ms));
        let change = Change::Put { value: record.value.into(), ttl_ms };
        writes.push(Write { id: record.id.into(), change, condition: Condition::Always });
    }
    let (count, mut writes) = (writes.len(), writes.into_iter());
    loop {
        let together: Vec<Write> = writes.by_ref().take(MAX_QUEUED).collect();
        if together.is_empty() {
            return Ok(kv::Restored { restored: count });
        }
        for written in namespace.write_many(together).await {
            if let Err(error) = written {
                return Err(Refusal::new(reason(&error).status(), error.to_string()));
            }
        }
    }
}
