//! Which names the worker has, and what it does with those that clients request.

use super::authority::Authority;
use super::fixture::{Fixture, config};
use outboard_config::Acme;
use outboard_reactor::testing::{in_loop, wait_for};
use outboard_upstream::testing::{Upstream, ok};

fn names(fixture: &Fixture) -> Vec<String> {
    fixture.worker.all_names()
}

/// Has a handshake request a name, and the worker look at it.
fn request(fixture: &Fixture, name: &str) {
    fixture.worker.issued.request(name, None);
    fixture.worker.statuses.add_missing(name);
    fixture.worker.report_missing();
}

#[test]
fn a_reload_forgets_names_that_are_not_configured() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("reload", config(&["a.test", "b.test"], &[&authority]));
        fixture.attempt("a.test").await;
        fixture.worker.configure(config(&["b.test", "c.test"], &[&authority]));
        assert_eq!(names(&fixture), ["b.test", "c.test"]);
        assert!(fixture.worker.issued.find("a.test").is_none());
        // It is on disk, for the case that the name comes back.
        fixture.worker.configure(config(&["a.test"], &[&authority]));
        assert!(fixture.worker.issued.find("a.test").is_some());
        fixture.end();
    });
}

#[test]
fn a_name_without_a_certificate_is_logged_once_a_minute() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("logged", config(&["a.test"], &[&authority]));
        let name = fixture.name("a.test");
        for name in ["a.test", "evil\n.test", "a.test", "evil\n.test"] {
            request(&fixture, name);
        }
        name.record.borrow_mut().failed(crate::worker::now_s(), "no address".to_owned());
        assert_eq!(
            fixture.end(),
            [
                "Warn: no TLS for a.test: there is no certificate yet",
                "Warn: no TLS for evil\\n.test: it is not a name of this server",
            ]
        );
    });
}

#[test]
fn handshakes_do_not_wait_for_a_name_whose_attempt_is_later() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("later", config(&["a.test", "b.test"], &[&authority]));
        let failed = fixture.name("b.test");
        failed.record.borrow_mut().failed(crate::worker::now_s(), "no address".to_owned());
        request(&fixture, "a.test");
        request(&fixture, "b.test");
        assert!(fixture.worker.issued.is_awaited("a.test"), "its attempt is due");
        assert!(!fixture.worker.issued.is_awaited("b.test"));
        assert_eq!(
            fixture.end()[1],
            "Warn: no TLS for b.test: there is no certificate yet: no address"
        );
    });
}

#[test]
fn a_name_on_demand_is_added_if_it_is_approved() {
    in_loop(async {
        let authority = Authority::start();
        let ask = Upstream::start(|request| match request.contains("domain=good.test") {
            true => ok("", ""),
            false => "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                .to_owned(),
        });
        let url = format!("http://127.0.0.1:{}/ask?from=outboard", ask.port);
        let config = Acme { ask: Some(url), ..config(&["a.test"], &[&authority]) };
        let fixture = Fixture::new("demand", config);
        request(&fixture, "good.test");
        request(&fixture, "bad.test");
        request(&fixture, "not_possible.test");
        let issued = fixture.worker.issued.clone();
        wait_for("decision", || (!issued.is_awaited("bad.test")).then_some(())).await;
        wait_for("name", || names(&fixture).contains(&"good.test".to_owned()).then_some(())).await;
        assert_eq!(names(&fixture), ["a.test", "good.test"]);
        assert!(issued.is_awaited("good.test") && !issued.is_awaited("not_possible.test"));
        assert!(ask.requests.borrow()[0].starts_with("GET /ask?from=outboard&domain="));
        assert_eq!(ask.requests.borrow().len(), 2);
        // A refused name is remembered for a while.
        let again = fixture.worker.approve("bad.test").await.unwrap_err();
        assert!(again.starts_with("it was refused before"), "{again}");
        assert_eq!(fixture.worker.approve("a.test").await, Ok(()), "it is configured");
        let mut lines = fixture.end();
        lines.sort();
        assert_eq!(
            lines,
            [
                "Warn: no TLS for bad.test: `ask` responds with status 404",
                "Warn: no TLS for not_possible.test: no certificate can be issued for it",
            ]
        );
    });
}

#[test]
fn without_ask_other_names_are_not_approved() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("no-ask", config(&["a.test"], &[&authority]));
        let error = fixture.worker.approve("b.test").await.unwrap_err();
        assert_eq!(error, "it is not a name of this server");
        fixture.end();
    });
}
