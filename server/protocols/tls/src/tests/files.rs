//! Files of certificates, keys and OCSP responses that cannot be used, or that change.

use super::authority::{Authority, Pair, open, trusting};
use crate::{CertificateFiles, CertificateSource, Credential, ServerOptions, ServerSettings};
use crate::{TicketKeys, Trust, client_settings};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::fs;
use std::sync::{Arc, Mutex};

fn read(files: &CertificateFiles) -> Result<ServerSettings, String> {
    let certificates = CertificateSource::Files(vec![files.clone()]);
    let options = ServerOptions { certificates, ..ServerOptions::default() };
    ServerSettings::read(&options, &TicketKeys::default(), &open)
}

/// A successful OCSP response of so many further bytes (RFC 6960 4.2.1).
fn ocsp(rest: u8) -> Vec<u8> {
    [&[0x30, 0x81, rest + 3, 0x0a, 1, 0][..], &vec![rest; rest.into()]].concat()
}

#[test]
fn an_unusable_file_is_named_with_the_reason() {
    let authority = Authority::new("unusable");
    let good = authority.files("good", &["a.test"]);
    let other = authority.files("other", &["a.test"]);
    let (text, none) = (authority.path("text.pem"), authority.path("none.pem"));
    fs::write(&text, "not PEM").unwrap();
    let damaged = authority.path("damaged.pem");
    fs::write(&damaged, "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n").unwrap();
    let short = authority.path("short.pem");
    fs::write(&short, "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n").unwrap();
    let chain = |path: &std::path::Path| CertificateFiles { chain: path.into(), ..good.clone() };
    let key = |path: &std::path::Path| CertificateFiles { key: path.into(), ..good.clone() };
    let with_ocsp = CertificateFiles { ocsp: Some(text.clone()), ..good.clone() };
    assert!(read(&good).is_ok());
    for (files, at, reason) in [
        (chain(&none), &none, "No such file or directory (os error 2)"),
        (chain(&text), &text, "there is no certificate in it"),
        (chain(&good.key), &good.key, "there is no certificate in it"),
        (chain(&damaged), &damaged, ""),
        (chain(&short), &short, "BadDer"),
        (key(&none), &none, "No such file or directory (os error 2)"),
        (key(&text), &text, "no items found"),
        (key(&other.key), &other.key, "this is not the key of the certificate in "),
        (with_ocsp, &text, "this is not a successful OCSP response in DER"),
    ] {
        let error = read(&files).unwrap_err();
        let start = format!("{}: {reason}", at.display());
        assert!(error.starts_with(&start), "{error}, expected {start}");
    }
}

#[test]
fn clients_get_the_present_ocsp_response() {
    let authority = Authority::new("ocsp");
    let path = authority.path("response.der");
    let files = CertificateFiles { ocsp: Some(path.clone()), ..authority.files("a", &["a.test"]) };
    fs::write(&path, ocsp(9)).unwrap();
    let settings = read(&files).unwrap();
    assert!(settings.have_files());
    let received = || received(&settings);
    assert_eq!(received(), ocsp(9));
    fs::write(&path, ocsp(20)).unwrap();
    assert_eq!(settings.refresh(&open), []);
    assert_eq!(received(), ocsp(20));
    // `tryLater`: the one that was read before remains, and the error is reported once.
    fs::write(&path, [0x30, 0x81, 3, 0x0a, 1, 3]).unwrap();
    let reason = "this is not a successful OCSP response in DER";
    assert_eq!(settings.refresh(&open), [Err(format!("{}: {reason}", path.display()))]);
    assert_eq!(settings.refresh(&open), []);
    assert_eq!(received(), ocsp(20));
    fs::remove_file(&path).unwrap();
    assert_eq!(settings.refresh(&open).len(), 1);
    assert_eq!(settings.refresh(&open), []);
    assert_eq!(received(), ocsp(20));
}

#[test]
fn a_renewed_certificate_is_taken_up() {
    let authority = Authority::new("renewed");
    let files = authority.files("a", &["a.test"]);
    let settings = read(&files).unwrap();
    let serves = |name: &str| Pair::connected(&authority.settings(None), name, &settings).is_ok();
    assert!(serves("a.test") && !serves("b.test"));
    assert_eq!(settings.refresh(&open), []);
    let renewed = authority.issue(&["a.test", "b.test"]);
    // The programs that renew it write one file after the other.
    fs::write(&files.chain, renewed.0).unwrap();
    assert_eq!(settings.refresh(&open), []);
    assert!(serves("a.test") && !serves("b.test"));
    fs::write(&files.key, renewed.1).unwrap();
    let note = format!("{}: the certificate was renewed", files.chain.display());
    assert_eq!(settings.refresh(&open), [Ok(note)]);
    assert!(serves("a.test") && serves("b.test"));
    assert_eq!(settings.refresh(&open), []);
}

#[test]
fn a_pair_that_does_not_match_is_reported_once() {
    let authority = Authority::new("mismatch");
    let files = authority.files("a", &["a.test"]);
    let settings = read(&files).unwrap();
    fs::write(&files.key, authority.issue(&["a.test"]).1).unwrap();
    assert_eq!(settings.refresh(&open), []);
    let [Err(fault)] = &settings.refresh(&open)[..] else { panic!("it is reported") };
    assert!(fault.starts_with(&files.key.display().to_string()) && fault.ends_with("remains"));
    assert_eq!(settings.refresh(&open), []);
    fs::remove_file(&files.chain).unwrap();
    assert_eq!(settings.refresh(&open), []);
    let [Err(fault)] = &settings.refresh(&open)[..] else { panic!("it is reported") };
    assert!(fault.starts_with(&files.chain.display().to_string()), "{fault}");
    assert_eq!(settings.refresh(&open), []);
    assert!(Pair::connected(&authority.settings(None), "a.test", &settings).is_ok());
}

#[test]
fn a_renewed_certificate_has_no_response_for_its_predecessor() {
    let authority = Authority::new("stale");
    let path = authority.path("response.der");
    let files = CertificateFiles { ocsp: Some(path.clone()), ..authority.files("a", &["a.test"]) };
    fs::write(&path, ocsp(9)).unwrap();
    let settings = read(&files).unwrap();
    let renewed = authority.issue(&["a.test"]);
    fs::write(&files.chain, renewed.0).unwrap();
    fs::write(&files.key, renewed.1).unwrap();
    fs::remove_file(&path).unwrap();
    let notes = settings.refresh(&open);
    assert!(matches!(&notes[..], [Ok(_), Err(_)]), "both are logged: {notes:?}");
    assert_eq!(settings.refresh(&open), []);
    assert!(received(&settings).is_empty());
    fs::write(&path, ocsp(20)).unwrap();
    assert_eq!(settings.refresh(&open), []);
    assert_eq!(received(&settings), ocsp(20));
}

fn received(settings: &ServerSettings) -> Vec<u8> {
    let mut client = (*trusting(&[])).clone();
    let seen = Arc::new(Seen::default());
    client.dangerous().set_certificate_verifier(seen.clone());
    Pair::connected(&client.into(), "a.test", settings).unwrap();
    seen.0.lock().unwrap().clone()
}

/// The OCSP response that a client has received.
#[derive(Debug, Default)]
struct Seen(Mutex<Vec<u8>>);

impl ServerCertVerifier for Seen {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.0.lock().unwrap() = ocsp.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}

#[test]
fn a_client_adds_the_authorities_of_a_file() {
    let authority = Authority::new("client-file");
    let settings = read(&authority.files("a", &["a.test"])).unwrap();
    let (file, key) = (authority.path("ca.pem"), authority.path("a.key"));
    let client = client_settings(Trust::Authorities(Some(&file)), &[]).unwrap();
    assert!(Pair::connected(&client.into(), "a.test", &settings).is_ok());
    fs::write(&key, "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n").unwrap();
    let error = client_settings(Trust::Authorities(Some(&key)), &[]).unwrap_err();
    assert!(error.starts_with(&format!("{}: ", key.display())), "{error}");
}

#[test]
fn a_credential_needs_a_certificate_and_its_key() {
    let authority = Authority::new("credential");
    let (certificate, key) = authority.issue(&["a.test"]);
    let (_, other) = authority.issue(&["a.test"]);
    let error = |pem: &str| Credential::from_pem(pem.as_bytes()).unwrap_err();
    for (pem, start) in [
        (String::new(), "the private key cannot be read: "),
        (certificate.clone(), "the private key cannot be read: "),
        (key.clone(), "there is no certificate"),
        (certificate.clone() + &other, "the private key is not that of the certificate"),
        (certificate.replace("MII", "***") + &key, "the certificate cannot be read: "),
        (
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".to_owned() + &key,
            "the certificate is invalid: ",
        ),
    ] {
        let error = error(&pem);
        assert!(error.starts_with(start), "{error}, expected {start}");
    }
    // The key may stand first.
    for pem in [certificate.clone() + &key, key + &certificate] {
        let credential = Credential::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(credential.facts().issuer, "CN=credential");
        assert_eq!(credential.facts().authority_key.as_ref().map(Vec::len), Some(20));
    }
}

#[test]
fn a_wildcard_covers_one_label() {
    let authority = Authority::new("covers");
    let (certificate, key) = authority.issue(&["A.test", "*.b.test"]);
    let credential = Credential::from_pem((certificate + &key).as_bytes()).unwrap();
    for (name, is_covered) in [
        ("a.test", true),
        ("A.TEST", true),
        ("x.b.test", true),
        ("X.B.Test", true),
        ("*.b.test", true),
        ("b.test", false),
        (".b.test", true),
        ("y.x.b.test", false),
        ("xb.test", false),
        ("x.a.test", false),
        ("test", false),
        ("", false),
    ] {
        assert_eq!(credential.covers(name), is_covered, "{name}");
    }
}
