use super::testing::{APP, site, valid};
use crate::*;
use std::path::Path;

#[test]
fn a_root_is_a_complete_configuration() {
    let config = valid(APP);
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:8080");
    assert!(!config.listeners[0].forwarding.trusts(Some([127, 0, 0, 1].into())));
    let app = &config.apps[0];
    assert_eq!((app.name.as_str(), app.path_prefix.as_str()), ("site", "/"));
    assert_eq!(app.root, Path::new("/srv/www/public"));
    assert_eq!(app.front_controller.as_deref(), Some("/index.php"));
    assert_eq!(app.php.extensions, [".php"]);
    assert_eq!(app.limits, config.limits);
    assert_eq!(app.limits.request_deadline_ms, 60_000);
    assert_eq!(app.log, config.log);
}

#[test]
fn an_app_inherits_key_by_key() {
    let config = valid(
        "user = \"www\"\n\
         [limits]\nbody = \"1m\"\nbody_timeout = \"7s\"\nheader_timeout = \"9s\"\n\
         [php.ini]\nmemory_limit = \"1M\"\ndisplay_errors = true\n\
         [pool]\nmax = 3\nmin = 2\n\
         [log.slow]\nthreshold = \"2s\"\n\
         [static]\nmime = { a = \"x/y\" }\n\
         [app.one]\nroot = \"one\"\nlimits.body = \"2m\"\nphp.ini.memory_limit = \"2M\"\n\
         pool.max = 9\nlog.slow.path = \"off\"\nstatic.mime = { B = \"x/z\" }\n\
         [app.two]\nroot = \"two\"\npath = \"/two/\"\nuser = \"other\"\n",
    );
    let (one, two) = (&config.apps[0], &config.apps[1]);
    assert_eq!((one.limits.body_bytes, two.limits.body_bytes), (2 << 20, 1 << 20));
    assert_eq!((one.limits.body_timeout_ms, one.limits.header_timeout_ms), (7_000, 9_000));
    assert_eq!(
        (one.php.ini["memory_limit"].as_str(), two.php.ini["memory_limit"].as_str()),
        ("2M", "1M")
    );
    assert_eq!(one.php.ini["display_errors"], "1");
    assert_eq!((one.pool.min, one.pool.max), (Count::Fixed(2), Count::Fixed(9)));
    assert_eq!((&one.log.slow.path, one.log.slow.threshold_ms), (&LogTarget::Off, 2_000));
    assert_eq!(one.static_files.mime_overrides.len(), 2);
    assert_eq!(one.static_files.mime_overrides["b"], "x/z");
    assert_eq!((one.user.as_deref(), two.user.as_deref()), (Some("www"), Some("other")));
    assert_eq!(two.path_prefix, "/two");
}

#[test]
fn zero_means_unlimited_where_documented() {
    let app = site("pool = { max_requests = 0, max_worker_memory = 0 }\n");
    assert_eq!((app.pool.max_requests, app.pool.max_worker_memory_bytes), (None, None));
    assert_eq!(app.limits.keepalive_requests, None);
}

#[test]
fn the_body_in_memory_is_never_more_than_the_body() {
    assert_eq!(site("limits.body = \"1k\"\n").limits.body_memory_bytes, 1024);
}

#[test]
fn metrics_are_a_path_or_an_address() {
    let metrics = |value: &str| valid(&format!("admin.metrics = \"{value}\"\n{APP}")).admin.metrics;
    assert_eq!(metrics("/metrics"), Some(Metrics::Path("/metrics".to_owned())));
    let tcp = ListenAddress::Tcp(([127, 0, 0, 1], 9100).into());
    assert_eq!(metrics("127.0.0.1:9100"), Some(Metrics::Listen(tcp)));
}
