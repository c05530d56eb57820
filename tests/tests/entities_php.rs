//! `Outboard\KV`: the entity store as the shared state of PHP workers.

#![forbid(unsafe_code)]

#[path = "entities_promises/php.rs"]
mod php;

use outboard_e2e::{Configured, Docroot};
use php::{promises, said, with_workers};
use serde_json::{Value, json};

fn with_store() -> Configured {
    with_workers("[kv]\ndata_dir = \"entities\"\n[kv.namespace.memory]\ndurability = \"memory\"")
}

#[test]
fn promises_to_php_are_kept_wherever_records_are() {
    let site = with_store();
    for namespace in ["default", "memory"] {
        for (path, expected) in promises() {
            assert_eq!(said(&site, path, namespace), expected, "{path} {namespace}");
        }
    }
}

#[test]
fn failures_have_their_reason() {
    let site = with_store();
    let expected = json!(["no_namespace", "too_large", null, "bad_call", "bad_call"]);
    for namespace in ["default", "memory"] {
        assert_eq!(said(&site, "/failures", namespace), expected, "{namespace}");
    }
}

#[test]
fn a_classic_script_waits_for_the_store() {
    let text = "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n\
                [app.site.pool]\nmin = 1\nmax = 1\n[kv]\ndata_dir = \"entities\"\n\
                [kv.namespace.memory]\ndurability = \"memory\"\n";
    let site = Configured::start(Docroot::of("entities"), text);
    for namespace in ["default", "memory", "default"] {
        let expected = json!([
            ["6f6e6500ff", ""],
            500_000,
            3,
            null,
            true,
            false,
            true,
            true,
            ["a", "b"],
            "no_namespace"
        ]);
        let response = site.client().get(&format!("/classic.php?namespace={namespace}"));
        let said: Value = serde_json::from_slice(&response.expect(200).body).unwrap();
        assert_eq!(said, expected, "{namespace}");
    }
}

#[test]
fn without_a_store_the_reason_is_reported() {
    let site = with_workers("");
    let response = site.client().get("/values");
    assert_eq!(response.status, 500);
    site.logs(&["this server has no entity store"]);
}
