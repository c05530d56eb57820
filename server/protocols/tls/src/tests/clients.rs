//! Certificates of clients: which are valid, and what requests learn of them.

use super::authority::{Authority, Client, Pair, open};
use crate::session_facts::QuicSession;
use crate::{
    CertificateSource, ClientAuthorities, ClientCertificate, ServerOptions, ServerSettings,
    SessionFacts, TicketKeys,
};
use rcgen::ExtendedKeyUsagePurpose;
use std::fs;

fn options(authority: &Authority, revoked: Option<&str>, are_required: bool) -> ServerOptions {
    let clients = ClientAuthorities {
        authorities: authority.path("ca.pem"),
        revoked: revoked.map(|file| authority.path(file)),
        are_required,
    };
    let files = vec![authority.files("server", &["a.test"])];
    let certificates = CertificateSource::Files(files);
    ServerOptions { certificates, clients: Some(clients), ..ServerOptions::default() }
}

fn read(options: &ServerOptions) -> ServerSettings {
    ServerSettings::read(options, &TicketKeys::default(), &open).unwrap()
}

fn variable(facts: &SessionFacts, name: &str) -> Option<String> {
    facts.variables().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

/// What the server learns of a client, if the handshake succeeds.
fn facts(
    authority: &Authority,
    settings: &ServerSettings,
    client: Option<&Client<'_>>,
) -> Option<SessionFacts> {
    let pair = Pair::connected(&authority.settings(client), "a.test", settings).ok()?;
    Some(pair.facts(settings).unwrap())
}

#[test]
fn an_invalid_certificate_is_reported_in_the_words_of_openssl() {
    let (authority, stranger) = (Authority::new("reasons"), Authority::new("reasons-stranger"));
    authority.revoke("crl.pem", &[7], 4000);
    let (optional, required) = (
        read(&options(&authority, Some("crl.pem"), false)),
        read(&options(&authority, Some("crl.pem"), true)),
    );
    let purpose = ExtendedKeyUsagePurpose::ServerAuth;
    for (client, reason) in [
        (Client { years: (2001, 2002), ..authority.client(1) }, "certificate has expired"),
        (Client { years: (3000, 4000), ..authority.client(2) }, "certificate is not yet valid"),
        (Client { purpose, ..authority.client(3) }, "unsuitable certificate purpose"),
        (authority.client(7), "certificate revoked"),
        (Client { of: &stranger, ..authority.client(4) }, "unable to get local issuer certificate"),
    ] {
        let facts = facts(&authority, &optional, Some(&client)).unwrap();
        assert_eq!(facts.client, ClientCertificate::Invalid, "{reason}");
        let failed = format!("FAILED:{reason}");
        assert_eq!(variable(&facts, "SSL_CLIENT_VERIFY"), Some(failed));
        assert_eq!(variable(&facts, "SSL_CLIENT_S_DN"), None, "it could be anything");
        assert!(self::facts(&authority, &required, Some(&client)).is_none(), "{reason}");
    }
}

#[test]
fn a_valid_certificate_has_variables() {
    let authority = Authority::new("valid");
    authority.revoke("crl.pem", &[7], 4000);
    for are_required in [false, true] {
        let settings = read(&options(&authority, Some("crl.pem"), are_required));
        let facts = facts(&authority, &settings, Some(&authority.client(8))).unwrap();
        assert_eq!(facts.client, ClientCertificate::Valid);
        for (name, value) in [
            ("SSL_CLIENT_VERIFY", "SUCCESS"),
            ("SSL_CLIENT_M_SERIAL", "08"),
            ("SSL_CLIENT_I_DN", "CN=valid"),
            ("SSL_CLIENT_V_START", "Jan  1 00:00:00 2001 GMT"),
            ("SSL_CLIENT_V_END", "Jan  1 00:00:00 4000 GMT"),
        ] {
            assert_eq!(variable(&facts, name).as_deref(), Some(value), "{name}");
        }
    }
}

#[test]
fn only_a_required_certificate_must_be_sent() {
    let authority = Authority::new("missing");
    let optional = read(&options(&authority, None, false));
    let facts = facts(&authority, &optional, None).unwrap();
    assert_eq!(facts.client, ClientCertificate::Missing);
    assert_eq!(variable(&facts, "SSL_CLIENT_VERIFY").as_deref(), Some("NONE"));
    let required = read(&options(&authority, None, true));
    assert!(self::facts(&authority, &required, None).is_none());
    let without = ServerOptions { clients: None, ..options(&authority, None, false) };
    let facts = self::facts(&authority, &read(&without), Some(&authority.client(1))).unwrap();
    assert_eq!(facts.client, ClientCertificate::Missing, "none was requested");
    assert_eq!(variable(&facts, "SSL_CLIENT_VERIFY"), None);
}

#[test]
fn a_revocation_ends_sessions_that_are_resumed() {
    let authority = Authority::new("resumed");
    let keys = TicketKeys::default();
    for are_required in [false, true] {
        authority.revoke("crl.pem", &[], 4000);
        let options = options(&authority, Some("crl.pem"), are_required);
        let client = authority.settings(Some(&authority.client(9)));
        let before = ServerSettings::read(&options, &keys, &open).unwrap();
        let first = Pair::connected(&client, "a.test", &before).unwrap().facts(&before).unwrap();
        assert_eq!((first.client, first.is_resumed), (ClientCertificate::Valid, false));
        authority.revoke("crl.pem", &[9], 4000);
        let after = ServerSettings::read(&options, &keys, &open).unwrap();
        let facts = Pair::connected(&client, "a.test", &after).unwrap().facts(&after);
        match are_required {
            true => assert!(facts.unwrap_err().to_string().contains("Revoked")),
            false => {
                let facts = facts.unwrap();
                assert_eq!((facts.client, facts.is_resumed), (ClientCertificate::Invalid, true));
                let verified = variable(&facts, "SSL_CLIENT_VERIFY");
                assert_eq!(verified.as_deref(), Some("FAILED:certificate revoked"));
            }
        }
    }
}

#[test]
fn a_list_that_has_expired_protects_nothing() {
    let authority = Authority::new("stale");
    authority.revoke("crl.pem", &[], 2002);
    let settings = read(&options(&authority, Some("crl.pem"), false));
    let facts = facts(&authority, &settings, Some(&authority.client(1))).unwrap();
    let verified = variable(&facts, "SSL_CLIENT_VERIFY");
    assert_eq!(verified.as_deref(), Some("FAILED:CRL has expired"));
}

#[test]
fn resumed_sessions_of_quic_are_verified_again() {
    let authority = Authority::new("quic-clients");
    let settings = read(&options(&authority, None, true));
    let chain = [super::authority::certificate_in(&authority.path("ca.pem"))];
    let session = |is_resumed| QuicSession {
        server_name: Some("a.test"),
        cipher: None,
        is_resumed,
        client_chain: &chain,
    };
    // The handshake has verified it, and would have refused an authority as a client.
    let facts = SessionFacts::of_quic(&session(false), &settings).unwrap();
    assert_eq!((facts.client, facts.protocol), (ClientCertificate::Valid, "TLSv1.3"));
    assert!(SessionFacts::of_quic(&session(true), &settings).is_err());
}

#[test]
fn unusable_files_of_authorities_are_named() {
    let authority = Authority::new("authorities");
    let mut options = options(&authority, Some("crl.pem"), true);
    let error = |options: &ServerOptions| {
        ServerSettings::read(options, &TicketKeys::default(), &open).unwrap_err()
    };
    let path = |file| authority.path(file).display().to_string();
    assert_eq!(
        error(&options),
        format!("{}: No such file or directory (os error 2)", path("crl.pem"))
    );
    fs::copy(authority.path("ca.pem"), authority.path("crl.pem")).unwrap();
    assert_eq!(error(&options), format!("{}: there is no revocation list in it", path("crl.pem")));
    let clients = options.clients.as_mut().unwrap();
    clients.authorities = authority.path("server.key");
    assert_eq!(error(&options), format!("{}: there is no certificate in it", path("server.key")));
}
