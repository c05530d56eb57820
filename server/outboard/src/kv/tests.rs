//! Requests of `outboard kv`, and backups that are complete or not.

use super::*;
use crate::tests::admin_server::AdminServer;
use std::sync::atomic::{AtomicU32, Ordering};

fn pick(server: &AdminServer) -> KvSelector {
    KvSelector { namespace: None, admin: Some(server.socket()) }
}

/// A backup of these records.
fn backup_of(records: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_backup_head(&mut bytes);
    for (id, value) in records {
        let record = Record { version: 0, expires_ms: Some(7), value: value.as_bytes().into() };
        write_backup_record(&mut bytes, Ok((id.as_bytes(), &record)));
    }
    write_backup_record(&mut bytes, Err(records.len() as u64));
    bytes
}

/// The records of a backup, until its end or an error.
fn read(bytes: &[u8]) -> Vec<(String, String)> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let records = read_backup(bytes, VALUE_MAX_BYTES).map(Result::unwrap);
    records.map(|record| (text(record.id), text(record.value))).collect()
}

#[test]
fn parameters_are_encoded_byte_by_byte() {
    let plain = KvSelector { namespace: None, admin: None };
    let named = KvSelector { namespace: Some("a&b".to_owned()), admin: None };
    assert_eq!(path(&plain, "/v0/entity", &[]), "/v0/entity?");
    assert_eq!(path(&plain, "/x", &[("id", "é")]), "/x?id=%C3%A9&");
    assert_eq!(path(&named, "/x", &[("id", "")]), "/x?id=&namespace=%61%26%62&");
    assert_eq!(path(&plain, "/x", &[("id", "\r\nHost: b")]), "/x?id=%0D%0A%48%6F%73%74%3A%20%62&");
}

#[test]
fn a_refusal_is_the_reason_of_the_server_or_of_its_status() {
    for (status, body, expected) in [
        (400, r#"{"error":"no such namespace"}"#, "no such namespace"),
        (400, "", "invalid request; check that the namespace exists"),
        (413, "<html>", "the value is larger than kv.max_value"),
        (503, "{}", "the store is overloaded; try again"),
        (507, r#"{"error":7}"#, "there is no space left"),
        (500, "", "the server responded with 500; see its error log"),
    ] {
        assert_eq!(refusal(status, body.as_bytes()), expected);
    }
}

#[test]
fn a_backup_appears_only_when_it_is_complete() {
    let whole = backup_of(&[("a", "1"), ("b", "2")]);
    for (length, is_complete) in
        [(whole.len(), true), (whole.len() - 1, false), (3, false), (0, false)]
    {
        let body = whole[..length].to_vec();
        let server = AdminServer::start("backup", move |_| (200, body.clone()));
        let file = server.directory().join("backup.kv");
        let done = backup(&pick(&server), &file);
        assert_eq!(done.is_ok(), is_complete, "{length} bytes: {done:?}");
        assert_eq!(file.exists(), is_complete);
        assert!(!file.with_extension("part").exists());
        assert_eq!(server.lines(), ["GET /kv/backup?"]);
    }
}

#[test]
fn a_refused_backup_replaces_nothing() {
    let server = AdminServer::replying("refused-backup", 404, r#"{"error":"no such namespace"}"#);
    let file = server.directory().join("backup.kv");
    std::fs::write(&file, "earlier").unwrap();
    assert_eq!(backup(&pick(&server), &file).unwrap_err(), "no such namespace");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "earlier");
    let elsewhere = server.directory().join("none/backup.kv");
    let error = backup(&pick(&server), &elsewhere).unwrap_err();
    assert!(
        error.starts_with(&format!("cannot write {}", elsewhere.with_extension("part").display()))
    );
}

#[test]
fn a_restore_sends_all_records_and_repeats_a_refused_part() {
    let count = AtomicU32::new(0);
    let server = AdminServer::start("restore", move |_| {
        (if count.fetch_add(1, Ordering::Relaxed) == 0 { 503 } else { 200 }, b"{}".to_vec())
    });
    let file = server.directory().join("backup.kv");
    std::fs::write(&file, backup_of(&[("a", "1"), ("b", "2")])).unwrap();
    restore(&pick(&server), &file).unwrap();
    let requests = server.take();
    assert_eq!(requests.len(), 2, "the first was refused");
    for (line, body) in &requests {
        assert_eq!(line, "POST /kv/restore?");
        assert_eq!(read(body), [("a".into(), "1".into()), ("b".into(), "2".into())]);
    }
}

#[test]
fn a_large_backup_is_restored_in_parts() {
    let server = AdminServer::replying("parts", 200, "{}");
    let file = server.directory().join("backup.kv");
    let value = "x".repeat(PART_BYTES / 2);
    let records: Vec<(&str, &str)> =
        ["a", "b", "c", "d", "e"].map(|id| (id, value.as_str())).into();
    std::fs::write(&file, backup_of(&records)).unwrap();
    restore(&pick(&server), &file).unwrap();
    let parts: Vec<Vec<String>> = server
        .take()
        .iter()
        .map(|(_, body)| read(body).into_iter().map(|(id, _)| id).collect())
        .collect();
    assert_eq!(parts, [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
}

#[test]
fn an_incomplete_backup_is_not_restored_in_part() {
    let server = AdminServer::replying("incomplete", 200, "{}");
    let file = server.directory().join("backup.kv");
    let whole = backup_of(&[("a", "1"), ("b", "2")]);
    for (bytes, reason) in [
        (&whole[..whole.len() - 1], "the backup is damaged or truncated after 2 records"),
        (&whole[..20], "the backup is damaged or truncated after 0 records"),
        (&b"not one"[..], "this is not a backup of an entity store"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let error = restore(&pick(&server), &file).unwrap_err();
        assert_eq!(error, format!("{}: {reason}", file.display()));
    }
    let none = restore(&pick(&server), Path::new("/none.kv")).unwrap_err();
    assert_eq!(none, "cannot read /none.kv: No such file or directory (os error 2)");
    assert!(server.lines().is_empty());
}

#[test]
fn a_scan_reads_from_a_key_to_another() {
    let server = AdminServer::start("scan", |_| (200, backup_of(&[("a\n", "\u{e9}")])));
    scan(&pick(&server), "a", Some("b")).unwrap();
    scan(&pick(&server), "", None).unwrap();
    assert_eq!(server.lines(), ["GET /kv/backup?start=%61&end=%62&", "GET /kv/backup?start=&"]);
    let damaged = AdminServer::replying("damaged-scan", 200, "oops");
    assert_eq!(
        scan(&pick(&damaged), "", None).unwrap_err(),
        "this is not a backup of an entity store"
    );
}

#[test]
fn findings_of_the_store_follow_its_numbers() {
    let stats: kv::NamespaceStats = serde_json::from_value(serde_json::json!({
        "namespace": "default", "durability": "sync", "records": 5, "files": 2, "file_bytes": 4096,
        "buffered_bytes": 1024, "cached_records": 3, "cached_bytes": 2048, "writes": 9, "commits": 4,
        "writes_refused": 1, "writes_waiting": 0, "reads_from_disk": 6, "reads_refused": 0,
        "reads_waiting": 2, "damaged": ["a.kv"], "findings": ["a log without its end"],
    }))
    .unwrap();
    let mut page = String::new();
    write_stats(&mut page, &stats).unwrap();
    let expected = "namespace default: durability sync\n  \
                    on disk    about 5 records, 2 files, 4 KiB; 1 KiB not yet in a file\n  \
                    in memory  3 records, 2 KiB\n  \
                    writes     9 in 4 commits; 0 waiting, 1 refused\n  \
                    reads      6 from disk; 2 waiting, 0 refused\n  \
                    damaged    a.kv\n  \
                    found      a log without its end\n";
    assert_eq!(page, expected);
}
