//! What the entity store promises to PHP, with each engine.

use outboard_e2e::{Configured, Docroot};
use serde_json::{Value, json};

/// What the steps of the fixture say.
pub(crate) fn promises() -> [(&'static str, Value); 6] {
    [
        ("/values", json!(["6f6e6500ff", "", "seven", 3, null, ""])),
        ("/counts", json!([99, "99", "not_a_number"])),
        ("/swaps", json!([true, false, true, false, "two", true, true])),
        ("/scan", json!([true, ["k00010", "k00011", "k00012"], []])),
        ("/lock", json!([true, true, true, false, false, true])),
        ("/many", json!([10_000, "value of many-1", "value of many-10000"])),
    ]
}

/// A server whose workers use a store.
pub(crate) fn with_workers(entities: &str) -> Configured {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n{entities}\n\
         [app.site]\nroot = \"www\"\nmode = \"worker\"\n[app.site.worker]\nscript = \"www/worker.php\"\n\
         concurrency = 100\n[app.site.pool]\nmin = 1\nmax = 1\n"
    );
    Configured::start(Docroot::of("entities"), &text)
}

/// What a step of the fixture says.
#[track_caller]
pub(crate) fn said(site: &Configured, path: &str, namespace: &str) -> Value {
    let response = site.client().get(&format!("{path}?namespace={namespace}")).expect(200);
    serde_json::from_slice(&response.body).expect("the fixture says JSON")
}
