//! The entity store in a Redis Cluster: the same promises, and what becomes of them when nodes end
//! and slots move.

#![forbid(unsafe_code)]

#[path = "entities_promises/http.rs"]
mod http;
#[path = "entities_promises/php.rs"]
mod php;

use http::{get, put};
use outboard_e2e::{Client, Configured, RedisCluster, Request};
use php::{said, with_workers};

/// A server whose workers and own listener use the cluster. What is tried again is tried for longer
/// than a replica takes to become a primary.
fn with_cluster(cluster: &RedisCluster, prefix: &str, more: &str) -> Configured {
    with_workers(&format!(
        "[kv]\nengine = \"redis\"\nlisten = \"127.0.0.1:0\"\n[kv.redis]\n\
         nodes = {:?}\nprefix = {prefix:?}\ntimeout = \"60s\"\n{more}",
        cluster.addresses()
    ))
}

/// A visitor of the store's own listener.
fn client(site: &Configured) -> Client {
    Client::new(site.address_of(1))
}

fn with(method: &str, id: &str, parameters: &str) -> Request {
    let request = Request::new(method, &format!("/v0/entity?id={id}&{parameters}"));
    if method == "PUT" { request.body(b"value".to_vec()) } else { request }
}

#[test]
fn every_promise_of_the_store_is_kept_by_a_cluster() {
    let cluster = RedisCluster::start();
    for (number, promise) in http::PROMISES.into_iter().enumerate() {
        let site = with_cluster(&cluster, &format!("http-[{number}]:"), "");
        promise(&mut client(&site));
    }
    let site = with_cluster(&cluster, "php:", "");
    for (path, expected) in php::promises() {
        assert_eq!(said(&site, path, "default"), expected, "{path}");
    }
}

#[test]
fn a_write_waits_for_the_requested_replicas_or_is_504() {
    let cluster = RedisCluster::start();
    let site = with_cluster(&cluster, "", "replicas = 2\nack_timeout = \"500ms\"");
    let mut client = client(&site);
    for parameters in ["", "from=2", "ack=2", "ack=1", "ack=1&from=1", "ack=2&from=2"] {
        client.send(&with("PUT", "a", parameters)).expect(201);
        client.send(&with("GET", "a", parameters)).expect(200);
    }
    for parameters in ["ack=0", "ack=3", "ack=2&from=1", "from=3", "ack=x"] {
        client.send(&with("PUT", "a", parameters)).expect(400);
    }
    let primary = cluster.primary_of(&cluster.slot("default:a"));
    cluster.kill(cluster.replica_of(primary));
    client.send(&with("PUT", "a", "ack=2")).expect(504);
    client.send(&with("DELETE", "a", "")).expect(504);
    client.send(&with("GET", "a", "")).expect(404);
    client.send(&with("PUT", "a", "ack=1")).expect(201);
    client.send(&get("a")).expect(200);
}

#[test]
fn a_node_that_ends_takes_nothing_with_it_that_another_has() {
    let cluster = RedisCluster::start();
    let site = with_cluster(&cluster, "", "replicas = 2\nack_timeout = \"30s\"");
    let mut client = client(&site);
    for number in 0..100 {
        client.send(&put(&format!("k{number}"), b"before")).expect(201);
    }
    cluster.kill(cluster.primary_of(&cluster.slot("default:k0")));
    for number in 0..100 {
        let name = format!("k{number}");
        assert_eq!(client.send(&get(&name)).expect(200).body, b"before", "{name}");
        client.send(&with("PUT", &name, "ack=1")).expect(201);
        assert_eq!(client.send(&get(&name)).expect(200).body, b"value", "{name}");
    }
}

#[test]
fn a_slot_that_moves_is_followed_while_and_after_it_does() {
    let cluster = RedisCluster::start();
    let site = with_cluster(&cluster, "", "");
    let mut client = client(&site);
    let names = ["{m}1", "{m}2", "{m}3"];
    for name in &names[..2] {
        client.send(&put(name, b"before")).expect(201);
    }
    let slot = cluster.slot("default:{m}1");
    let from = cluster.primary_of(&slot);
    let to = (0..3).find(|node| *node != from).unwrap();
    let (from_id, to_id) = (cluster.id(from), cluster.id(to));
    cluster.ask(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    cluster.ask(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    cluster.migrate(from, to, &["default:{m}1"]);
    for name in &names[..2] {
        assert_eq!(client.send(&get(name)).expect(200).body, b"before");
        client.send(&put(name, b"between")).expect(201);
    }
    client.send(&put(names[2], b"between")).expect(201);
    cluster.migrate(from, to, &["default:{m}2"]);
    for node in [to, from] {
        cluster.ask(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    }
    for name in names {
        assert_eq!(client.send(&get(name)).expect(200).body, b"between");
        client.send(&put(name, b"after")).expect(201);
    }
    let range = client.send(&Request::get("/v0/entities?start=%7Bm")).expect(200);
    assert_eq!(range.text(), "{m}1\nafter{m}2\nafter{m}3\nafter");
}
