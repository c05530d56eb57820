//! Failures of authorities, as operators read them.

use crate::acme::{Authorization, Failure};
use crate::message::Statuses;
use std::error::Error;

/// A problem of this status and document.
fn problem(status: u16, document: &str) -> crate::acme::Problem {
    crate::acme::Problem::of(status, document.as_bytes(), None)
}

#[test]
fn a_failure_states_what_failed() {
    let dns = r#"{"type":"urn:ietf:params:acme:error:dns","detail":"no address"}"#;
    for (failure, text, is_of_authority, has_source) in [
        (
            Failure::Unreachable("connection refused".into()),
            "the authority does not respond: connection refused",
            true,
            false,
        ),
        (
            Failure::Refused(problem(403, dns)),
            "the authority refuses: no address (dns)",
            false,
            true,
        ),
        (Failure::Refused(problem(500, "")), "the authority refuses: status 500", true, true),
        (
            Failure::NotVerified(problem(200, dns)),
            "the authority could not verify the name: no address (dns)",
            false,
            true,
        ),
        (Failure::Own("no disk".into()), "no disk", false, false),
        (Failure::Limit("too many".into()), "too many", false, false),
    ] {
        assert_eq!(failure.to_string(), text);
        assert_eq!(failure.is_of_authority(), is_of_authority, "{text}");
        assert_eq!(failure.source().is_some(), has_source, "{text}");
    }
}

#[test]
fn the_source_of_a_refusal_is_its_problem() {
    let failure = Failure::Refused(problem(400, r#"{"detail":"no"}"#));
    assert_eq!(failure.source().unwrap().to_string(), "no");
}

#[test]
fn a_pause_is_requested_by_limits_and_busy_authorities() {
    let limited = r#"{"type":"urn:ietf:params:acme:error:rateLimited"}"#;
    let with = |status, document: &str, retry_after_s| {
        Failure::Refused(crate::acme::Problem::of(status, document.as_bytes(), retry_after_s))
    };
    assert_eq!(with(429, limited, Some(60)).pause_s(), Some(60));
    assert_eq!(with(400, limited, None).pause_s(), Some(900));
    assert_eq!(with(503, "", Some(5)).pause_s(), Some(5));
    assert_eq!(with(500, "", Some(5)).pause_s(), None);
    assert_eq!(with(429, "", Some(5)).pause_s(), None, "its type counts");
    assert_eq!(Failure::NotVerified(problem(200, limited)).pause_s(), None);
}

#[test]
fn the_first_part_of_a_problem_is_more_exact() {
    let document = r#"{"type":"urn:ietf:params:acme:error:compound","detail":"several",
        "subproblems":[{"type":"urn:ietf:params:acme:error:caa","detail":"CAA forbids it"},{}]}"#;
    assert_eq!(problem(403, document).to_string(), "CAA forbids it (caa)");
    for (document, text) in [
        (r#"{"type":"urn:ietf:params:acme:error:caa"}"#, "caa"),
        (r#"{"type":"about:blank","detail":"no"}"#, "no (about:blank)"),
        (r#"{"detail":"no"}"#, "no"),
        (r#"{"type":7}"#, "status 403"),
        ("[]", "status 403"),
        ("", "status 403"),
    ] {
        assert_eq!(problem(403, document).to_string(), text, "{document}");
    }
    let other = problem(400, r#"{"type":"badNonce"}"#);
    assert!(!other.is("badNonce"), "without the prefix of the protocol");
}

#[test]
fn an_authorization_has_the_problem_of_its_challenge() {
    let read = |text: &str| serde_json::from_str::<Authorization>(text);
    let authorization = read(
        r#"{"status":"invalid","challenges":[{"type":"http-01","url":"u"},
            {"type":"dns-01","url":"u","token":"t","error":{"detail":"no record"}}]}"#,
    )
    .unwrap();
    assert!(!authorization.is_valid() && !authorization.is_pending());
    assert_eq!(authorization.problem().to_string(), "no record");
    let bare = read(r#"{"status":"deactivated"}"#).unwrap();
    assert_eq!(bare.problem().to_string(), "status 0");
    assert!(read(r#"{"challenges":[]}"#).is_err());
}

#[test]
fn missing_names_wake_the_worker_once_and_are_bounded() {
    let statuses = Statuses::default();
    assert!(statuses.add_missing("0.test"));
    assert!((1..1000).all(|at| !statuses.add_missing(&format!("{at}.test"))));
    assert!(!statuses.add_missing("0.test"));
    assert_eq!(statuses.take_missing().len(), 64);
    assert!(statuses.take_missing().is_empty());
    assert!(statuses.add_missing("0.test"), "again, after it was taken");
}
