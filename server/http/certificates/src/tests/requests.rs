//! Requests to authorities that are no orders, and responses that cannot be used.

use super::authority::Authority;
use super::fixture::{Fixture, config};
use crate::acme::{AccountKey, Client};
use crate::responder::Responder;
use crate::worker::now_s;
use outboard_config::Challenge;
use outboard_reactor::testing::in_loop;
use outboard_tls::Issued;
use outboard_upstream::{Client as HttpClient, Settings};
use std::process::Command;

async fn open(authority: &Authority) -> Result<Client, String> {
    let key = AccountKey::read(&AccountKey::generate().unwrap()).unwrap();
    let http = HttpClient::new(Settings::default());
    Client::open(http, &authority.url, key, None).await.map_err(|failure| failure.to_string())
}

#[test]
fn a_recommendation_is_a_window_with_a_pause() {
    in_loop(async {
        let authority = Authority::start();
        let client = open(&authority).await.unwrap();
        let window = r#"{"suggestedWindow":{"start":"2026-01-02T03:04:05Z","end":"2026-01-03T03:04:05+00:00"}}"#;
        authority.fail("/renewal/id", 200, "Retry-After: 600\r\n", window);
        let found = client.renewal_window("id").await.unwrap();
        assert_eq!(found, Some(((1_767_323_045, 1_767_409_445), Some(600))));
        for (body, reason) in [
            (r#"{"suggestedWindow":{"start":"tomorrow","end":"x"}}"#, "its reply cannot be used: "),
            ("{}", "its reply cannot be used: missing field `suggestedWindow`"),
            ("<html>", "its reply cannot be used: expected value"),
        ] {
            authority.fail("/renewal/id", 200, "", body);
            let error = client.renewal_window("id").await.unwrap_err().to_string();
            let start = format!("the authority does not respond: {reason}");
            assert!(error.starts_with(&start), "{error}");
        }
    });
}

#[test]
fn a_pause_is_seconds_or_a_time() {
    in_loop(async {
        let authority = Authority::start();
        let client = open(&authority).await.unwrap();
        for (header, expected) in [
            ("Retry-After: 7\r\n", Some(7)),
            ("Retry-After: Fri, 02 Jan 1970 00:00:00 GMT\r\n", Some(0)),
            ("Retry-After: soon\r\n", None),
            ("Retry-After: -1\r\n", None),
            ("", None),
        ] {
            let window = r#"{"suggestedWindow":{"start":"1960-01-01T00:00:00Z","end":"1970-01-01T00:00:01Z"}}"#;
            authority.fail("/renewal/id", 200, header, window);
            // A time before 1970 is that of its beginning.
            let found = client.renewal_window("id").await.unwrap();
            assert_eq!(found, Some(((0, 1), expected)), "{header}");
        }
    });
}

#[test]
fn a_directory_that_is_none_is_an_error() {
    in_loop(async {
        let authority = Authority::start();
        authority.fail("/directory", 200, "", "<html>");
        let error = open(&authority).await.unwrap_err();
        assert!(
            error.starts_with("the authority does not respond: its reply cannot be used"),
            "{error}"
        );
        authority.fail("/directory", 302, "Location: /elsewhere\r\n", "");
        let error = open(&authority).await.unwrap_err();
        assert_eq!(error, "the authority refuses: status 302", "no redirect is followed");
        assert_eq!(authority.requests("/elsewhere"), 0);
    });
}

#[test]
fn an_account_without_a_url_is_an_error() {
    in_loop(async {
        let authority = Authority::start();
        let client = open(&authority).await.unwrap();
        authority.fail("/account", 201, "", "{}");
        let error = client.register(None, None).await.unwrap_err().to_string();
        assert!(error.ends_with("there is no URL of the account"), "{error}");
        assert!(client.register(None, None).await.unwrap().ends_with("/account/1"));
    });
}

#[test]
fn the_recommended_time_is_recorded() {
    in_loop(async {
        let authority = Authority::start();
        let fixture = Fixture::new("window", config(&["a.test"], &[&authority]));
        let name = fixture.name("a.test");
        assert!(!fixture.worker.wants_window(&name, now_s()), "it has no certificate");
        let credential = fixture.attempt("a.test").await.credential().unwrap();
        assert!(fixture.worker.wants_window(&name, now_s()));
        let path = format!("/renewal/{}", crate::keys::identifier(credential.facts()).unwrap());
        let window =
            r#"{"suggestedWindow":{"start":"2100-01-01T00:00:00Z","end":"2100-01-02T00:00:00Z"}}"#;
        authority.fail(Box::leak(path.clone().into_boxed_str()), 200, "", window);
        fixture.worker.request_window(&name).await;
        let found = name.record.borrow().window.expect("it is recorded");
        assert_eq!((found.start_s, found.end_s), (4_102_444_800, 4_102_531_200));
        assert!(!fixture.worker.wants_window(&name, now_s()), "not for a while");
        // An authority that fails changes nothing but the next look.
        authority.fail(Box::leak(path.into_boxed_str()), 500, "", "");
        fixture.worker.request_window(&name).await;
        assert_eq!(name.record.borrow().window.unwrap().start_s, 4_102_444_800);
        fixture.end();
    });
}

#[test]
fn a_program_publishes_and_removes_the_record() {
    in_loop(async {
        let directory = super::fixture::directory("hook");
        std::fs::create_dir_all(&directory).unwrap();
        let (hook, log) = (directory.join("hook"), directory.join("log"));
        // Written by another process: a file that a concurrent test's child inherits open is busy.
        let script = format!("#!/bin/sh\necho \"$*\" >> {}\n", log.display());
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", "printf %s \"$1\" > \"$2\" && chmod +x \"$2\"", "sh", &script])
            .arg(&hook);
        assert!(shell.status().unwrap().success());
        let issued = std::sync::Arc::<Issued>::default();
        let mut responder = Responder { issued, dns_hook: Some(hook), commons: None };
        let respond = responder.respond(Challenge::Dns01, "*.a.test", "token", "token.key");
        respond.await.unwrap().withdraw().await.unwrap();
        // The digest of `token.key` (RFC 8555 8.4).
        let digest = "BBQUgcxf5weD7GT5jGRqmNsvAZXUWBoqPngIzDdoBFs";
        let lines = std::fs::read_to_string(&log).unwrap();
        let words: Vec<&str> = lines.split_whitespace().collect();
        assert_eq!(words[..2], ["present", "_acme-challenge.a.test"]);
        assert_eq!(words[3..5], ["cleanup", "_acme-challenge.a.test"]);
        assert_eq!((words[2], words[5]), (digest, digest));
        responder.dns_hook = Some(directory.join("none"));
        let respond = responder.respond(Challenge::Dns01, "a.test", "token", "token.key").await;
        let error = respond.unwrap_err();
        assert!(error.ends_with("none present: No such file or directory (os error 2)"), "{error}");
        responder.dns_hook = None;
        let respond = responder.respond(Challenge::Dns01, "a.test", "token", "token.key").await;
        assert_eq!(respond.unwrap_err(), "there is no `dns_hook`");
        std::fs::remove_dir_all(directory).unwrap();
    });
}
