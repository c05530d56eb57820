//! Replies as JSON, which is part of the public interface: each with everything set, or with what is optional left out.

use crate::status::{MemoryAccount, Pool, Snapshot};
use crate::{
    Failure, bans, cache, certificates, config, dashboard, kv, server, snapshot, upstreams,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// Asserts that both ends have the same JSON for the value.
fn assert_json<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: &Value) {
    assert_eq!(serde_json::to_value(value).unwrap(), *json);
    assert_eq!(serde_json::from_value::<T>(json.clone()).unwrap(), *value);
}

fn without(mut json: Value, name: &str) -> Value {
    json.as_object_mut().unwrap().remove(name).expect(name);
    json
}

fn entry() -> cache::Entry {
    cache::Entry {
        app: "shop".to_owned(),
        url: "https://shop.test/".to_owned(),
        status: 200,
        body_bytes: 5120,
        age_s: 61,
        fresh_for_s: -1,
        varies_by: vec!["accept-language".to_owned()],
        codings: vec!["br".to_owned(), "gzip".to_owned()],
    }
}

#[test]
fn an_error_is_a_sentence() {
    assert_json(&Failure { error: "no such app".to_owned() }, &json!({"error": "no such app"}));
    assert!(serde_json::from_str::<Failure>("{}").is_err());
}

#[test]
fn replies_of_the_server_are_numbers_and_switches() {
    assert_json(&server::Reloaded { generation: 3 }, &json!({"generation": 3}));
    assert_json(&server::Upgraded { pid: 4711 }, &json!({"pid": 4711}));
    assert_json(&server::Stopping { stopping: true }, &json!({"stopping": true}));
    assert_json(&kv::Restored { restored: 12 }, &json!({"restored": 12}));
    assert_json(
        &kv::Compacted { compacted: "default".to_owned() },
        &json!({"compacted": "default"}),
    );
    let retired = snapshot::Retired { apps: [("shop".to_owned(), 2)].into() };
    assert_json(&retired, &json!({"apps": {"shop": 2}}));
}

#[test]
fn a_permanent_ban_has_no_end() {
    let mut entry = bans::Entry {
        network: "10.0.0.0/8".to_owned(),
        until_s: Some(1_800_000_000),
        reason: "spam".to_owned(),
    };
    let json = json!({"network": "10.0.0.0/8", "until_s": 1_800_000_000, "reason": "spam"});
    assert_json(&entry, &json);
    entry.until_s = None;
    let read: bans::Entry = serde_json::from_value(without(json, "until_s")).unwrap();
    assert_eq!(read, entry);
}

#[test]
fn a_cached_response_lists_its_headers_in_the_same_object() {
    let detailed = cache::DetailedEntry {
        entry: entry(),
        headers: vec![("set-cookie".to_owned(), "a=1".to_owned()); 2],
        lifetime_from: "max-age".to_owned(),
        audience: "everybody".to_owned(),
    };
    let json = json!({
        "app": "shop", "url": "https://shop.test/", "status": 200, "body_bytes": 5120, "age_s": 61,
        "fresh_for_s": -1, "varies_by": ["accept-language"], "codings": ["br", "gzip"],
        "headers": [["set-cookie", "a=1"], ["set-cookie", "a=1"]],
        "lifetime_from": "max-age", "audience": "everybody",
    });
    assert_json(&detailed, &json);
    for name in ["url", "headers", "audience"] {
        let error = serde_json::from_value::<cache::DetailedEntry>(without(json.clone(), name));
        assert_eq!(error.unwrap_err().to_string(), format!("missing field `{name}`"));
    }
}

#[test]
fn a_purge_is_confirmed_only_by_a_shared_tier() {
    for (confirmed, expected) in [
        (None, json!({"purged": 7})),
        (Some(true), json!({"purged": 7, "confirmed": true})),
        (Some(false), json!({"purged": 7, "confirmed": false})),
    ] {
        assert_json(&cache::Purged { purged: 7, confirmed }, &expected);
    }
}

#[test]
fn pages_that_must_not_be_cached_are_named_unsafe() {
    let finding = cache::Finding {
        app: "shop".to_owned(),
        url: "/".to_owned(),
        by: "cookie".to_owned(),
        excerpt: "Hello Ann".to_owned(),
    };
    let audited = cache::Audited { examined: 9, unsafe_pages: vec![finding] };
    let page = json!({"app": "shop", "url": "/", "by": "cookie", "excerpt": "Hello Ann"});
    assert_json(&audited, &json!({"examined": 9, "unsafe": [page]}));
}

#[test]
fn an_account_of_the_whole_server_names_no_app() {
    let mut account = MemoryAccount {
        kind: "request bodies".to_owned(),
        app: None,
        held_bytes: 1,
        peak_bytes: 2,
        limit_bytes: 3,
        refused: 4,
    };
    let mut json = json!({
        "kind": "request bodies", "held_bytes": 1, "peak_bytes": 2, "limit_bytes": 3, "refused": 4,
    });
    assert_json(&account, &json);
    account.app = Some("shop".to_owned());
    json["app"] = "shop".into();
    assert_json(&account, &json);
}

#[test]
fn a_pool_of_an_older_server_is_read() {
    let snapshot = Snapshot { retired: 2, keys: vec!["option".to_owned()], ..Default::default() };
    let pool = Pool { app: "shop".to_owned(), snapshot: Some(snapshot), ..Pool::default() };
    let json = serde_json::to_value(&pool).unwrap();
    assert_json(&pool, &json);
    let older = without(without(json.clone(), "snapshot"), "start_failure");
    let read: Pool = serde_json::from_value(older).unwrap();
    assert_eq!(read, Pool { snapshot: None, ..pool });
    assert!(serde_json::from_value::<Pool>(without(json, "phase")).is_err());
}

#[test]
fn fields_of_a_newer_server_are_ignored() {
    let json = json!({"servers": [], "was_drained": false, "under_way": 0, "since_s": 5});
    let read: upstreams::Changed = serde_json::from_value(json).unwrap();
    assert_eq!(read, upstreams::Changed { servers: vec![], was_drained: false, under_way: 0 });
}

#[test]
fn a_missing_certificate_has_a_name_and_a_state() {
    let json = json!({"certificates": [{"name": "shop.test", "state": "missing"}]});
    let read: certificates::Certificates = serde_json::from_value(json).unwrap();
    let expected = certificates::Certificate {
        name: "shop.test".to_owned(),
        state: "missing".to_owned(),
        ..Default::default()
    };
    assert_eq!(read.certificates, [expected]);
}

#[test]
fn a_setting_has_the_type_of_its_key() {
    for value in [json!(true), json!(8080), json!("/srv"), json!(["a"]), json!(0.5), json!(null)] {
        let setting = config::Setting {
            key: "app.shop.root".to_owned(),
            value: value.clone(),
            origin: "file".to_owned(),
            file: Some("/etc/outboard.toml".to_owned()),
            line: Some(7),
            sources: vec!["SHOP_ROOT".to_owned()],
        };
        let json = json!({
            "key": "app.shop.root", "value": value, "origin": "file", "file": "/etc/outboard.toml",
            "line": 7, "sources": ["SHOP_ROOT"],
        });
        assert_json(&setting, &json);
    }
}

#[test]
fn a_slow_request_names_a_server_only_if_it_was_proxied() {
    let mut slow = dashboard::SlowRequest {
        at_ms: 1_700_000_000_123,
        app: "shop".to_owned(),
        request: "GET /".to_owned(),
        took_ms: 1500,
        pid: Some(4711),
        server: None,
        backtrace: "sleep\nmain".to_owned(),
    };
    let mut json = json!({
        "at_ms": 1_700_000_000_123_u64, "app": "shop", "request": "GET /", "took_ms": 1500,
        "pid": 4711, "backtrace": "sleep\nmain",
    });
    assert_json(&slow, &json);
    (slow.pid, slow.server) = (None, Some("http://10.0.0.1:80".to_owned()));
    (json["pid"], json["server"]) = (Value::Null, "http://10.0.0.1:80".into());
    assert_json(&slow, &json);
}
