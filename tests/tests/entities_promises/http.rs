//! What the entity store promises over HTTP, with each engine.

use outboard_e2e::{Client, Request, Response};

/// Each wants a store without records.
pub(crate) const PROMISES: [fn(&mut Client); 6] = [
    the_statuses_are_those_of_the_protocol,
    names_and_values_are_any_bytes,
    conditional_writes_follow_the_entity_tag,
    a_record_ends_when_its_time_is_over,
    a_range_is_every_record_from_start_to_before_end_in_order,
    a_large_range_comes_whole,
];

pub(crate) fn get(id: &str) -> Request {
    Request::get(&format!("/v0/entity?id={id}"))
}

pub(crate) fn put(id: &str, value: &[u8]) -> Request {
    Request::new("PUT", &format!("/v0/entity?id={id}")).body(value.to_vec())
}

fn delete(id: &str) -> Request {
    Request::new("DELETE", &format!("/v0/entity?id={id}"))
}

#[track_caller]
fn tag(response: Response) -> String {
    response.header("etag").expect("an entity tag").to_owned()
}

fn the_statuses_are_those_of_the_protocol(client: &mut Client) {
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
    client.send(&Request::new("POST", "/v0/status")).expect(405);
    client.send(&Request::get("/v0/other")).expect(400);
    client.send(&Request::get("/")).expect(400);
}

fn names_and_values_are_any_bytes(client: &mut Client) {
    let value: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for id in ["%00", "%FF%FE", "a%26b%3Dc", "%2B+x", "%F0%9F%98%80"] {
        client.send(&put(id, &value)).expect(201);
        assert_eq!(client.send(&get(id)).expect(200).body, value, "{id}");
    }
    client.send(&get("a")).expect(404);
}

fn conditional_writes_follow_the_entity_tag(client: &mut Client) {
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

fn a_record_ends_when_its_time_is_over(client: &mut Client) {
    let timed =
        |ttl: &str| Request::new("PUT", &format!("/v0/entity?id=a&ttl={ttl}")).body(b"v".to_vec());
    client.send(&timed("600000")).expect(201);
    client.send(&get("a")).expect(200);
    client.send(&timed("0")).expect(201);
    client.send(&get("a")).expect(404);
    client.send(&timed("soon")).expect(400);
}

fn a_range_is_every_record_from_start_to_before_end_in_order(client: &mut Client) {
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

fn a_large_range_comes_whole(client: &mut Client) {
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
