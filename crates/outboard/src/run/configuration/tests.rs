//! What a program sets arrives in the configuration, or is named.

use super::*;
use outboard_config::{Config, Mode};
use serde_json::json;

fn description(settings: serde_json::Value, class: &str) -> Description {
    let port = json!({"host": "127.0.0.1", "port": 9501, "type": 1, "ssl": false,
        "settings": {}, "handlers": []});
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
    assert!(worker.swoole);
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
fn options_without_an_effect_are_named_in_order() {
    let (configuration, _) = configured(json!({"reactor_num": 2, "backlog": 128, "worker_num": 1}));
    assert_eq!(
        configuration.notice().as_deref(),
        Some("note: these options have no effect here: backlog, reactor_num")
    );
}

#[test]
fn servers_of_other_protocols_are_refused_by_name() {
    let directory = PrivateDir::create(None, None).expect("a temporary directory");
    for (class, name) in [("websocket", "Swoole\\WebSocket\\Server"), ("server", "Swoole\\Server")]
    {
        let refused = Configuration::of(
            &description(json!({}), class),
            Path::new("/server.php"),
            &[],
            &directory,
            None,
        );
        let message = refused.expect_err("it is refused");
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn texts_are_quoted_for_toml() {
    assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000A\"");
}
