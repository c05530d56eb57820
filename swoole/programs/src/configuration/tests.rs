//! What a program sets arrives in the configuration, or is named.

use super::*;
use outboard_config::{Config, Mode, ProgramPort, Protocol};
use serde_json::json;

fn description(settings: serde_json::Value, class: &str) -> Description {
    let port = json!({"host": "127.0.0.1", "port": 9501, "type": 1, "ssl": false,
        "http": true, "receives": false, "settings": {}});
    serde_json::from_value(json!({
        "class": class, "ports": [port], "settings": settings, "handlers": ["request"],
    }))
    .expect("it is a description")
}

fn configured(settings: serde_json::Value) -> (Configuration, Config) {
    let directory = PrivateDir::create(None, None).expect("a temporary directory");
    let script = directory.path("root").join("server.php");
    std::fs::write(&script, "<?php").expect("it is a directory of ours");
    let described = description(settings, "http");
    let arguments = ["a \"quoted\" one".to_owned()];
    let configuration = Configuration::of(&described, &script, &arguments, &directory, None);
    let configuration = configuration.expect("it can be served");
    let config = Config::parse(&configuration.text, &directory.path("outboard.toml"));
    let config = config.unwrap_or_else(|errors| panic!("{}\n{errors:?}", configuration.text));
    (configuration, config)
}

#[test]
fn options_become_the_configuration_of_the_app() {
    let (configuration, config) = configured(json!({
        "worker_num": 3, "task_worker_num": 2, "max_request": 1000, "package_max_length": 1_048_576,
        "http_compression": false, "enable_coroutine": false, "log_file": "/tmp/some.log",
    }));
    let app = &config.apps[0];
    let Mode::Worker(worker) = &app.mode else { panic!("the app is in worker mode") };
    assert!(worker.starts_server);
    assert_eq!(worker.concurrency, 1);
    assert_eq!(worker.arguments, ["a \"quoted\" one"]);
    assert_eq!(app.tasks.as_ref().map(|tasks| tasks.workers), Some(2));
    assert!(configuration.text.contains("min = 3\nmax = 3\n"));
    assert!(configuration.text.contains("max_requests = 1000\n"));
    assert!(configuration.text.contains("body = 1048576\n"));
    assert!(configuration.text.contains("compress = false\n"));
    assert_eq!(configuration.log_file, Some(PathBuf::from("/tmp/some.log")));
    assert_eq!(configuration.notice(), None);
}

#[test]
fn workers_of_the_base_mode_read_from_the_sockets_of_http() {
    let directory = PrivateDir::create(None, None).expect("a temporary directory");
    let script = directory.path("root").join("server.php");
    std::fs::write(&script, "<?php").expect("it is a directory of ours");
    for (class, mode, expected) in [("http", 1, true), ("http", 2, false), ("server", 1, false)] {
        let described = Description { mode, ..description(json!({}), class) };
        let configuration = Configuration::of(&described, &script, &[], &directory, None);
        let text = configuration.expect("it can be served").text;
        assert!(text.contains(&format!("direct = {expected}\n")), "{class} {mode}: {text}");
    }
}

#[test]
fn options_without_an_effect_are_named_in_order() {
    let (configuration, _) =
        configured(json!({"reactor_num": 2, "backlog": 128, "tcp_fastopen": 1, "worker_num": 1}));
    assert_eq!(
        configuration.notice().as_deref(),
        Some("note: these options have no effect here: reactor_num, tcp_fastopen")
    );
}

#[test]
fn what_restricts_is_honored_or_refused_by_name() {
    let directory = PrivateDir::create(None, None).expect("a temporary directory");
    let check = |settings: &serde_json::Value, of_port: &serde_json::Value| {
        let mut described = description(settings.clone(), "http");
        described.ports[0].settings = of_port.as_object().expect("they are options").clone();
        described.ports[0].ssl = settings.get("ssl_cert_file").is_some();
        described.unknown = vec!["of_the_program".to_owned()];
        Configuration::of(&described, Path::new("/server.php"), &[], &directory, None)
    };
    for (settings, of_port, named) in [
        (json!({"static_handler_locations": ["/public"]}), json!({}), "static_handler_locations"),
        (json!({"dispatch_func": true}), json!({}), "dispatch_func"),
        (json!({"chroot": "/srv"}), json!({}), "chroot"),
        (json!({"not_of_this_list": 1}), json!({}), "not_of_this_list"),
        (json!({"package_max_length": "a little"}), json!({}), "package_max_length"),
        (json!({}), json!({"package_max_length": 10}), "package_max_length"),
        (
            json!({"ssl_cert_file": "/c", "ssl_key_file": "/k", "ssl_verify_peer": true,
                "ssl_client_cert_file": "/ca"}),
            json!({}),
            "ssl_client_cert_file, ssl_verify_peer",
        ),
    ] {
        let message = check(&settings, &of_port).expect_err("it is refused");
        assert!(message.contains(&format!(": {named}. ")), "{message}");
    }
    let same = json!({"package_max_length": 10, "max_connection": 3, "max_concurrency": 9,
        "worker_num": 4, "heartbeat_check_interval": 30, "static_handler_locations": [],
        "ssl_verify_peer": true, "of_the_program": 1, "log_level": 2});
    let text = check(&same, &json!({"package_max_length": 10})).expect("it starts").text;
    for line in ["connections = 3", "concurrency = 2", "idle_timeout = 60", "body = 10"] {
        assert!(text.contains(&format!("{line}\n")), "{text}");
    }
}

#[test]
fn servers_of_other_protocols_are_refused_by_name() {
    let directory = PrivateDir::create(None, None).expect("a temporary directory");
    let refusal = |described: &Description| {
        let refused = Configuration::of(described, Path::new("/server.php"), &[], &directory, None);
        refused.expect_err("it is refused")
    };
    for (class, name) in
        [("websocket", "Swoole\\WebSocket\\Server"), ("redis", "Swoole\\Redis\\Server")]
    {
        let message = refusal(&description(json!({}), class));
        assert!(message.contains(name), "{message}");
    }
    let mut deaf = description(json!({}), "server");
    deaf.ports[0].http = false;
    assert!(refusal(&deaf).contains("\"receive\""));
    deaf.ports[0].kind = UDP;
    assert!(refusal(&deaf).contains("\"packet\""));
}

#[test]
fn raw_ports_are_listeners_of_the_app_with_their_number() {
    let mut described = description(json!({"worker_num": 1}), "http");
    let mut port = |kind, number| {
        let port = json!({"host": "127.0.0.1", "port": number, "type": kind, "ssl": false,
            "http": false, "receives": true, "settings": {}});
        described.ports.push(serde_json::from_value(port).expect("it is a port"));
    };
    port(1, 9502);
    port(UDP, 9502);
    let directory = PrivateDir::create(None, None).expect("a temporary directory");
    let script = directory.path("root").join("server.php");
    std::fs::write(&script, "<?php").expect("it is a directory of ours");
    let configuration = Configuration::of(&described, &script, &[], &directory, None);
    let mut configuration = configuration.expect("it can be served");
    configuration.set_listen(Some("127.0.0.1:80"));
    let config = Config::parse(&configuration.text, &directory.path("outboard.toml"));
    let config = config.unwrap_or_else(|errors| panic!("{}\n{errors:?}", configuration.text));
    let index = |index| ProgramPort { app: "run".to_owned(), index };
    let protocols: Vec<_> = config
        .listeners
        .iter()
        .map(|one| (one.address.to_string(), one.protocol.clone()))
        .collect();
    assert_eq!(
        protocols,
        [
            ("127.0.0.1:80".to_owned(), Protocol::Http),
            ("127.0.0.1:9502".to_owned(), Protocol::Stream(index(1))),
            ("127.0.0.1:9502".to_owned(), Protocol::Datagram(index(2))),
        ]
    );
}

#[test]
fn texts_are_quoted_for_toml() {
    assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000A\"");
}
