//! Attempts: what is ordered, in which order, and what each failure means.

use super::authority::Authority;
use super::fixture::{Fixture, config};
use crate::plan::{OpenOrder, Step};
use crate::worker::now_s;
use outboard_config::{Authority as Configured, Challenge, ExternalAccount, Secret};
use outboard_reactor::testing::in_loop;
use serde_json::json;
use std::rc::Rc;

const NAME: &str = "a.test";
const RATE_LIMITED: &str =
    r#"{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many"}"#;
const REJECTED: &str =
    r#"{"type":"urn:ietf:params:acme:error:rejectedIdentifier","detail":"not this one"}"#;

#[test]
fn a_certificate_is_obtained_stored_and_used() {
    in_loop(async {
        let authority = Authority::start();
        let mut config = config(&[NAME], &[&authority]);
        (config.email, config.profile) = (Some("a@a.test".to_owned()), Some("short".to_owned()));
        let fixture = Fixture::new("obtained", config);
        // The response is there when the authority looks, and is withdrawn afterwards.
        let issued = fixture.worker.issued.clone();
        authority.state.borrow_mut().checks = Some(Box::new(move |kind| {
            let response = issued.response("token-1");
            kind == "http-01" && response.is_some_and(|text| text.starts_with("token-1."))
        }));
        let name = fixture.attempt(NAME).await;
        let credential = name.credential().expect("it was issued");
        assert!(credential.covers(NAME));
        assert!(fixture.worker.issued.find(NAME).is_some());
        assert_eq!(fixture.worker.issued.response("token-1"), None);
        let contact = json!({ "termsOfServiceAgreed": true, "contact": ["mailto:a@a.test"] });
        assert_eq!(authority.payload("/account"), contact);
        let identifiers = json!([{ "type": "dns", "value": NAME }]);
        let order = json!({ "identifiers": identifiers, "profile": "short" });
        assert_eq!(authority.payload("/order"), order);
        {
            let record = name.record.borrow();
            assert_eq!((&record.order, record.failures), (&None, 0));
            assert_eq!(record.authority.as_ref(), Some(&authority.url));
        }
        assert!(matches!(name.next_step(now_s(), [0], fixture.worker.limits()), Step::Wait(_)));
        // A process that starts now uses what is stored, and orders nothing.
        let next = Fixture::at(fixture.directory.clone(), (*fixture.worker.config()).clone());
        assert!(next.worker.issued.find(NAME).is_some());
        next.attempt(NAME).await;
        assert_eq!(authority.requests("/order"), 1);
        let lines = fixture.end();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("Info: certificate for a.test: issued by "), "{lines:?}");
    });
}

#[test]
fn a_renewal_names_the_certificate_that_it_replaces() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("renewal", config(&[NAME], &[&authority]));
        let first = fixture.attempt(NAME).await.credential().unwrap();
        let name = fixture.name(NAME);
        // The authority recommends to renew it at once; it does not know the certificate any more.
        authority.fail(
            "/order",
            409,
            "",
            r#"{"type":"urn:ietf:params:acme:error:alreadyReplaced"}"#,
        );
        let window = crate::plan::Window::new(now_s(), (0, 0), None);
        name.change(&fixture.worker.storage, |record| record.window = Some(window)).unwrap();
        let second = fixture.attempt(NAME).await.credential().unwrap();
        assert_ne!(first.facts().serial, second.facts().serial);
        let state = authority.state.borrow();
        let orders = state.payloads.iter().filter(|(path, _)| path == "/order");
        let replaced: Vec<_> =
            orders.map(|(_, payload)| payload.get("replaces").is_some()).collect();
        assert_eq!(replaced, [false, true, false]);
        drop(state);
        fixture.end();
    });
}

#[test]
fn a_refusal_is_recorded_with_its_reason() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("refused", config(&[NAME], &[&authority]));
        authority.fail("/order", 400, "", REJECTED);
        let reason = "the authority refuses: not this one (rejectedIdentifier)";
        assert_eq!(fixture.error(NAME).await, format!("{}: {reason}", authority.url));
        let name = fixture.name(NAME);
        assert_eq!((name.record.borrow().failures, name.credential().is_none()), (1, true));
        let Step::Wait(at_s) = fixture.worker.next_step(&name, now_s()) else { panic!("no pause") };
        assert!(at_s > now_s() + 30);
        let url = authority.url.clone();
        assert_eq!(
            fixture.end(),
            [
                format!("Warn: certificate for a.test: {url}: {reason}"),
                format!("Error: certificate for a.test: {url}: {reason}; trying again later"),
            ]
        );
    });
}

#[test]
fn the_next_authority_is_used_if_one_fails() {
    in_loop(async {
        let (first, second) = (Authority::start(), Authority::start());
        let fixture = Fixture::new("second", config(&[NAME], &[&first, &second]));
        first.fail("/directory", 503, "", "<html>");
        let name = fixture.attempt(NAME).await;
        assert_eq!(name.record.borrow().authority.as_ref(), Some(&second.url));
        assert_eq!((first.requests("/order"), second.requests("/order")), (0, 1));
        let account = fixture.worker.account(&first.url).unwrap();
        assert!(account.responding_s() > now_s(), "it is not requested for a while");
        fixture.end();
    });
}

#[test]
fn a_pause_that_an_authority_requests_is_kept() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("limited", config(&[NAME], &[&authority]));
        authority.fail("/order", 429, "Retry-After: 7200\r\n", RATE_LIMITED);
        let before_s = now_s();
        assert!(fixture.error(NAME).await.ends_with("too many (rateLimited)"));
        let name = fixture.name(NAME);
        let paused_s = name.record.borrow().paused_s(&authority.url);
        assert!((before_s + 7200..=now_s() + 7200).contains(&paused_s));
        assert_eq!(fixture.worker.next_step(&name, now_s()), Step::Wait(paused_s));
        fixture.end();
    });
}

#[test]
fn a_rejected_nonce_is_replaced() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("nonce", config(&[NAME], &[&authority]));
        let body = r#"{"type":"urn:ietf:params:acme:error:badNonce"}"#;
        authority.fail("/account", 400, "", body);
        authority.fail("/order", 400, "", body);
        authority.fail("/order", 400, "", body);
        assert!(fixture.attempt(NAME).await.credential().is_some());
        assert_eq!((authority.requests("/account"), authority.requests("/order")), (2, 3));
        fixture.end();
    });
}

#[test]
fn after_a_failed_check_the_next_way_is_tried() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("ways", config(&[NAME], &[&authority]));
        authority.state.borrow_mut().checks = Some(Box::new(|kind| kind == "tls-alpn-01"));
        let error = fixture.error(NAME).await;
        assert!(error.ends_with("could not verify the name: no address (dns)"), "{error}");
        let name = fixture.name(NAME);
        assert_eq!(name.record.borrow().order, None, "it is not continued");
        assert!(fixture.attempt(NAME).await.credential().is_none(), "not before its pause");
        assert_eq!(authority.requests("/check/tls-alpn-01"), 0);
        name.change(&fixture.worker.storage, |record| record.correct(0)).unwrap();
        assert!(fixture.attempt(NAME).await.credential().is_some());
        assert_eq!(authority.requests("/check/http-01"), 1);
        assert_eq!(authority.requests("/check/tls-alpn-01"), 1);
        fixture.end();
    });
}

#[test]
fn an_interrupted_order_is_continued_with_its_key() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("interrupted", config(&[NAME], &[&authority]));
        // The certificate cannot be received: the process ends.
        authority.fail("/certificate", 500, "", "");
        fixture.error(NAME).await;
        let name = fixture.name(NAME);
        let open = name.record.borrow().order.clone().expect("the order remains");
        assert_eq!(open.authority, authority.url);
        name.change(&fixture.worker.storage, |record| record.correct(0)).unwrap();
        let account = fixture.worker.account(&authority.url).unwrap();
        account.change(&fixture.worker.storage, |record| record.responded()).unwrap();
        let next = Fixture::at(fixture.directory.clone(), config(&[NAME], &[&authority]));
        assert!(next.attempt(NAME).await.credential().is_some());
        assert_eq!(authority.requests("/order"), 1);
        let stored = next.worker.storage.certificate(NAME).unwrap().unwrap();
        assert!(String::from_utf8(stored).unwrap().starts_with(open.key.trim_end()));
        fixture.end();
    });
}

#[test]
fn an_order_that_the_authority_has_forgotten_is_placed_again() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("forgotten", config(&[NAME], &[&authority]));
        let url = authority.url.replace("/directory", "/order/1");
        let open = OpenOrder { authority: authority.url.clone(), url, key: "lost".to_owned() };
        let name = fixture.name(NAME);
        name.change(&fixture.worker.storage, |record| record.order = Some(open)).unwrap();
        authority.fail("/order/1", 404, "", "");
        assert!(fixture.attempt(NAME).await.credential().is_some());
        assert_eq!(authority.requests("/order"), 1);
        fixture.end();
    });
}

#[test]
fn a_lost_account_is_created_again() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("account", config(&[NAME], &[&authority]));
        authority.fail(
            "/order",
            400,
            "",
            r#"{"type":"urn:ietf:params:acme:error:accountDoesNotExist"}"#,
        );
        assert!(fixture.attempt(NAME).await.credential().is_some());
        assert_eq!(authority.requests("/account"), 2);
        fixture.end();
    });
}

#[test]
fn an_external_account_belongs_to_the_first_authority() {
    in_loop(async {
        let (first, second) = (Authority::start(), Authority::start());
        let mut config = config(&[NAME], &[&first, &second]);
        let key = Secret("c2VjcmV0".to_owned());
        config.external_account = Some(ExternalAccount { id: "kid-1".to_owned(), key });
        let fixture = Fixture::new("external", config);
        first.fail("/order", 500, "", "");
        assert!(fixture.attempt(NAME).await.credential().is_some());
        assert!(first.payload("/account").get("externalAccountBinding").is_some());
        assert!(second.payload("/account").get("externalAccountBinding").is_none());
        fixture.end();
    });
}

#[test]
fn a_certificate_for_another_name_or_key_is_not_used() {
    in_loop(async {
        for (issues_for, has_other_key, reason) in [
            (Some("b.test"), false, "it is not for a.test"),
            (None, true, "the private key is not that of the certificate"),
        ] {
            let authority = Authority::start();
            let fixture = Fixture::new("unusable", config(&[NAME], &[&authority]));
            authority.state.borrow_mut().issues_for = issues_for;
            authority.state.borrow_mut().has_other_key = has_other_key;
            let error = fixture.error(NAME).await;
            assert!(
                error.ends_with(&format!("the certificate cannot be used: {reason}")),
                "{error}"
            );
            let name = fixture.name(NAME);
            assert_eq!((name.credential().is_none(), &name.record.borrow().order), (true, &None));
            assert_eq!(fixture.worker.storage.certificate(NAME), Ok(None));
            fixture.end();
        }
    });
}

#[test]
fn no_more_orders_are_placed_than_allowed() {
    in_loop(async {
        let authority = Authority::start();
        let mut config = config(&[NAME, "b.test"], &[&authority]);
        config.max_orders = 1;
        let fixture = Fixture::new("limits", config);
        assert!(fixture.attempt(NAME).await.credential().is_some());
        let other = fixture.name("b.test");
        let Step::Wait(at_s) = fixture.worker.next_step(&other, now_s()) else {
            panic!("no pause")
        };
        assert!(at_s > now_s() + 10_000, "3 hours");
        assert!(fixture.attempt("b.test").await.credential().is_none());
        assert_eq!(authority.requests("/order"), 1);
        fixture.end();
    });
}

#[test]
fn a_wildcard_is_checked_by_dns_alone() {
    in_loop(async {
        let authority = Authority::start();
        let without = Fixture::new("wildcard", config(&["*.a.test"], &[&authority]));
        let error = without.error("*.a.test").await;
        assert!(error.ends_with("can check this name in none of the configured ways"), "{error}");
        without.end();
        let mut config = config(&["*.a.test"], &[&authority]);
        config.challenges = vec![Challenge::Http01, Challenge::Dns01];
        config.dns_hook = Some("/bin/false".into());
        let fixture = Fixture::new("wildcard-dns", config);
        let error = fixture.error("*.a.test").await;
        assert!(error.ends_with("/bin/false present: exit status: 1"), "{error}");
        fixture.end();
    });
}

#[test]
fn names_of_localhost_have_the_local_authority() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("local", config(&["a.localhost"], &[&authority]));
        let name = fixture.attempt("a.localhost").await;
        assert!(name.credential().unwrap().covers("a.localhost"));
        assert_eq!(authority.requests("/directory"), 0);
        fixture.end();
        let local = crate::tests::fixture::config(&[NAME], &[]);
        let local = outboard_config::Acme { authorities: vec![Configured::Local], ..local };
        let fixture = Fixture::new("local-all", local);
        assert!(fixture.attempt(NAME).await.credential().is_some());
        fixture.end();
    });
}

#[test]
fn a_name_that_another_process_has_is_left_to_it() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("lock", config(&[NAME], &[&authority]));
        let held = fixture.worker.storage.lock(NAME).unwrap();
        let name = fixture.attempt(NAME).await;
        assert_eq!((authority.requests("/directory"), name.record.borrow().failures), (0, 0));
        assert!(matches!(fixture.worker.next_step(&name, now_s()), Step::Wait(_)));
        drop(held);
        name.other_until_s.set(0);
        assert!(Rc::ptr_eq(&name, &fixture.attempt(NAME).await));
        assert!(name.credential().is_some());
        fixture.end();
    });
}
