use crate::disk::FullDisk;
use crate::*;
use std::path::{Path, PathBuf};

const APP: &str = "[app.site]\nroot = \"public\"\n";

fn parse(text: &str) -> Result<Config, Diagnostics> {
    parse_on(&FullDisk, text, Path::new("/srv/www/outboard.toml"))
}

fn valid(text: &str) -> Config {
    parse(text).unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"))
}

fn site(text: &str) -> App {
    valid(&format!("{APP}{text}")).apps.remove(0)
}

fn assert_error(text: &str, kind: Kind, line: usize, words: &str) {
    let all = parse(text).unwrap_err();
    let found = all.iter().any(|error| {
        let hint = error.hint.as_deref().unwrap_or_default();
        error.kind == kind
            && error.position.as_ref().is_some_and(|position| position.line == line)
            && format!("{} / {hint}", error.message).contains(words)
    });
    assert!(found, "no {kind:?} in line {line} with `{words}` in:\n{all}");
}

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
fn development_has_one_worker_and_keeps_explicit_settings() {
    let production = valid(&format!("{APP}[app.site.pool]\nmax = 8\n"));
    assert_eq!(production.environment(), Environment::Production);
    assert_eq!(production.apps[0].pool.max, Count::Fixed(8));
    assert!(production.apps[0].static_files.cache_valid_ms > 0);
    let text = format!(
        "environment = \"development\"\n{APP}page_cache = \"auto\"\n[app.site.pool]\nmax = 8\n\
         [app.site.php.ini]\ndisplay_errors = true\n"
    );
    let development = valid(&text);
    assert_eq!(development.environment(), Environment::Development);
    assert!(!development.development.expect("it is written").watch.is_empty());
    let app = &development.apps[0];
    assert_eq!((app.pool.min, app.pool.max), (Count::Fixed(1), Count::Fixed(1)));
    assert!(app.page_cache.is_none() && app.static_files.cache_valid_ms == 0);
    assert_eq!(app.php.ini["opcache.revalidate_freq"], "0");
    assert_eq!(app.php.ini["display_errors"], "1");
    assert_eq!(app.php.env["OUTBOARD_ENV"], "development");
}

#[test]
fn files_are_compressed_with_the_app_within_the_memory_for_them() {
    let bytes = |keys: &str| valid(&format!("{APP}{keys}")).apps[0].compressed_files_bytes;
    assert_eq!(bytes(""), None);
    assert_eq!(bytes("compress = true\n"), Some(8 << 20));
    assert_eq!(bytes("compress = true\nstatic.compressed_memory = \"64k\"\n"), Some(64 << 10));
    assert_eq!(bytes("compress = true\nstatic.compressed_memory = 0\n"), None);
    let inherited = format!("static.compressed_memory = \"1m\"\n{APP}compress = true\n");
    assert_eq!(valid(&inherited).apps[0].compressed_files_bytes, Some(1 << 20));
    let development = format!("environment = \"development\"\n{APP}compress = true\n");
    assert_eq!(valid(&development).apps[0].compressed_files_bytes, None);
}

#[test]
fn a_file_without_an_app_is_rejected() {
    for text in ["", "# nothing\n", "[app]\n"] {
        let all = parse(text).unwrap_err();
        assert_eq!(all.len(), 1, "{all}");
        assert_eq!(all.iter().next().unwrap().kind, Kind::MissingKey);
    }
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
fn an_inherited_error_is_reported_where_it_was_written() {
    let text = "[pool]\nmin = 9\n[app.site]\nroot = \"public\"\npool.max = 2\n";
    assert_error(text, Kind::Conflict, 2, "`min` is 9 and `max` is 2");
}

#[test]
fn defaults_adapt_to_a_small_pool_but_explicit_values_do_not() {
    let pool = site("pool.max = 1\n").pool;
    assert_eq!((pool.max, pool.loopback_slots, pool.min_idle), (Count::Fixed(1), 1, 1));
    assert_error(
        &format!("{APP}pool = {{ max = 2, min_idle = 3 }}\n"),
        Kind::Conflict,
        3,
        "`min_idle`",
    );
    assert_error(&format!("{APP}pool = {{ max = 2, min = 3 }}\n"), Kind::Conflict, 3, "`min`");
}

#[test]
fn zero_means_unlimited_where_documented() {
    let app = site("pool = { max_requests = 0, max_worker_memory = 0 }\n");
    assert_eq!((app.pool.max_requests, app.pool.max_worker_memory_bytes), (None, None));
    assert_eq!(app.limits.keepalive_requests, None);
}

#[test]
fn listeners_are_addresses_or_tables() {
    let config = valid(&format!(
        "trusted_proxies = [\"10.0.0.0/8\"]\nforwarded_headers = [\"for\"]\n\
         listen = [\"[::]:80\", {{ address = \"unix:run/a.sock\", mode = \"0600\", \
         trusted_proxies = [\"unix\"], forwarded_headers = [\"proto\", \"host\"], name = \"local\" }}]\n{APP}"
    ));
    let [tcp, unix] = &config.listeners[..] else { panic!("{:?}", config.listeners) };
    assert_eq!((tcp.name.as_str(), unix.name.as_str()), ("[::]:80", "local"));
    assert!(tcp.forwarding.trusts(Some([10, 1, 1, 1].into())) && !tcp.forwarding.trusts(None));
    assert!(tcp.forwarding.client_address && !tcp.forwarding.scheme && !tcp.forwarding.host);
    assert!(unix.forwarding.trusts(None) && !unix.forwarding.trusts(Some([10, 1, 1, 1].into())));
    assert!(!unix.forwarding.client_address && unix.forwarding.scheme && unix.forwarding.host);
    let path = PathBuf::from("/srv/www/run/a.sock");
    assert_eq!(unix.address, ListenAddress::Unix { path, mode: 0o600 });
}

#[test]
fn two_listeners_cannot_share_an_address_or_a_name() {
    let text = format!("listen = [\"127.0.0.1:80\", \"localhost:80\"]\n{APP}");
    assert_error(&text, Kind::Duplicate, 1, "twice");
    let text =
        format!("{APP}[[listen]]\naddress = \"unix:a\"\n[[listen]]\naddress = \"unix:./a\"\n");
    assert_error(&text, Kind::Duplicate, 6, "(line 3)");
    let text = format!(
        "{APP}[[listen]]\naddress = \":1\"\nname = \"x\"\n[[listen]]\naddress = \":2\"\nname = \"x\"\n"
    );
    assert_error(&text, Kind::Duplicate, 8, "named `x`");
    assert_error(&format!("listen = []\n{APP}"), Kind::BadValue, 1, "empty");
    assert_eq!(valid(&format!("listen = [\":0\", \":0\"]\n{APP}")).listeners.len(), 2);
}

#[test]
fn a_socket_path_beyond_the_kernel_limit_is_rejected() {
    let text = format!("listen = \"unix:/{}\"\n{APP}", "x".repeat(107));
    assert_error(&text, Kind::BadValue, 1, "limit is 107");
    let text = format!("admin.socket = \"/{}\"\n{APP}", "x".repeat(107));
    assert_error(&text, Kind::BadValue, 1, "limit is 107");
}

#[test]
fn two_apps_cannot_claim_the_same_host_and_path() {
    let second = "[app.two]\nroot = \"two\"\n";
    assert_error(&format!("{APP}{second}"), Kind::Duplicate, 3, "every host at `/`");
    let text = format!("{APP}hosts = [\"a.b\", \"*.c\"]\n{second}hosts = \"*.C\"\n");
    assert_error(&text, Kind::Duplicate, 4, "`*.c`");
    assert_eq!(valid(&format!("{APP}{second}path = \"/two\"\n")).apps.len(), 2);
    assert_eq!(valid(&format!("{APP}{second}hosts = \"two.org\"\n")).apps.len(), 2);
}

#[test]
fn a_front_controller_is_a_script_below_the_root() {
    assert_eq!(site("front_controller = \"none\"\n").front_controller, None);
    let app = site("front_controller = \"app/front.php\"\n");
    assert_eq!(app.front_controller.as_deref(), Some("/app/front.php"));
    for bad in ["index.html", "../x.php", "/"] {
        let text = format!("{APP}front_controller = \"{bad}\"\n");
        assert_error(&text, Kind::BadValue, 3, "not a PHP script");
    }
}

/// Applies the only rule of an app to a path.
fn rewrite(keys: &str, path: &str) -> Option<Rewritten> {
    let app = site(&format!("[[app.site.rewrite]]\n{keys}\n"));
    assert!(app.rewrites[0].last && app.rewrites[0].when == RewriteWhen::Always);
    app.rewrites[0].apply(path.as_bytes())
}

fn to(path: &str, query: Option<&str>) -> Option<Rewritten> {
    Some(Rewritten::To { path: path.into(), query: query.map(Into::into) })
}

#[test]
fn a_rewrite_fills_in_what_its_groups_matched() {
    let rule = "match = '^/p/(?<id>\\d+)(x)?'\nto = '/i.php?id=${id}&x=$2&c=$$1'";
    assert_eq!(rewrite(rule, "/p/42"), to("/i.php", Some("id=42&x=&c=$1")));
    assert_eq!(rewrite(rule, "/q/42"), None);
    assert_eq!(rewrite("match = '^/(.*)'\nto = '/a/$1'", "/ü b"), to("/a/ü b", None));
}

#[test]
fn a_query_is_preserved_unless_the_rule_has_one() {
    assert_eq!(rewrite("match = '^/a'\nto = '/b'", "/a"), to("/b", None));
    assert_eq!(rewrite("match = '^/a'\nto = '/b?'", "/a"), to("/b", Some("")));
}

#[test]
fn a_rewrite_can_redirect_or_respond() {
    let redirect = Rewritten::Redirect {
        status: 308,
        location: b"https://b/x/y".to_vec(),
        query: Some(b"z=1".to_vec()),
    };
    let rule = "match = '^/a/(.*)'\nstatus = 308\nto = 'https://b/$1?z=1'";
    assert_eq!(rewrite(rule, "/a/x/y"), Some(redirect));
    assert_eq!(rewrite("match = '^/a'\nstatus = 410", "/a"), Some(Rewritten::Status(410)));
}

#[test]
fn a_path_cannot_break_a_header_or_add_a_parameter() {
    let rule = "match = '(?s)^/(.*)'\nstatus = 302\nto = '/é $1?q=$1'";
    let redirect = Rewritten::Redirect {
        status: 302,
        location: b"/%C3%A9%20a%0D%0AX:%3F%23&b=%C3%BC".to_vec(),
        query: Some(b"q=a%0D%0AX:%3F%23%26b%3D%C3%BC".to_vec()),
    };
    assert_eq!(rewrite(rule, "/a\r\nX:?#&b=ü"), Some(redirect));
}

#[test]
fn an_invalid_rewrite_is_rejected() {
    for (keys, kind, line, words) in [
        ("last = false", Kind::Conflict, 3, "neither"),
        ("status = 301", Kind::Conflict, 5, "needs `to`"),
        ("status = 404\nto = '/b'", Kind::Conflict, 5, "remove `to`"),
        ("status = 304", Kind::Conflict, 5, "304 is not a valid status"),
        ("to = 'b'", Kind::BadValue, 5, "slash"),
        ("to = '/$2'", Kind::BadValue, 5, "no group `2`"),
        ("to = '/${x}'", Kind::BadValue, 5, "no group `x`"),
        ("to = '/${x'", Kind::BadValue, 5, "not closed"),
        ("to = '/$'", Kind::BadValue, 5, "without a group"),
        ("to = \"/a\\r\\nb\"", Kind::BadValue, 5, "control"),
    ] {
        let text = format!("{APP}[[app.site.rewrite]]\nmatch = '^/(a)'\n{keys}\n");
        assert_error(&text, kind, line, words);
    }
}

#[test]
fn an_error_page_of_a_status_precedes_its_class() {
    let pages = site("error_pages = { 404 = \"/a.html\", 4xx = \"b.html\" }\n").error_pages;
    assert_eq!(pages[&404], Path::new("/srv/www/public/a.html"));
    assert_eq!(pages[&400], Path::new("/srv/www/public/b.html"));
    assert!(!pages.contains_key(&500));
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

#[test]
fn a_dashboard_on_an_address_has_a_user() {
    let text = |auth: &str| {
        format!(
            "[admin.dashboard]\nlisten = \"127.0.0.1:9180\"\nhosts = \"ops.example\"\n{auth}\n{APP}"
        )
    };
    let hash = "$2y$10$jg44ROIOPEAL4.BPqcHtj.RTllnd4NFJPTSSVPQgYPDtgKrhVs1bG";
    let config = valid(&text(&format!("basic_auth.users = {{ ops = '{hash}' }}")));
    let dashboard = config.admin.dashboard.expect("it is configured");
    assert_eq!(dashboard.listen, ListenAddress::Tcp(([127, 0, 0, 1], 9180).into()));
    assert_eq!(dashboard.hosts, ["ops.example"]);
    for auth in ["", "basic_auth = {}", "basic_auth.users = { ops = 'plain' }"] {
        assert!(parse(&text(auth)).is_err(), "{auth}");
    }
    let at = |address: &str| {
        let valid = text(&format!("basic_auth.users = {{ ops = '{hash}' }}"));
        parse(&valid.replace("127.0.0.1:9180", address)).is_ok()
    };
    for address in
        ["127.0.0.1:1", "127.8.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:/run/ops"]
    {
        assert!(at(address), "{address}");
    }
    for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[2001:db8::1]:1", ":9180"] {
        assert!(!at(address), "{address} is reachable without TLS");
    }
}

#[test]
fn symlink_targets_are_inherited_and_absolute() {
    let config = valid(
        "[static]\nsymlink_targets = [\"/usr/share/javascript\", \"shared\"]\n\
         [app.one]\nroot = \"one\"\n\
         [app.two]\nroot = \"two\"\npath = \"/two\"\nstatic.symlink_targets = [\"/var/lib/two\"]\n",
    );
    let targets = |app: usize| config.apps[app].static_files.symlink_targets.clone();
    assert_eq!(targets(0), ["/usr/share/javascript", "/srv/www/shared"].map(PathBuf::from));
    assert_eq!(targets(1), [PathBuf::from("/var/lib/two")]);
}

#[test]
fn an_accel_prefix_has_slashes_at_both_ends() {
    let accel =
        site("sendfile.accel = { \"/a\" = \"/files\", \"/b/\" = \"more\" }\n").sendfile.accel;
    assert_eq!(accel["/a/"], Path::new("/files"));
    assert_eq!(accel["/b/"], Path::new("/srv/www/more"));
}

#[test]
fn worker_mode_has_a_script_and_its_settings() {
    assert_eq!(site("").mode, Mode::Classic);
    let Mode::Worker(worker) = site("mode = \"worker\"\n").mode else { panic!("classic") };
    assert_eq!(worker.script, Path::new("/srv/www/public/index.php"));
    assert_eq!((worker.concurrency, worker.isolation), (1, Isolation::Reset));
    assert!(worker.frankenphp);
    let text = "mode = \"worker\"\n[app.site.worker]\nscript = \"bin/worker.php\"\n\
                isolation = \"rewind\"\nfrankenphp = false\n";
    let Mode::Worker(worker) = site(text).mode else { panic!("classic") };
    assert_eq!(worker.script, Path::new("/srv/www/bin/worker.php"));
    assert_eq!((worker.isolation, worker.frankenphp), (Isolation::Rewind, false));
    assert!(worker.watch, "its files are watched by default");
}

#[test]
fn only_the_files_of_a_snapshot_are_watched() {
    let worker = |keys: &str| format!("{APP}mode = \"worker\"\nworker = {{ {keys} }}\n");
    assert_error(&worker("watch = false"), Kind::Conflict, 4, "`watch` has no effect");
    let text = "mode = \"worker\"\nworker = { isolation = \"rewind\", watch = false }\n";
    let Mode::Worker(worker) = site(text).mode else { panic!("classic") };
    assert!(!worker.watch);
}

#[test]
fn a_rewound_worker_handles_one_request_at_a_time() {
    let text =
        format!("{APP}mode = \"worker\"\nworker = {{ isolation = \"rewind\", concurrency = 8 }}\n");
    assert_error(&text, Kind::Conflict, 4, "`concurrency` is 8");
    assert_error(
        &format!("{APP}mode = \"worker\"\nworker.concurrency = 1001\n"),
        Kind::OutOfRange,
        4,
        "from 1 to 1000",
    );
}

#[test]
fn worker_settings_must_match_the_mode() {
    let text = format!("{APP}[app.site.worker]\nscript = \"worker.php\"\n");
    assert_error(&text, Kind::Conflict, 3, "mode = \"worker\"");
    assert_eq!(
        site("mode = \"classic\"\n[app.site.worker]\nconcurrency = 2\n").mode,
        Mode::Classic
    );
    let text = format!("{APP}mode = \"worker\"\nfront_controller = \"/app.php\"\n");
    assert_error(&text, Kind::Conflict, 4, "no effect in worker mode");
}

#[test]
fn a_worker_script_served_as_a_file_is_an_error() {
    let text = format!("{APP}mode = \"worker\"\nworker.script = \"public/app.worker\"\n");
    assert_error(&text, Kind::Conflict, 4, "would be served as a file");
    for fine in ["public/app.php", "app.worker"] {
        site(&format!("mode = \"worker\"\nworker.script = \"{fine}\"\n"));
    }
}

#[test]
fn tasks_have_workers_and_a_script() {
    assert_eq!(site("").tasks, None);
    let tasks = site("mode = \"worker\"\ntasks.workers = 2\n").tasks.unwrap();
    assert_eq!((tasks.workers, tasks.concurrency, tasks.max_retries), (2, 1, 3));
    assert_eq!(tasks.script, Path::new("/srv/www/public/index.php"));
    let text = "[app.site.tasks]\nworkers = 1\nscript = \"bin/tasks.php\"\n\
                cron = { tidy = \"every 5m\" }\n";
    let tasks = site(text).tasks.unwrap();
    assert_eq!(tasks.script, Path::new("/srv/www/bin/tasks.php"));
    assert_eq!(tasks.cron, [("tidy".to_owned(), Schedule::Every(300_000))]);
}

#[test]
fn tasks_without_workers_are_an_error() {
    let text = format!("{APP}tasks.workers = 1\n");
    assert_error(&text, Kind::MissingKey, 3, "classic mode has no script for its tasks");
    let text = format!("{APP}tasks.cron = {{ tidy = \"0 3 * * *\" }}\n");
    assert_error(&text, Kind::Conflict, 3, "`workers` is 0");
    let text = format!("{APP}tasks.cron = {{ tidy = \"0 25 * * *\" }}\n");
    assert_error(&text, Kind::BadValue, 3, "`25` is not a valid hour");
}

#[test]
fn a_page_cache_is_a_mode_or_a_table() {
    assert_eq!(site("").page_cache, None);
    assert_eq!(site("page_cache = \"off\"\n").page_cache, None);
    let auto = site("page_cache = \"auto\"\n").page_cache.unwrap();
    assert_eq!((auto.default_ttl_s, auto.stale_while_revalidate_s), (1, 1));
    assert_eq!((auto.max_memory_bytes, &auto.presets), (64 << 20, &None));
    let text = "[app.site.page_cache]\nmode = \"on\"\ndefault_ttl = \"1500ms\"\n\
                presets = [\"drupal\"]\npurge_from = [\"10.0.0.0/8\"]\n";
    let on = site(text).page_cache.unwrap();
    assert_eq!((on.default_ttl_s, on.presets), (2, Some(vec!["drupal".to_owned()])));
    assert!(on.purge_from.trusts(Some([10, 1, 2, 3].into())));
    assert!(!on.purge_from.trusts(Some([127, 0, 0, 1].into())));
    let none = site("page_cache = { presets = [\"none\"] }\n").page_cache.unwrap();
    assert_eq!((none.default_ttl_s, none.presets), (1, Some(Vec::new())));
}

#[test]
fn unknown_presets_and_invalid_paths_are_errors() {
    for (key, words) in [
        ("presets = [\"typo\"]", "no preset `typo`"),
        ("presets = [\"drupal\", \"auto\"]", "alone"),
        ("bypass_paths = [\"account\"]", "leading slash"),
    ] {
        let text = format!("{APP}[app.site.page_cache]\n{key}\n");
        assert_error(&text, Kind::BadValue, 4, words);
    }
    assert_error(&format!("{APP}page_cache = \"full\"\n"), Kind::OutOfRange, 3, "auto");
}

#[test]
fn an_entity_store_is_a_directory_or_redis() {
    let entities = |text: &str| valid(&format!("{APP}[kv]\n{text}")).entities;
    assert_eq!(entities(""), None);
    let disk = entities("data_dir = \"kv\"").unwrap().storage.engine;
    assert_eq!(disk, EntityEngine::Disk("/srv/www/kv".into()));
    let redis = entities("engine = \"redis\"\n[kv.redis]\nnodes = [\"[::1]:6379\", \"h:1\"]\n");
    let EntityEngine::Redis(redis) = redis.unwrap().storage.engine else { panic!("no Redis") };
    assert_eq!((redis.nodes.len(), redis.replicas), (2, 1));
}

#[test]
fn settings_of_the_other_engine_are_an_error() {
    let error = |text: &str, kind: Kind, line: usize, words: &str| {
        assert_error(&format!("{APP}[kv]\n{text}"), kind, line, words);
    };
    error("path = \"/v0\"\n", Kind::MissingKey, 4, "no data directory");
    error("engine = \"redis\"\n", Kind::MissingKey, 4, "no Redis nodes");
    let redis = "engine = \"redis\"\ndurability = \"always\"\n[kv.redis]\nnodes = [\"h\"]\n";
    error(redis, Kind::BadValue, 5, "for the engine `disk`");
    error(redis, Kind::BadValue, 7, "not host:port");
}

#[test]
fn tasks_are_kept_in_a_store_of_the_gateway_alone() {
    let tasks =
        "[app.site.tasks]\nworkers = 1\nscript = \"www/index.php\"\nkv_namespace = \"default\"\n";
    let redis =
        "[kv]\nengine = \"redis\"\nlisten = \"127.0.0.1:1\"\n[kv.redis]\nnodes = [\"h:1\"]\n";
    let text = format!("{APP}{tasks}{redis}");
    assert_error(&text, Kind::Conflict, 6, "in Redis, which other gateways can use");
}

#[test]
fn an_app_uses_only_the_namespaces_it_names() {
    let store = "[kv]\ndata_dir = \"records\"\nlisten = \"127.0.0.1:1\"\n[kv.namespace.orders]\n";
    let alone = valid(&format!("{APP}{store}"));
    assert_eq!(alone.apps[0].kv_namespaces, None);
    assert!(alone.entities.unwrap().trusted_clients.trusts(Some([127, 0, 0, 1].into())));
    let two =
        format!("{APP}path = \"/a\"\nkv_namespaces = [\"orders\"]\n[app.two]\nroot = \"two\"\n");
    let config = valid(&format!("{two}{store}"));
    assert_eq!(config.apps[0].kv_namespaces.as_deref(), Some(&["orders".to_owned()][..]));
    assert_eq!(config.apps[1].kv_namespaces.as_deref(), Some(&[][..]));
    assert!(!config.entities.unwrap().trusted_clients.trusts(Some([127, 0, 0, 1].into())));
    let unknown = format!("{APP}kv_namespaces = [\"default\", \"order\"]\n{store}");
    assert_error(&unknown, Kind::Conflict, 3, "no namespace `order`");
}
