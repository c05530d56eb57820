//! The examples of programs for Swoole answer as their READMEs say, served by their own configurations from a copy.

#![forbid(unsafe_code)]

use outboard_e2e::{Example, Request};
use serde_json::json;

#[test]
fn swooles_http_server_runs_unchanged_with_its_tasks_and_timers() {
    let example = Example::start("swoole/examples/server");
    let first = example.json(&Request::get("/?name=Ada").header("User-Agent", "test"), 200);
    assert_eq!((&first["get"], &first["agent"]), (&json!({"name": "Ada"}), &json!("test")));
    let posted = example.json(&Request::new("POST", "/").body("raw"), 200);
    assert_eq!([&posted["method"], &posted["body"]], ["POST", "raw"]);
    example.client().get("/pieces").expect(200).saying("one two three");
    example.json(&Request::get("/missing"), 404);
    assert_eq!(example.json(&Request::get("/wait"), 200)["waited"], 42);
    example.json(&Request::get("/task?number=4"), 200);
    // The task's result and the next tick come when they come.
    let arrived = (0..10_000).any(|_| {
        let now = example.json(&Request::get("/"), 200);
        now["finished"] == json!([8]) && now["ticks"].as_u64() > first["ticks"].as_u64()
    });
    assert!(arrived, "{}", example.json(&Request::get("/"), 200));
}

#[test]
fn swooles_pool_and_table_are_behind_the_api_of_notes() {
    let example = Example::start("swoole/examples/api");
    let post = |text: &str| Request::post("/notes", "application/json", text);
    let added = example.json(&post(r#"{"text": "buy milk"}"#), 201);
    assert_eq!(added, json!({"id": 1, "text": "buy milk"}));
    assert_eq!(example.json(&post("{}"), 422)["error"], "text: required");
    // More requests at a time than connections.
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let add = || example.json(&post(r#"{"text": "more"}"#), 201)["id"].as_u64();
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(add)).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("it is added")).collect()
    });
    assert_eq!(ids.iter().sum::<u64>(), (2..=21).sum::<u64>());
    assert_eq!(example.json(&Request::get("/notes"), 200).as_array().map(Vec::len), Some(21));
    example.client().send(&Request::new("DELETE", "/notes/1")).expect(204).saying("");
    example.json(&Request::get("/notes/1"), 404);
    example.json(&Request::new("PUT", "/notes"), 405);
    let stats = example.json(&Request::get("/stats"), 200);
    assert_eq!(stats["POST /notes"]["requests"], 22);
    assert_eq!(stats["GET /notes/ID"]["requests"], 1);
}
