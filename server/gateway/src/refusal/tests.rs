//! What the client, the log and the counters get of each form.

use super::*;
use crate::testing::{Response, Site, in_loop, response};
use outboard_development::Development;
use std::cell::RefCell;
use std::rc::Rc;

const LOG: &str = "[log.error]\npath = \"error.log\"\n";

/// All that a client receives.
async fn received(site: &Site, app: Option<Rc<App>>, refusal: Refusal) -> String {
    let refusal = RefCell::new(Some(refusal));
    site.handled("", async move |request, response| {
        let refusal = refusal.take().expect("one request");
        refusal.respond(request, response, app.as_deref()).await.written
    })
    .await
}

async fn refused(site: &Site, refusal: Refusal) -> Response {
    response(&received(site, Some(site.app()), refusal).await)
}

/// The error log, which has one line at most.
fn line(site: &Site) -> String {
    let text = site.log("error.log");
    assert!(text.lines().count() <= 1, "{text}");
    text
}

fn development() -> Site {
    let text =
        "environment = \"development\"\n[app.site]\nroot = \"www\"\n[development]\nwatch = []\n";
    let site = Site::with_config(&[], text);
    let config = site.gateway.generation().config.development.clone().unwrap();
    let (development, _) =
        Development::watch(&config, &site.directory().join("outboard.toml"), None);
    site.gateway.set_development(Some(development));
    site
}

#[test]
fn a_page_names_no_reason_but_the_log_and_a_counter_do() {
    in_loop(async {
        let site = Site::new(&[], LOG);
        let response = refused(&site, Reason::DotFile.into()).await;
        assert_eq!(response.status, 404);
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(response.header("x-outboard-reason"), None);
        assert!(response.body.contains("<p>Not found.</p>"), "{}", response.body);
        assert_eq!(site.refusals("dot_file"), 1);
        let line = line(&site);
        assert!(line.contains("dot_file") && line.contains("client=127.0.0.1 GET /a?b"), "{line}");
    });
}

#[test]
fn a_denied_and_a_missing_file_look_the_same() {
    in_loop(async {
        let site = Site::new(&[], "");
        let mut pages = Vec::new();
        for reason in [Reason::NotFound, Reason::Denied, Reason::PhpSource, Reason::PrivateFile] {
            let text = received(&site, Some(site.app()), reason.into()).await;
            let lines = text.lines().filter(|line| !line.starts_with("Date: "));
            pages.push(lines.map(str::to_owned).collect::<Vec<_>>());
        }
        assert!(pages[0].len() > 3 && pages.iter().all(|page| page == &pages[0]), "{pages:?}");
    });
}

#[test]
fn a_refusal_of_a_program_is_text_with_its_reason() {
    in_loop(async {
        let site = Site::new(&[], LOG);
        let response = refused(&site, Refusal::text(Reason::EntityToken)).await;
        let expected = "entity_token: The entity store requires a token; see kv.token.\n";
        assert_eq!((response.status, &*response.body), (401, expected));
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        assert_eq!(response.header("x-outboard-reason"), Some("entity_token"));
        assert_eq!(response.head.matches("Content-Type").count(), 1);
        assert_eq!(site.refusals("entity_token"), 1);
        assert!(line(&site).contains("entity_token"), "{}", line(&site));
    });
}

#[test]
fn an_overload_is_counted_without_a_body_and_a_line() {
    in_loop(async {
        let site = Site::new(&[], LOG);
        let response = refused(&site, Refusal::overload(Reason::EntityOverload)).await;
        assert_eq!((response.status, &*response.body), (503, ""));
        assert_eq!(response.header("content-length"), Some("0"));
        assert_eq!(response.header("content-type"), None);
        assert_eq!(response.header("retry-after"), Some("1"));
        assert_eq!(response.header("x-outboard-reason"), Some("entity_overload"));
        assert_eq!(site.refusals("entity_overload"), 1);
        assert_eq!(line(&site), "");
    });
}

#[test]
fn fields_of_a_refusal_are_sent_besides_those_of_its_reason() {
    in_loop(async {
        let site = Site::new(&[], "");
        let fields = HeaderBlock::constant(&[("RateLimit", "\"default\";r=0;t=7")]);
        let response = refused(&site, Refusal::with_fields(Reason::MethodRefused, fields)).await;
        assert_eq!(response.status, 405);
        assert_eq!(response.header("ratelimit"), Some("\"default\";r=0;t=7"));
        assert!(response.header("allow").unwrap().starts_with("GET, HEAD, POST"));
    });
}

#[test]
fn a_hint_is_shown_in_development_only_and_escaped() {
    in_loop(async {
        let hint = || Refusal::with_hint(Reason::NotFound, Some("no <a.php> & \"b\"".to_owned()));
        let production = refused(&Site::new(&[], ""), hint()).await;
        assert!(!production.body.contains("a.php"), "{}", production.body);
        let site = development();
        let page = refused(&site, hint()).await;
        assert!(page.body.contains("<p>no &lt;a.php&gt; &amp; "), "{}", page.body);
        assert_eq!(page.header("x-outboard-reason"), Some("not_found"));
        let without = refused(&site, Refusal::with_hint(Reason::NotFound, None)).await;
        assert_eq!(without.body.matches("<p>").count(), 1, "{}", without.body);
    });
}

#[test]
fn an_own_page_of_the_app_has_the_headers_of_the_refusal() {
    in_loop(async {
        let keys = "[app.site.error_pages]\n503 = \"busy.html\"\n";
        let site = Site::new(&[("busy.html", "<h1>Busy")], keys);
        let response = refused(&site, Reason::QueueFull.into()).await;
        assert_eq!((response.status, &*response.body), (503, "<h1>Busy"));
        assert_eq!(response.header("retry-after"), Some("1"));
        let unknown = received(&site, None, Reason::QueueFull.into()).await;
        assert!(!unknown.contains("Busy") && unknown.contains("queue is full"), "{unknown}");
        assert_eq!(site.refusals("queue_full"), 2);
    });
}

#[test]
fn a_client_that_is_gone_gets_nothing_and_is_counted() {
    for (reason, code) in [
        (Reason::ClientGone, "client_gone"),
        (Reason::WriteTimeout, "write_timeout"),
        (Reason::BodyCut, "body_cut"),
    ] {
        in_loop(async move {
            let site = Site::new(&[], LOG);
            assert_eq!(received(&site, Some(site.app()), reason.into()).await, "");
            assert_eq!(site.refusals(code), 1);
            assert!(line(&site).contains(code), "{}", line(&site));
        });
    }
}

#[test]
fn only_faults_of_the_server_are_errors_in_the_log() {
    in_loop(async {
        let keys = "[log.error]\npath = \"error.log\"\nlevel = \"error\"\n";
        let site = Site::new(&[], keys);
        refused(&site, Reason::NotFound.into()).await;
        refused(&site, Reason::RateLimited.into()).await;
        assert_eq!(line(&site), "");
        refused(&site, Reason::AppDown.into()).await;
        assert!(line(&site).contains("app_down"), "{}", line(&site));
        assert_eq!((site.refusals("not_found"), site.refusals("app_down")), (1, 1));
    });
}
