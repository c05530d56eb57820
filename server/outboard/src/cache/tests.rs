//! The pages of `outboard cache`.

use super::*;
use serde_json::json;

fn stats(changes: serde_json::Value) -> AppStats {
    let mut stats = json!({
        "entries": 3, "used_bytes": 4096, "max_bytes": 8192, "hit": 6, "stale": 1, "miss": 2,
        "bypass": 1, "waiting": 0, "stored": 5, "evicted": 1, "purged": 1, "disk_entries": 0,
        "disk_bytes": 0, "presets": ["wordpress", "drupal"], "shared": null,
        "audit": { "examined": 0, "removed": [] },
    });
    for (name, value) in changes.as_object().unwrap() {
        stats[name] = value.clone();
    }
    serde_json::from_value(stats).unwrap()
}

fn page(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut page = String::new();
    write(&mut page).unwrap();
    page
}

#[test]
fn the_share_of_hits_is_of_all_requests() {
    let expected = "shop  70 % of 10 responses from the cache\n  \
                    responses 6 hit, 1 stale, 2 miss, 1 bypass; 0 waiting\n  \
                    entries   3 in 4 of 8 KiB; 5 stored, 1 evicted, 1 purged\n  \
                    presets   wordpress, drupal\n";
    assert_eq!(page(|page| write_app(page, "shop", &stats(json!({})))), expected);
    let unused = stats(json!({ "hit": 0, "stale": 0, "miss": 0, "bypass": 0 }));
    let text = page(|page| write_app(page, "shop", &unused));
    assert!(text.starts_with("shop  0 % of 0 responses"), "{text}");
}

#[test]
fn a_shared_tier_and_a_disk_have_lines_of_their_own() {
    let mut shared = json!({
        "server": "redis:6379", "name": "site", "away": null, "generation": 1, "hits": 2, "stores": 3,
        "purges_sent": 4, "purges_received": 5, "purges_unconfirmed": 6,
    });
    let text = |shared: &serde_json::Value| {
        let changes = json!({ "shared": shared, "disk_entries": 7, "disk_bytes": 8192 });
        page(|page| write_app(page, "shop", &stats(changes)))
    };
    let here = text(&shared);
    assert!(here.contains("  on disk   7 in 8 KiB\n  shared    as site by redis:6379\n"), "{here}");
    assert!(here.contains("2 hits, 3 stores; purges: 4 sent, 5 received, 6 not confirmed yet\n"));
    shared["away"] = "no route".into();
    assert!(text(&shared).contains("  shared    not now: no route\n"));
}

#[test]
fn a_page_that_is_not_cached_is_said_to_be_so() {
    assert_eq!(page(|page| write_details(page, &Details { entries: Vec::new() })), "not cached\n");
    let details: Details = serde_json::from_value(json!({ "entries": [{
        "app": "shop", "url": "http://a/", "status": 200, "body_bytes": 5, "age_s": 6,
        "fresh_for_s": -7, "varies_by": [], "codings": [], "headers": [["etag", "\"x\""]],
        "lifetime_from": "max-age", "audience": "everybody",
    }]}))
    .unwrap();
    let text = page(|page| write_details(page, &details));
    let lines: Vec<&str> = text.lines().collect();
    let words: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(words, ["200", "5", "B", "age", "6", "s", "fresh", "for", "-7", "s", "http://a/"]);
    assert_eq!(lines[1..], ["lifetime from max-age, for everybody", "  etag: \"x\""]);
}

#[test]
fn a_purge_that_other_gateways_do_not_know_is_reported() {
    let text = |confirmed| page(|page| write_purged(page, &Purged { purged: 2, confirmed }));
    assert_eq!(text(None), "2 purged\n");
    assert_eq!(text(Some(true)), "2 purged\n");
    let away = "2 purged; the shared server is away: other gateways follow once it is back\n";
    assert_eq!(text(Some(false)), away);
}

#[test]
fn an_unsafe_page_is_shown_with_the_difference() {
    let audited: Audited = serde_json::from_value(json!({
        "examined": 3, "unsafe": [{ "app": "a", "url": "/b", "by": "cookie", "excerpt": "Ann" }],
    }))
    .unwrap();
    let expected =
        "unsafe  /b\n        cookie makes a difference at \"Ann\"\n3 pages examined, 1 unsafe\n";
    assert_eq!(page(|page| write_findings(page, &audited)), expected);
}
