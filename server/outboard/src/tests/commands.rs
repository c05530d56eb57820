//! Commands for a running server: which request each sends, and its exit code.

use super::admin_server::AdminServer;
use crate::{Outboard, execute};
use clap::Parser;
use std::process::ExitCode;

/// The exit code of a command.
fn run(server: &AdminServer, words: &str) -> String {
    let socket = server.socket();
    let socket = socket.to_str().unwrap();
    let words = words.split(' ').chain(["--admin", socket]);
    let outboard = Outboard::try_parse_from(["outboard"].into_iter().chain(words));
    format!("{:?}", execute(outboard.unwrap_or_else(|error| panic!("{error}"))))
}

fn code(code: u8) -> String {
    format!("{:?}", ExitCode::from(code))
}

#[test]
fn each_command_is_one_request() {
    for (words, request, reply) in [
        ("reload", "POST /reload", r#"{"generation":2}"#),
        ("upgrade", "POST /upgrade", r#"{"pid":7}"#),
        ("stop", "POST /stop", r#"{"stopping":true}"#),
        (
            "ban 10.0.0.0/8 --for 1h --reason spam",
            "POST /bans/add?for_s=3600&network=10.0.0.0%2F8&reason=spam",
            r#"{"network":"10.0.0.0/8","was_banned":true}"#,
        ),
        (
            "unban ::1",
            "POST /bans/remove?network=%3A%3A1",
            r#"{"network":"::1","was_banned":true}"#,
        ),
        ("bans", "GET /bans", r#"{"bans":[{"network":"::1","until_s":null,"reason":"a"}]}"#),
        ("upstreams", "GET /upstreams", r#"{"upstreams":[]}"#),
        (
            "upstreams drain api http://a",
            "POST /upstreams/drain?server=http%3A%2F%2Fa&upstream=api",
            r#"{"servers":["http://a"],"was_drained":false,"under_way":0}"#,
        ),
        (
            "upstreams enable api http://a",
            "POST /upstreams/enable?server=http%3A%2F%2Fa&upstream=api",
            r#"{"servers":["http://a"],"was_drained":true,"under_way":0}"#,
        ),
        ("cache stats --app shop", "GET /cache/stats?app=shop", r#"{"apps":{}}"#),
        ("cache list --prefix /a", "GET /cache/list?prefix=%2Fa", r#"{"entries":[]}"#),
        ("cache get /a?b", "GET /cache/get?url=%2Fa%3Fb", r#"{"entries":[]}"#),
        (
            "cache purge --tag a --tag b --soft",
            "POST /cache/purge?soft=1&tag=a&tag=b",
            r#"{"purged":1}"#,
        ),
        ("cache purge --all --app a", "POST /cache/purge?all=1&app=a", r#"{"purged":1}"#),
        ("cache audit --sample 3", "POST /cache/audit?sample=3", r#"{"examined":3,"unsafe":[]}"#),
        ("process restart a q", "POST /process/restart?app=a&process=q", r#"{"instances":2}"#),
        ("process restart", "POST /process/restart", r#"{"instances":0}"#),
        ("snapshot retire a --key k", "POST /snapshot/retire?app=a&key=k", r#"{"apps":{"a":1}}"#),
        ("snapshot retire", "POST /snapshot/retire", r#"{"apps":{}}"#),
        ("opcache status", "GET /opcache", r#"{"apps":{"a":{"error":"no OPcache"},"b":{}}}"#),
        ("opcache reset", "POST /reload", r#"{"generation":3}"#),
        ("certificates", "GET /certificates", r#"{"certificates":[]}"#),
        ("kv stats --namespace a", "GET /kv/stats?namespace=a", r#"{"namespaces":[]}"#),
        ("kv compact", "POST /kv/compact", r#"{"compacted":"default"}"#),
        (
            "config show --running --origin",
            "GET /config",
            r#"{"file":"/a.toml","files":[],"settings":[]}"#,
        ),
    ] {
        let server = AdminServer::replying("commands", 200, reply);
        assert_eq!(run(&server, words), code(0), "{words}");
        assert_eq!(server.lines(), [request], "{words}");
        if !words.starts_with("kv compact") {
            assert_eq!(run(&server, &format!("{words} --json")), code(0), "{words}");
            assert_eq!(server.lines(), [request], "{words} --json");
        }
    }
}

#[test]
fn a_refusal_is_a_failure() {
    let server = AdminServer::replying("refusal", 409, r#"{"error":"not now"}"#);
    for words in ["reload", "status", "stop --json", "cache stats", "kv stats", "bans --json"] {
        assert_eq!(run(&server, words), code(1), "{words}");
    }
}

#[test]
fn a_server_that_is_none_is_a_failure() {
    for (status, body) in [(200, "<html>"), (200, r#"{"other":1}"#), (404, "not found")] {
        let server = AdminServer::start("foreign", move |_| (status, body.as_bytes().to_vec()));
        for words in ["reload", "status", "reload --json"] {
            assert_eq!(run(&server, words), code(1), "{body}");
        }
    }
}

#[test]
fn a_command_that_changed_nothing_has_exit_code_1() {
    let reply = r#"{"network":"::1","was_banned":false}"#;
    let server = AdminServer::replying("unban", 200, reply);
    assert_eq!(run(&server, "unban ::1"), code(1));
    let reply = r#"{"examined":1,"unsafe":[{"app":"a","url":"/","by":"cookie","excerpt":"Ann"}]}"#;
    let server = AdminServer::replying("unsafe", 200, reply);
    assert_eq!(run(&server, "cache audit"), code(1));
}

#[test]
fn records_are_read_written_and_deleted() {
    let server = AdminServer::start("records", |request| match request.split(' ').next() {
        Some("GET") => (200, b"value".to_vec()),
        Some("PUT") => (201, Vec::new()),
        _ => (202, Vec::new()),
    });
    for (words, request, body) in [
        ("kv get k/1", "GET /v0/entity?id=%6B%2F%31&", ""),
        ("kv put k v --ttl-ms 5", "PUT /v0/entity?id=%6B&ttl=%35&", "v"),
        ("kv put k v --namespace n", "PUT /v0/entity?id=%6B&namespace=%6E&", "v"),
        ("kv delete k", "DELETE /v0/entity?id=%6B&", ""),
    ] {
        assert_eq!(run(&server, words), code(0), "{words}");
        let expected = (request.to_owned(), body.as_bytes().to_vec());
        assert_eq!(server.take(), [expected], "{words}");
    }
}

#[test]
fn a_record_that_does_not_exist_has_exit_code_3() {
    let server = AdminServer::replying("missing", 404, "");
    assert_eq!(run(&server, "kv get k"), code(3));
    let server = AdminServer::replying("overload", 503, "");
    for words in ["kv get k", "kv put k v", "kv delete k", "kv scan"] {
        assert_eq!(run(&server, words), code(1), "{words}");
    }
}

#[test]
fn arguments_that_contradict_each_other_are_refused() {
    for words in [
        "cache purge",
        "ban",
        "ban ::1 --for 0",
        "config show a.toml --running",
        "serve --no-such-option",
        "init",
        "init shop --wordpress --template mvc",
        "kv put",
        "profile --hz 0",
        "profile --duration soon",
        "--color red list",
        "no-such-command",
    ] {
        let words = ["outboard"].into_iter().chain(words.split(' '));
        let words: Vec<&str> = words.collect();
        assert!(Outboard::try_parse_from(&words).is_err(), "{words:?}");
    }
}
