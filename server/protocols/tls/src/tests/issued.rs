//! Certificates that the server obtains itself, as handshakes see them.

use super::authority::{Authority, Pair, open, sent, trusting};
use crate::no_verification::DangerousNoVerification;
use crate::{CertificateSource, Credential, Issued, ServerOptions, ServerSettings, TicketKeys};
use outboard_reactor::testing::in_loop;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, ClientConfig, Error};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

fn settings(issued: &Arc<Issued>) -> ServerSettings {
    let certificates = CertificateSource::Issued(issued.clone());
    let protocols: Vec<&'static [u8]> = vec![b"h2", b"http/1.1"];
    let options = ServerOptions { certificates, protocols, ..ServerOptions::default() };
    ServerSettings::read(&options, &TicketKeys::default(), &open).unwrap()
}

fn credential(authority: &Authority, name: &str) -> Arc<Credential> {
    let (certificate, key) = authority.issue(&[name]);
    Arc::new(Credential::from_pem((certificate + &key).as_bytes()).unwrap())
}

/// Those for `a.test` and `*.b.test`, which the first is the default of.
fn issued(authority: &Authority) -> Arc<Issued> {
    let issued = Issued::default();
    for name in ["a.test", "*.b.test"] {
        issued.insert(name, credential(authority, name));
    }
    issued.set_default_name(Some("a.test"));
    Arc::new(issued)
}

/// The names that are reported as missing from now on.
fn reported(issued: &Issued) -> Arc<Mutex<Vec<String>>> {
    let names = Arc::new(Mutex::new(Vec::new()));
    let list = names.clone();
    issued.report_missing(move |name| list.lock().unwrap().push(name.to_owned()));
    names
}

#[test]
fn a_name_without_a_certificate_is_refused_and_reported() {
    let authority = Authority::new("missing-name");
    let issued = issued(&authority);
    let (settings, names) = (settings(&issued), reported(&issued));
    for (name, is_served) in [
        ("a.test", true),
        ("A.test", true),
        ("x.b.test", true),
        ("y.x.b.test", false),
        ("b.test", false),
        // Without a name.
        ("127.0.0.1", true),
    ] {
        let pair = Pair::connected(&authority.settings(None), name, &settings);
        let is_untrusted = name == "127.0.0.1";
        let pair =
            if is_untrusted { Pair::connected(&trusting(&[]), name, &settings) } else { pair };
        assert_eq!(pair.is_ok(), is_served, "{name}");
    }
    assert_eq!(*names.lock().unwrap(), ["y.x.b.test", "b.test"]);
    issued.set_default_name(None);
    assert!(Pair::connected(&trusting(&[]), "127.0.0.1", &settings).is_err());
}

#[test]
fn a_successor_replaces_a_certificate_in_one_step() {
    let authority = Authority::new("successor");
    let issued = issued(&authority);
    let settings = settings(&issued);
    let serve =
        || Pair::connected(&trusting(&[]), "a.test", &settings).map(|pair| pair.certificate());
    let first = serve().unwrap();
    let successor = credential(&authority, "a.test");
    issued.insert("a.test", successor.clone());
    let second = serve().unwrap();
    assert_ne!(first, second);
    assert_eq!(second, successor.certified.cert[0]);
    issued.retain(|name| name != "a.test");
    assert!(serve().is_err());
    assert!(issued.find("x.b.test").is_some());
}

#[test]
fn only_an_authority_gets_the_certificate_of_a_challenge() {
    let authority = Authority::new("challenge");
    let issued = issued(&authority);
    let (settings, names) = (settings(&issued), reported(&issued));
    let (certificate, key) = authority.issue(&["a.test"]);
    issued.set_challenge("a.test", (certificate + &key).as_bytes()).unwrap();
    let checks = trusting(&[b"acme-tls/1"]);
    let served = |client: &_| Pair::connected(client, "a.test", &settings);
    let of_check = served(&checks).unwrap();
    assert_eq!(of_check.server.alpn_protocol(), Some(&b"acme-tls/1"[..]));
    let of_client = served(&trusting(&[b"h2"])).unwrap();
    assert_ne!(of_check.certificate(), of_client.certificate());
    assert_eq!(of_client.certificate(), issued.find("a.test").unwrap().certified.cert[0]);
    issued.remove_challenge("a.test");
    assert!(served(&checks).is_err(), "it gets no other one");
    assert!(names.lock().unwrap().is_empty());
    for (pem, start) in [("", "a challenge: "), ("-----BEGIN", "a challenge: ")] {
        let error = issued.set_challenge("b.test", pem.as_bytes()).unwrap_err();
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn responses_to_challenges_end_with_them() {
    let issued = Issued::default();
    issued.set_response("token", "token.key");
    assert_eq!(issued.response("token").as_deref(), Some("token.key"));
    assert_eq!(issued.response("TOKEN"), None);
    issued.remove_response("token");
    issued.remove_response("token");
    assert_eq!(issued.response("token"), None);
}

#[test]
fn a_name_is_requested_once_while_handshakes_wait_for_it() {
    in_loop(async {
        let issued = Issued::default();
        let names = reported(&issued);
        let client = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        assert!(issued.request("a.test", client(1)));
        assert!(issued.request("a.test", client(2)), "it waits as well");
        assert!(issued.is_awaited("a.test"));
        assert_eq!(*names.lock().unwrap(), ["a.test"]);
        issued.settle("a.test");
        assert!(!issued.is_awaited("a.test"));
        assert!(issued.request("a.test", client(1)));
        assert_eq!(names.lock().unwrap().len(), 2);
    });
}

#[test]
fn the_names_that_handshakes_wait_for_are_limited() {
    in_loop(async {
        let issued = Issued::default();
        let names = reported(&issued);
        let request = |at: u32| issued.request(&format!("{at}.test"), Some(IpAddr::V4(at.into())));
        assert_eq!((0..100).filter(|at| request(*at)).count(), 64);
        assert_eq!(names.lock().unwrap().len(), 64);
        assert!(request(0), "a known one");
        assert!(!issued.is_awaited("64.test"));
        issued.settle("0.test");
        assert!(request(64));
    });
}

#[test]
fn the_first_receiver_of_missing_names_remains() {
    in_loop(async {
        let issued = Issued::default();
        let (first, second) = (reported(&issued), reported(&issued));
        issued.request("a.test", None);
        assert_eq!((first.lock().unwrap().len(), second.lock().unwrap().len()), (1, 0));
    });
}

#[test]
fn the_name_of_a_first_flight_is_known_before_the_handshake() {
    let authority = Authority::new("on-demand");
    let issued = issued(&authority);
    let (settings, names) = (settings(&issued), reported(&issued));
    let flight = |protocols: &[&[u8]], name: &str| {
        sent(&mut Pair::new(&trusting(protocols), name, &settings).client)
    };
    let missing = |received: &[u8]| settings.missing_name(received).map(|(_, name)| name);
    let unknown = flight(&[b"h2"], "Shop.test");
    assert_eq!(missing(&unknown), None, "not on demand");
    issued.set_on_demand(true);
    assert_eq!(missing(&unknown).as_deref(), Some("shop.test"));
    for (received, what) in [
        (flight(&[b"h2"], "a.test"), "it has a certificate"),
        (flight(&[], "127.0.0.1"), "no name"),
        (flight(&[b"acme-tls/1"], "shop.test"), "a challenge"),
        (unknown[..unknown.len() - 1].to_vec(), "not complete"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "not TLS"),
        (Vec::new(), "nothing"),
    ] {
        assert_eq!(missing(&received), None, "{what}");
    }
    // The handshake does not report it: the listener has requested it.
    assert!(Pair::connected(&trusting(&[]), "shop.test", &settings).is_err());
    assert!(names.lock().unwrap().is_empty());
}

#[test]
fn a_request_is_misdirected_only_if_there_is_a_better_certificate() {
    let authority = Authority::new("issued-misdirected");
    let issued = issued(&authority);
    let settings = settings(&issued);
    let chosen = settings.chosen(Some("a.test")).unwrap();
    for (host, is_misdirected) in
        [("a.test", false), ("A.TEST", false), ("x.B.test", true), ("other.test", false)]
    {
        assert_eq!(settings.is_misdirected(&chosen, host), is_misdirected, "{host}");
    }
    assert!(settings.chosen(Some("other.test")).is_none());
    assert!(settings.chosen(None).is_some(), "the default");
    // A reload has replaced files by certificates that the server obtains.
    let files = CertificateSource::Files(vec![
        authority.files("one", &["a.test"]),
        authority.files("two", &["x.b.test"]),
    ]);
    let options = ServerOptions { certificates: files, ..ServerOptions::default() };
    let former = ServerSettings::read(&options, &TicketKeys::default(), &open).unwrap();
    let chosen = former.chosen(Some("a.test")).unwrap();
    assert!(former.is_misdirected(&chosen, "x.b.test"));
    assert!(!settings.is_misdirected(&chosen, "x.b.test"));
    assert!(!settings.have_files() && settings.refresh(&open).is_empty());
}

#[test]
fn without_verification_a_server_still_owns_the_key() {
    let authority = Authority::new("signature");
    let issued = issued(&authority);
    let settings = settings(&issued);
    let provider = aws_lc_rs::default_provider();
    let verifier = DangerousNoVerification::new(provider.signature_verification_algorithms);
    let verifier = Arc::new(verifier);
    let ((certificate, key), (_, other)) =
        (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    for version in [&TLS12, &TLS13] {
        let builder = ClientConfig::builder_with_provider(provider.clone().into());
        let builder = builder.with_protocol_versions(&[version]).unwrap().dangerous();
        let builder = builder.with_custom_certificate_verifier(verifier.clone());
        let mut client = builder.with_no_client_auth();
        client.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        client.resumption = Resumption::disabled();
        let client = Arc::new(client);
        // Nothing compares the key of a challenge with its certificate.
        issued.set_challenge("a.test", (certificate.clone() + &key).as_bytes()).unwrap();
        assert!(Pair::connected(&client, "a.test", &settings).is_ok());
        issued.set_challenge("a.test", (certificate.clone() + &other).as_bytes()).unwrap();
        let error = Pair::connected(&client, "a.test", &settings).err();
        let expected = Error::InvalidCertificate(CertificateError::BadSignature);
        assert_eq!(error, Some(expected), "{version:?}");
    }
}
