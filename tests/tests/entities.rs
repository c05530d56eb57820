//! The entity store over HTTP: the statuses of `/v0/entity`, conditions, ranges, and who may ask.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request, Response};

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

fn get(id: &str) -> Request {
    Request::get(&format!("/v0/entity?id={id}"))
}

fn put(id: &str, value: &[u8]) -> Request {
    Request::new("PUT", &format!("/v0/entity?id={id}")).body(value.to_vec())
}

fn delete(id: &str) -> Request {
    Request::new("DELETE", &format!("/v0/entity?id={id}"))
}

#[track_caller]
fn tag(response: Response) -> String {
    response.header("etag").expect("an entity tag").to_owned()
}

#[test]
fn the_statuses_are_those_of_the_protocol() {
    let site = on_own_listener();
    let mut client = client(&site);
    client.send(&get("a")).expect(404);
    client.send(&put("a", b"value")).expect(201);
    assert_eq!(client.send(&get("a")).expect(200).body, b"value");
    client.send(&put("a", b"")).expect(201);
    assert_eq!(client.send(&get("a")).expect(200).body, b"");
    client.send(&delete("a")).expect(202);
    client.send(&delete("a")).expect(202);
    client.send(&get("a")).expect(404);
    client.send(&get("")).expect(400);
    client.send(&Request::get("/v0/entity")).expect(400);
    client.send(&put("", b"value")).expect(400);
    client.send(&Request::new("POST", "/v0/entity?id=a").body(b"x".to_vec())).expect(405);
    client.send(&Request::get("/v0/status")).expect(200);
    client.send(&Request::get("/v0/other")).expect(400);
    client.send(&Request::get("/")).expect(400);
}

#[test]
fn names_and_values_are_any_bytes() {
    let site = on_own_listener();
    let mut client = client(&site);
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for id in ["%00", "%FF%FE", "a%26b%3Dc", "%2B+x", "%F0%9F%98%80"] {
        client.send(&put(id, &value)).expect(201);
        assert_eq!(client.send(&get(id)).expect(200).body, value, "{id}");
    }
    client.send(&get("a")).expect(404);
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
fn conditional_writes_follow_the_entity_tag() {
    let site = on_own_listener();
    let mut client = client(&site);
    let mut with =
        |request: Request, name: &str, value: &str| client.send(&request.header(name, value));
    with(put("a", b"x"), "If-Match", "*").expect(412);
    let first = tag(with(put("a", b"one"), "If-None-Match", "*").expect(201));
    with(put("a", b"x"), "If-None-Match", "*").expect(412);
    assert_eq!(tag(with(get("a"), "Accept", "*/*").expect(200)), first);
    let second = tag(with(put("a", b"two"), "If-Match", &first).expect(201));
    with(put("a", b"x"), "If-Match", &first).expect(412);
    with(delete("a"), "If-Match", &first).expect(412);
    with(put("a", b"x"), "If-None-Match", &second).expect(412);
    with(get("a"), "If-None-Match", &second).expect(304);
    with(get("a"), "If-None-Match", &first).expect(200);
    with(put("a", b"x"), "If-Match", "no tag").expect(400);
    assert_eq!(with(get("a"), "Accept", "*/*").expect(200).body, b"two");
    with(delete("a"), "If-Match", &format!("{first}, {second}")).expect(202);
    client.send(&get("a")).expect(404);
}

#[test]
fn a_record_ends_when_its_time_is_over() {
    let site = on_own_listener();
    let mut client = client(&site);
    let timed =
        |ttl: &str| Request::new("PUT", &format!("/v0/entity?id=a&ttl={ttl}")).body(b"v".to_vec());
    client.send(&timed("600000")).expect(201);
    client.send(&get("a")).expect(200);
    client.send(&timed("0")).expect(201);
    client.send(&get("a")).expect(404);
    client.send(&timed("soon")).expect(400);
}

#[test]
fn a_range_is_every_record_from_start_to_before_end_in_order() {
    let site = on_own_listener();
    let mut client = client(&site);
    for id in ["b", "a", "d", "c", "aa"] {
        client.send(&put(id, id.to_uppercase().as_bytes())).expect(201);
    }
    client.send(&put("e", b"")).expect(201);
    for (query, expected) in [
        ("start=a&end=c", "a\nAaa\nAAb\nB"),
        ("start=aaa", "b\nBc\nCd\nDe\n"),
        ("start=c&end=c", ""),
        ("start=x", ""),
    ] {
        let response = client.send(&Request::get(&format!("/v0/entities?{query}"))).expect(200);
        assert_eq!(response.text(), expected, "{query}");
    }
    for query in ["", "start=", "end=c"] {
        client.send(&Request::get(&format!("/v0/entities?{query}"))).expect(400);
    }
}

#[test]
fn a_large_range_comes_whole() {
    let site = on_own_listener();
    let mut client = client(&site);
    let value = vec![b'v'; 5000];
    for number in 0..200 {
        client.send(&put(&format!("k{number:03}"), &value)).expect(201);
    }
    let range = client.send(&Request::get("/v0/entities?start=k")).expect(200).body;
    let expected: Vec<u8> = (0..200)
        .flat_map(|number| [format!("k{number:03}\n").into_bytes(), value.clone()].concat())
        .collect();
    assert!(range == expected);
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
