//! PHP's report of its opcode cache on its way through the gateway.

use crate::Failure;
use crate::opcache::{Cache, Caches, Report};
use serde_json::{Value, json};

/// As PHP 8.2 prints `opcache_get_status(false)`, with `opcache.jit` off.
fn of_php() -> Value {
    json!({
        "opcache_enabled": true,
        "cache_full": false,
        "restart_pending": false,
        "memory_usage": {
            "used_memory": 18_878_128,
            "free_memory": 115_339_600,
            "wasted_memory": 0,
            "current_wasted_percentage": 0.25,
        },
        "interned_strings_usage": {
            "buffer_size": 6_291_008,
            "used_memory": 4_522_336,
            "free_memory": 1_768_672,
            "number_of_strings": 37_651,
        },
        "opcache_statistics": {
            "num_cached_scripts": 12,
            "num_cached_keys": 20,
            "max_cached_keys": 16_229,
            "hits": 480,
            "start_time": 1_700_000_000,
            "last_restart_time": 0,
            "oom_restarts": 0,
            "hash_restarts": 1,
            "manual_restarts": 2,
            "misses": 15,
            "blacklist_misses": 0,
            "opcache_hit_rate": 96.969_696,
        },
        "jit": {"enabled": false, "buffer_size": 0},
    })
}

#[test]
fn a_report_of_php_passes_unchanged() {
    let Cache::Report(report) = serde_json::from_value(of_php()).unwrap() else {
        panic!("it has no error");
    };
    assert_eq!(report.memory_usage.used_memory, 18_878_128);
    assert_eq!(report.opcache_statistics.hash_restarts, 1);
    assert_eq!(report.other["jit"]["enabled"], false);
    assert_eq!(serde_json::to_value(Cache::Report(report)).unwrap(), of_php());
}

#[test]
fn an_app_without_a_report_has_an_error() {
    let caches = json!({"apps": {"blog": {"error": "PHP has no OPcache"}, "shop": of_php()}});
    let read: Caches = serde_json::from_value(caches.clone()).unwrap();
    let failure = Failure { error: "PHP has no OPcache".to_owned() };
    assert_eq!(read.apps["blog"], Cache::Failed(failure));
    assert!(matches!(read.apps["shop"], Cache::Report(_)));
    assert_eq!(serde_json::to_value(read).unwrap(), caches);
}

#[test]
fn keys_that_a_version_of_php_lacks_count_as_zero() {
    let read: Cache = serde_json::from_value(json!({"cache_full": true})).unwrap();
    assert_eq!(read, Cache::Report(Box::new(Report { cache_full: true, ..Report::default() })));
    let read: Cache = serde_json::from_value(json!({})).unwrap();
    assert_eq!(read, Cache::Report(Box::default()));
}

#[test]
fn a_report_with_values_of_other_types_is_rejected() {
    for report in [
        json!({"cache_full": "no"}),
        json!({"memory_usage": {"used_memory": -1}}),
        json!({"opcache_statistics": {"hits": 1.5}}),
        json!({"memory_usage": null}),
        json!([]),
        json!("disabled"),
        json!(null),
    ] {
        let error = serde_json::from_value::<Cache>(report.clone()).unwrap_err();
        let expected = "data did not match any variant of untagged enum Cache";
        assert_eq!(error.to_string(), expected, "{report}");
    }
}
