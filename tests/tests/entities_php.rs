//! `Outboard\KV`: the entity store as the shared state of PHP workers.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot};
use serde_json::{Value, json};

fn serving(entities: &str) -> Configured {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\nto = \"off\"\n{entities}\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"\n\
         concurrency = 100\n[app.site.pool]\nmin = 1\nmax = 1\n"
    );
    Configured::start(Docroot::of("entities"), &text)
}

fn with_store() -> Configured {
    serving(
        "[entities]\nfolder = \"entities\"\n[entities.namespace.memory]\ndurability = \"memory\"",
    )
}

/// What a step of the fixture says, which is the same wherever records are kept.
#[track_caller]
fn says(path: &str, expected: Value) {
    let site = with_store();
    for namespace in ["default", "memory"] {
        let target = format!("{path}?namespace={namespace}");
        let response = site.client().get(&target).expect(200);
        let said: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(said, expected, "{namespace}");
    }
}

#[test]
fn values_come_back_as_they_were_put() {
    says("/values", json!(["6f6e6500ff", "", "seven", 3, null, ""]));
}

#[test]
fn counting_at_the_same_time_loses_nothing() {
    says("/counts", json!([99, "99", "not_a_number"]));
}

#[test]
fn a_value_is_exchanged_only_for_the_one_that_was_expected() {
    says("/swaps", json!([true, false, true, false, "two", true, true]));
}

#[test]
fn a_scan_comes_in_order_and_whole() {
    says("/scan", json!([true, ["k00010", "k00011", "k00012"], []]));
}

#[test]
fn a_lock_is_one_s_at_a_time_and_ends_with_its_lease() {
    says("/lock", json!([true, true, true, false, false, true]));
}

#[test]
fn failures_have_their_reason() {
    says("/failures", json!(["no_namespace", "too_large", null]));
}

#[test]
fn ten_thousand_records_are_one_operation() {
    says("/many", json!([10_000, "value of many-1", "value of many-10000"]));
}

#[test]
fn without_a_store_the_reason_is_told() {
    let site = serving("");
    let response = site.client().get("/values");
    assert_eq!(response.status, 500);
    site.logs(&["this server has no entity store"]);
}
