//! Records, backups and restores.

use super::*;
use outboard_entity_store::{write_backup_head, write_backup_record};

#[test]
fn a_backup_is_restored() {
    in_loop(async {
        let site = Site::new(&[], "[kv]\ndata_dir = \"DIR/kv\"\n");
        for (id, value) in [("a", "1"), ("b", "2")] {
            let target = format!("/v0/entity?id={id}");
            assert_eq!(request_with_body(&site, "PUT", &target, value).await.status, 201);
        }
        let mut backup = Vec::new();
        write_backup_head(&mut backup);
        let exported = exchange(&site, request_text("GET", "/kv/backup", "", "")).await;
        assert!(exported.contains(&*String::from_utf8_lossy(&backup)), "{exported}");
        let entities = site.gateway.generation().entities.clone().unwrap();
        let namespace = entities.namespace("default").unwrap();
        for id in [b"a", b"b"] {
            let record = namespace.get(id).await.unwrap().unwrap();
            write_backup_record(&mut backup, Ok((id, &record)));
        }
        write_backup_record(&mut backup, Err(2));
        assert_eq!(request(&site, "DELETE", "/v0/entity?id=a").await.status, 202);
        let lines = format!("Content-Length: {}\r\n", backup.len());
        let head = request_text("POST", "/kv/restore", &lines, "");
        let restored = exchange(&site, [head.as_bytes(), &backup].concat()).await;
        assert!(restored.contains("\"restored\":2"), "{restored}");
        assert_eq!(request(&site, "GET", "/v0/entity?id=a").await.body, "1");
        assert_eq!(request_with_body(&site, "POST", "/kv/restore", "junk").await.status, 400);
        let stats = request(&site, "GET", "/kv/stats").await;
        assert!(stats.body.contains("\"namespace\":\"default\""), "{}", stats.body);
        assert_eq!(request(&site, "GET", "/kv/stats?namespace=none").await.status, 404);
        assert_eq!(request(&site, "POST", "/kv/compact").await.status, 200);
    });
}

#[test]
fn a_server_without_a_store_refuses_records() {
    in_loop(async {
        let site = Site::new(&[], "");
        let response = request(&site, "GET", "/v0/entity?id=a").await;
        assert_eq!(response.status, 409);
        assert!(response.body.contains("see [kv]"), "{}", response.body);
    });
}

const KV: &str = "[kv]\ndata_dir = \"DIR/kv\"\ndurability = \"memory\"\nmax_value = \"1 KiB\"\n";

/// The response to a restore of this backup.
async fn restore(site: &Site, backup: &[u8]) -> String {
    let lines = format!("Content-Length: {}\r\n", backup.len());
    let head = request_text("POST", "/kv/restore", &lines, "");
    exchange(site, [head.as_bytes(), backup].concat()).await
}

async fn backup_of(site: &Site, ids: &[&str]) -> Vec<u8> {
    let entities = site.gateway.generation().entities.clone().unwrap();
    let namespace = entities.namespace("default").unwrap();
    let mut backup = Vec::new();
    write_backup_head(&mut backup);
    for id in ids {
        let record = namespace.get(id.as_bytes()).await.unwrap().unwrap();
        write_backup_record(&mut backup, Ok((id.as_bytes(), &record)));
    }
    backup
}

#[test]
fn a_backup_that_was_cut_restores_nothing() {
    in_loop(async {
        let site = Site::new(&[], KV);
        for id in ["a", "b"] {
            request_with_body(&site, "PUT", &format!("/v0/entity?id={id}"), "value").await;
        }
        let mut backup = backup_of(&site, &["a", "b"]).await;
        request(&site, "DELETE", "/v0/entity?id=a").await;
        // Without its end, which has the number of records.
        let response = restore(&site, &backup).await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        backup.truncate(backup.len() - 2);
        write_backup_record(&mut backup, Err(2));
        let response = restore(&site, &backup).await;
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert_eq!(request(&site, "GET", "/v0/entity?id=a").await.status, 404);
    });
}

#[test]
fn a_backup_has_the_records_of_its_range_only() {
    in_loop(async {
        let site = Site::new(&[], KV);
        for id in ["first", "middle", "outside"] {
            request_with_body(&site, "PUT", &format!("/v0/entity?id={id}"), id).await;
        }
        let target = "/kv/backup?start=middle&end=outside";
        let backup = exchange(&site, request_text("GET", target, "", "")).await;
        assert!(backup.contains("middle"), "{backup}");
        assert!(!backup.contains("first") && !backup.contains("outside"), "{backup}");
    });
}

#[test]
fn requests_for_no_namespace_of_the_store_are_refused() {
    in_loop(async {
        let site = Site::new(&[], KV);
        for (method, target, status) in [
            ("GET", "/kv/backup?namespace=none", 404),
            ("POST", "/kv/restore?namespace=none", 404),
            ("POST", "/kv/compact?namespace=none", 404),
            ("GET", "/kv/backup?start=%zz", 400),
            ("POST", "/kv/backup", 404),
            ("GET", "/kv/restore", 404),
        ] {
            let response = request(&site, method, target).await;
            assert_eq!(response.status, status, "{method} {target}: {}", response.body);
        }
        let without = Site::new(&[], "");
        for (method, target) in
            [("GET", "/kv/stats"), ("GET", "/kv/backup"), ("POST", "/kv/compact")]
        {
            assert_eq!(request(&without, method, target).await.status, 409, "{target}");
        }
    });
}
