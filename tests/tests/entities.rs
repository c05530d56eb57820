//! The entity store over HTTP: the statuses of `/v0/entity`, conditions, ranges, and who may ask.

#![forbid(unsafe_code)]

#[path = "entities_promises/http.rs"]
mod http;

use http::{PROMISES, get, put};
use outboard_e2e::{Configured, Docroot, Request};
use std::io::{Read, Write};

/// A server whose first listener is the store's own.
fn store(tables: &str) -> Configured {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n\
         [kv]\ndata_dir = \"entities\"\n{tables}\n"
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
    let site = store("listen = \"127.0.0.1:0\"\ntrusted_clients = [\"10.0.0.0/8\"]");
    client(&site).send(&get("a")).expect(403);
    assert!(site.command("kv", &["put", "a", "x"]).status.success());
}

#[test]
fn namespaces_are_apart() {
    let site = store(
        "listen = \"127.0.0.1:0\"\n[kv.namespace.sessions]\ndurability = \"memory\"\n\
         [kv.namespace.orders]\ndurability = \"always\"",
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

#[test]
fn a_token_is_required_on_loopback_too() {
    const TOKEN: &str = "0123456789abcdef-token";
    let site = store(&format!("listen = \"127.0.0.1:0\"\ntoken = \"{TOKEN}\""));
    client(&site).send(&get("a")).expect(401);
    let bearer = format!("Bearer {TOKEN}");
    client(&site).send(&get("a").header("Authorization", &bearer)).expect(404);
}

/// A page of another site in a browser here, whose name leads to this machine.
#[test]
fn a_forged_host_name_does_not_open_the_store() {
    let site = on_own_listener();
    for (host, status) in [
        ("evil.test", 403),
        ("evil.test:8080", 403),
        ("127.0.0.1.evil.test", 403),
        ("localhost.evil.test", 403),
        ("localhost", 404),
        ("app.localhost:1", 404),
        ("127.0.0.1:1", 404),
        ("[::1]:1", 404),
        ("entities:6380", 404),
    ] {
        client(&site).send(&get("a").header("Host", host)).expect(status);
    }
}

#[test]
fn a_rejected_redis_password_is_reported_at_start() {
    let redis = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = redis.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in redis.incoming() {
            let mut connection = connection.unwrap();
            let mut asked = [0; 512];
            // A client that leaves at once has sent nothing.
            if connection.read(&mut asked).is_ok_and(|count| count > 0) {
                let _ = connection.write_all(b"-WRONGPASS invalid username-password pair\r\n");
            }
        }
    });
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n[app.site]\nroot = \"www\"\n\
         [kv]\nengine = \"redis\"\nlisten = \"127.0.0.1:0\"\n\
         [kv.redis]\nnodes = [\"{address}\"]\npassword = \"not it\"\n"
    );
    let site = Configured::start(Docroot::of("entities"), &text);
    let said = format!("Redis cannot be used: {address}: WRONGPASS");
    site.child().wait_for(|line| line.contains(&said).then_some(())).expect("it is said");
    assert!(!site.child().output().contains("not it"));
}
