//! What gateways share: locks, certificates, records and challenges.

use super::authority::Authority;
use super::fixture::{Fixture, config};
use super::redis::Redis;
use crate::commons::Commons;
use crate::plan::{NameRecord, OpenOrder};
use crate::worker::now_s;
use outboard_reactor::testing::in_loop;
use outboard_upstream::{Client, Settings};
use std::rc::Rc;

fn gateway(redis: &Redis, node: &str) -> Rc<Commons> {
    let http = Client::new(Settings::default());
    Rc::new(Commons::new(redis.config(), http, node.to_owned()))
}

#[test]
fn one_gateway_has_the_lock_of_a_name() {
    in_loop(async {
        let redis = Redis::start();
        let (one, other) = (gateway(&redis, "one"), gateway(&redis, "other"));
        assert_eq!(one.lock("a.test").await, Ok(true));
        assert_eq!(one.lock("a.test").await, Ok(true), "also again, after a restart");
        assert_eq!(other.lock("a.test").await, Ok(false));
        assert_eq!(other.lock("b.test").await, Ok(true));
        // A lock of another one is not released.
        other.unlock("a.test").await.unwrap();
        assert_eq!(other.lock("a.test").await, Ok(false));
        one.unlock("a.test").await.unwrap();
        assert_eq!(other.lock("a.test").await, Ok(true));
    });
}

#[test]
fn changes_and_challenges_are_news() {
    in_loop(async {
        let redis = Redis::start();
        let (one, other) = (gateway(&redis, "one"), gateway(&redis, "other"));
        let news = other.news().await.unwrap();
        assert_eq!((news.version, news.challenges.len()), (0, 0));
        for name in ["a.test", "b.test", "c.test"] {
            one.set_certificate(name, name.as_bytes()).await.unwrap();
        }
        one.set_challenge("http token", "token.key").await.unwrap();
        let news = other.news().await.unwrap();
        assert_eq!(news.version, 3);
        assert_eq!(news.challenges["http token"], "token.key");
        assert_eq!(other.changes(2).await.unwrap(), ["b.test", "c.test"]);
        assert_eq!(other.changes(0).await.unwrap(), ["c.test"]);
        assert_eq!(other.find("b.test").await.unwrap().pem.as_deref(), Some(&b"b.test"[..]));
        assert!(other.find("d.test").await.unwrap().pem.is_none());
        one.remove_challenge("http token").await.unwrap();
        assert!(other.news().await.unwrap().challenges.is_empty());
    });
}

#[test]
fn an_open_order_is_not_shared() {
    in_loop(async {
        let redis = Redis::start();
        let (one, other) = (gateway(&redis, "one"), gateway(&redis, "other"));
        let mut record = NameRecord::default();
        record.ordered(now_s());
        record.order = Some(OpenOrder { authority: "a".into(), url: "u".into(), key: "k".into() });
        one.set_record("a.test", &record).await.unwrap();
        let found = other.find("a.test").await.unwrap().record.expect("it is shared");
        assert_eq!((&found.order, found.orders()), (&None, record.orders()));
        // A record of another release is none.
        let key = "outboard:certificates:records";
        redis.data.borrow_mut().maps.get_mut(key).unwrap().insert("a.test".into(), b"[".to_vec());
        assert!(other.find("a.test").await.unwrap().record.is_none());
    });
}

#[test]
fn a_connection_that_fails_is_replaced() {
    in_loop(async {
        let redis = Redis::start();
        let one = gateway(&redis, "one");
        assert_eq!(one.lock("a.test").await, Ok(true));
        redis.data.borrow_mut().is_failing = true;
        let error = one.lock("a.test").await.unwrap_err();
        assert!(error.starts_with("127.0.0.1:") && error.contains(": "), "{error}");
        assert_eq!(one.lock("a.test").await, Ok(true));
    });
}

#[test]
fn nodes_have_different_names() {
    let (one, other) = (Commons::new_node().unwrap(), Commons::new_node().unwrap());
    assert_ne!(one, other);
    assert_eq!(one.len(), 22, "128 bits in base64url");
}

#[test]
fn another_gateway_uses_the_certificate_of_the_first() {
    in_loop(async {
        let (authority, redis) = (Authority::start(), Redis::start());
        let config = || config(&["a.test"], &[&authority]);
        let (first, second) =
            (Fixture::new("shared-1", config()), Fixture::new("shared-2", config()));
        for (fixture, node) in [(&first, "one"), (&second, "other")] {
            fixture.worker.commons.replace(Some(gateway(&redis, node)));
        }
        // The spread of a challenge takes seconds: the authority has verified the name before.
        authority.state.borrow_mut().order = "ready";
        let url = authority.url.replace("/directory", "/order/1");
        let key = crate::keys::generate().unwrap();
        let open = OpenOrder { authority: authority.url.clone(), url, key };
        let name = first.name("a.test");
        name.change(&first.worker.storage, |record| record.order = Some(open)).unwrap();
        authority.state.borrow_mut().issues_for = Some("a.test");
        assert!(first.attempt("a.test").await.credential().is_some());
        let name = second.attempt("a.test").await;
        let credential = name.credential().expect("it is adopted");
        assert_eq!(credential.facts(), first.name("a.test").credential().unwrap().facts());
        assert!(second.worker.issued.find("a.test").is_some());
        assert_eq!(authority.requests("/finalize"), 1);
        let lines = second.end();
        assert!(lines[0].ends_with("another gateway has obtained it"), "{lines:?}");
        first.end();
    });
}

#[test]
fn without_the_lock_nothing_is_ordered() {
    in_loop(async {
        let (authority, redis) = (Authority::start(), Redis::start());
        let fixture = Fixture::new("unlocked", config(&["a.test"], &[&authority]));
        fixture.worker.commons.replace(Some(gateway(&redis, "one")));
        assert_eq!(gateway(&redis, "other").lock("a.test").await, Ok(true));
        let name = fixture.attempt("a.test").await;
        assert!(name.other_until_s.get() > now_s());
        redis.data.borrow_mut().is_failing = true;
        let name = fixture.attempt("a.test").await;
        assert!(name.other_until_s.get() > now_s() + 20, "longer than for another gateway");
        assert_eq!((authority.requests("/directory"), name.record.borrow().failures), (0, 0));
        assert_eq!(fixture.end().len(), 1);
    });
}

#[test]
fn a_certificate_replaces_only_an_older_one_for_its_name() {
    in_loop(async {
        let (authority, redis) = (Authority::start(), Redis::start());
        let (one, fixture) = (
            gateway(&redis, "one"),
            Fixture::new("older", config(&["a.test", "b.test"], &[&authority])),
        );
        let own = fixture.attempt("a.test").await.credential().unwrap();
        let pem = fixture.worker.storage.certificate("a.test").unwrap().unwrap();
        // The same, and one for another name.
        for name in ["a.test", "b.test"] {
            one.set_certificate(name, &pem).await.unwrap();
            fixture.worker.adopt(&one, name).await.unwrap();
        }
        assert!(std::sync::Arc::ptr_eq(&own, &fixture.name("a.test").credential().unwrap()));
        assert!(fixture.name("b.test").credential().is_none());
        one.set_certificate("b.test", b"nothing").await.unwrap();
        assert!(fixture.worker.adopt(&one, "b.test").await.is_err());
        // A name that is not configured is ignored.
        assert_eq!(fixture.worker.adopt(&one, "c.test").await, Ok(()));
        fixture.end();
    });
}
