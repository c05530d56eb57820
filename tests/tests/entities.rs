//! The entity store over HTTP: the statuses of `/v0/entity`, conditions, ranges, and who may ask.

#![forbid(unsafe_code)]

#[path = "entities_promises/http.rs"]
mod http;

use http::{PROMISES, get, put};
use outboard_e2e::{Configured, Docroot, Request};

/// A server whose first listener is the store's own.
fn store(tables: &str) -> Configured {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\nto = \"off\"\n[app.site]\nroot = \"www\"\n\
         [entities]\nfolder = \"entities\"\n{tables}\n"
    );
    Configured::start(Docroot::of("entities"), &text)
}

fn on_own_listener() -> Configured {
    store("listen = \"127.0.0.1:0\"")
}

/// A visitor of the store's own listener, which comes after the apps'.
fn client(site: &Configured) -> outboard_e2e::Client {
    outboard_e2e::Client::new(site.address_of(1))
}

#[test]
fn promises_over_http_are_kept() {
    for promise in PROMISES {
        let site = on_own_listener();
        promise(&mut client(&site));
    }
}

#[test]
fn a_refusal_is_a_line_for_programs() {
    let site = on_own_listener();
    let refused = client(&site).send(&get("")).expect(400);
    assert!(refused.text().starts_with("entity_request: "), "{}", refused.text());
    assert_eq!(refused.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(refused.header("x-outboard-reason"), Some("entity_request"));
}

#[test]
fn a_value_that_is_too_long_is_refused_and_the_server_goes_on() {
    let site = store("listen = \"127.0.0.1:0\"\nmax_value = \"1 KiB\"");
    let mut client = client(&site);
    client.send(&put("a", &[7; 1024])).expect(201);
    client.send(&put("a", &[8; 1025])).expect(413);
    assert_eq!(client.send(&get("a")).expect(200).body, [7; 1024]);
}

#[test]
fn records_are_there_after_a_restart_and_after_a_reload() {
    let site = on_own_listener();
    client(&site).send(&put("a", b"kept")).expect(201);
    assert!(site.command("reload", &[]).status.success());
    assert_eq!(client(&site).send(&get("a")).expect(200).body, b"kept");
    let output = site.command("kv", &["get", "a"]);
    assert_eq!(output.stdout, b"kept");
}

#[test]
fn a_path_wants_its_token_and_apps_keep_the_rest() {
    const TOKEN: &str = "0123456789abcdef-token";
    let site = store(&format!("path = \"/v0\"\ntoken = \"{TOKEN}\""));
    let mut client = site.client();
    client.send(&put("a", b"x")).expect(401);
    client.send(&get("a").header("Authorization", "Bearer 0123456789abcdef-tokem")).expect(401);
    let bearer = format!("Bearer {TOKEN}");
    client.send(&put("a", b"x").header("Authorization", &bearer)).expect(201);
    client.send(&get("a").header("Authorization", &bearer)).expect(200);
    client.get("/hello.txt").expect(200);
    client.get("/v0").expect(404);
}

#[test]
fn peers_that_are_not_trusted_are_refused() {
    let site = store("listen = \"127.0.0.1:0\"\ntrusted = [\"10.0.0.0/8\"]");
    client(&site).send(&get("a")).expect(403);
    assert!(site.command("kv", &["put", "a", "x"]).status.success());
}

#[test]
fn namespaces_are_apart() {
    let site = store(
        "listen = \"127.0.0.1:0\"\n[entities.namespace.sessions]\ndurability = \"memory\"\n\
         [entities.namespace.orders]\ndurability = \"always\"",
    );
    let mut client = client(&site);
    let at = |method: &str, namespace: &str| {
        Request::new(method, &format!("/v0/entity?id=a&namespace={namespace}"))
    };
    for namespace in ["default", "sessions", "orders"] {
        client.send(&at("GET", namespace)).expect(404);
        client.send(&at("PUT", namespace).body(namespace.as_bytes().to_vec())).expect(201);
    }
    for namespace in ["default", "sessions", "orders"] {
        assert_eq!(client.send(&at("GET", namespace)).expect(200).text(), namespace);
    }
    client.send(&at("GET", "other")).expect(400);
}
