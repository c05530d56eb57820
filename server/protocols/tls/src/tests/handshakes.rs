//! What server and client choose: certificates, versions, protocols, earlier sessions.

use super::authority::{Authority, Pair, certificate_in, open, receive, sent, trusting};
use crate::{
    CertificateSource, ClientAuthorities, MinimumVersion, ServerOptions, ServerSettings, TicketKeys,
};
use rustls::crypto::aws_lc_rs;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, Connection, HandshakeKind, SupportedProtocolVersion};
use std::io::Write;
use std::sync::Arc;

fn options(authority: &Authority) -> ServerOptions {
    let files = vec![
        authority.files("first", &["a.test"]),
        authority.files("second", &["b.test", "*.c.test"]),
        authority.files("third", &["x.c.test", "UPPER.test"]),
    ];
    ServerOptions { certificates: CertificateSource::Files(files), ..ServerOptions::default() }
}

fn read(options: &ServerOptions) -> ServerSettings {
    ServerSettings::read(options, &TicketKeys::default(), &open).unwrap()
}

/// A client of one version, which trusts the authority.
fn of_version(
    authority: &Authority,
    version: &'static SupportedProtocolVersion,
) -> Arc<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate_in(&authority.path("ca.pem"))).unwrap();
    let builder = ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into());
    let builder = builder.with_protocol_versions(&[version]).unwrap();
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

fn kind(pair: &Pair) -> HandshakeKind {
    pair.server.handshake_kind().unwrap()
}

#[test]
fn a_client_gets_the_certificate_of_its_name() {
    let authority = Authority::new("names");
    let settings = read(&options(&authority));
    for (name, expected) in [
        ("a.test", "first"),
        ("b.test", "second"),
        ("B.TEST", "second"),
        ("y.c.test", "second"),
        // An exact name precedes a wildcard.
        ("x.c.test", "third"),
        ("upper.test", "third"),
        // A wildcard stands for exactly one label.
        ("z.y.c.test", "first"),
        ("c.test", "first"),
        ("unknown.test", "first"),
        // A client sends no address as a name (RFC 6066 3).
        ("127.0.0.1", "first"),
    ] {
        let pair = Pair::connected(&trusting(&[]), name, &settings).unwrap();
        let file = authority.path(&format!("{expected}.pem"));
        assert_eq!(pair.certificate(), certificate_in(&file), "{name}");
    }
}

#[test]
fn a_client_trusts_its_authority_for_the_names_of_the_certificate() {
    let authority = Authority::new("trust");
    let settings = read(&options(&authority));
    assert!(Pair::connected(&authority.settings(None), "y.c.test", &settings).is_ok());
    let wrong_name = Pair::connected(&authority.settings(None), "z.test", &settings);
    assert!(wrong_name.is_err_and(|error| error.to_string().contains("z.test")));
    let stranger = Authority::new("stranger");
    let unknown = Pair::connected(&stranger.settings(None), "a.test", &settings);
    assert!(unknown.is_err_and(|error| error.to_string().contains("UnknownIssuer")));
    assert!(Pair::connected(&trusting(&[]), "z.test", &settings).is_ok());
}

#[test]
fn a_request_for_a_name_of_another_certificate_is_misdirected() {
    let authority = Authority::new("misdirected");
    let settings = read(&options(&authority));
    let chosen = |name| settings.chosen(Some(name)).unwrap();
    for (name, host, is_misdirected) in [
        ("a.test", "a.test", false),
        ("a.test", "b.test", true),
        ("a.test", "B.Test", true),
        ("a.test", "y.c.test", true),
        // No certificate has this name: there is no better connection.
        ("a.test", "unknown.test", false),
        ("b.test", "any.c.test", false),
        ("b.test", "x.c.test", false),
        ("x.c.test", "b.test", true),
    ] {
        assert_eq!(settings.is_misdirected(&chosen(name), host), is_misdirected, "{name} {host}");
    }
    assert!(settings.chosen(None).is_none());
    let CertificateSource::Files(files) = options(&authority).certificates else { panic!() };
    let one = CertificateSource::Files(vec![files[0].clone()]);
    let single = read(&ServerOptions { certificates: one, ..ServerOptions::default() });
    assert!(single.chosen(Some("a.test")).is_none(), "there is no choice");
}

#[test]
fn the_oldest_version_is_that_of_the_options() {
    let authority = Authority::new("versions");
    let mut options = options(&authority);
    let (old, new) = (of_version(&authority, &TLS12), of_version(&authority, &TLS13));
    let settings = read(&options);
    for (client, protocol, cipher) in [
        (&old, "TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        (&new, "TLSv1.3", "TLS_AES_256_GCM_SHA384"),
    ] {
        let facts = Pair::connected(client, "a.test", &settings).unwrap().facts(&settings).unwrap();
        assert_eq!((facts.protocol, facts.cipher), (protocol, cipher));
        let variables: Vec<_> = facts.variables().collect();
        let expected = [
            ("SSL_PROTOCOL", protocol),
            ("SSL_CIPHER", cipher),
            ("SSL_SESSION_RESUMED", "Initial"),
        ];
        assert_eq!(variables, expected);
    }
    options.minimum = MinimumVersion::Tls13;
    let settings = read(&options);
    assert!(Pair::connected(&old, "a.test", &settings).is_err());
    assert!(Pair::connected(&new, "a.test", &settings).is_ok());
}

#[test]
fn the_server_prefers_its_first_protocol() {
    let authority = Authority::new("alpn");
    let protocols: Vec<&'static [u8]> = vec![b"h2", b"http/1.1"];
    let settings = read(&ServerOptions { protocols, ..options(&authority) });
    for (offered, expected) in [
        (&[&b"http/1.1"[..], b"h2"][..], Some(&b"h2"[..])),
        (&[b"http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let pair = Pair::connected(&trusting(offered), "a.test", &settings).unwrap();
        assert_eq!(pair.client.alpn_protocol(), expected);
        assert_eq!(pair.server.alpn_protocol(), expected);
    }
    let other = Pair::connected(&trusting(&[b"spdy/3"]), "a.test", &settings);
    assert!(matches!(other.err(), Some(rustls::Error::NoApplicationProtocol)));
}

#[test]
fn settings_of_a_reload_resume_earlier_sessions() {
    let authority = Authority::new("resumption");
    let (keys, options) = (TicketKeys::default(), options(&authority));
    let read = |options: &ServerOptions| ServerSettings::read(options, &keys, &open).unwrap();
    let settings = read(&options);
    for version in [&TLS12, &TLS13] {
        let client = of_version(&authority, version);
        let first = Pair::connected(&client, "a.test", &settings).unwrap();
        assert!(matches!(
            kind(&first),
            HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest
        ));
        let reloaded = read(&options);
        let second = Pair::connected(&client, "a.test", &reloaded).unwrap();
        assert_eq!(kind(&second), HandshakeKind::Resumed);
        let facts = second.facts(&reloaded).unwrap();
        assert!(facts.is_resumed);
        assert!(facts.variables().any(|one| one == ("SSL_SESSION_RESUMED", "Resumed")));
    }
}

#[test]
fn a_listener_with_other_settings_resumes_no_session() {
    let authority = Authority::new("foreign");
    let (keys, options) = (TicketKeys::default(), options(&authority));
    let client = of_version(&authority, &TLS13);
    let settings = ServerSettings::read(&options, &keys, &open).unwrap();
    Pair::connected(&client, "a.test", &settings).unwrap();
    let authorities = authority.path("ca.pem");
    let clients = Some(ClientAuthorities { authorities, revoked: None, are_required: false });
    let other = ServerOptions { clients, ..options };
    let other = ServerSettings::read(&other, &keys, &open).unwrap();
    let pair = Pair::connected(&client, "a.test", &other).unwrap();
    assert_ne!(kind(&pair), HandshakeKind::Resumed);
}

#[test]
fn a_recorded_first_flight_has_its_early_data_only_once() {
    let authority = Authority::new("early");
    let options = ServerOptions { early_data: Some(1), ..options(&authority) };
    let settings = read(&options);
    let mut client = (*of_version(&authority, &TLS13)).clone();
    client.enable_early_data = true;
    let client = Arc::new(client);
    Pair::connected(&client, "a.test", &settings).unwrap();
    let mut pair = Pair::new(&client, "a.test", &settings);
    let Connection::Client(session) = &mut pair.client else { panic!("it is a client") };
    session.early_data().unwrap().write_all(b"GET /").unwrap();
    let flight = sent(&mut pair.client);
    let early_data = |server: &mut Connection| {
        receive(server, &flight).unwrap();
        let Connection::Server(server) = server else { panic!("it is a server") };
        server.early_data().map(|early| std::io::read_to_string(early).unwrap())
    };
    assert_eq!(early_data(&mut pair.server).as_deref(), Some("GET /"));
    let mut replayed = Pair::new(&client, "a.test", &settings);
    assert_eq!(early_data(&mut replayed.server), None);
}

#[test]
fn quic_has_its_own_protocols_and_all_or_no_early_data() {
    let authority = Authority::new("quic");
    let mut options = ServerOptions { protocols: vec![b"h2"], ..options(&authority) };
    let quic = read(&options).for_quic(&[b"h3"]);
    assert_eq!((quic.alpn_protocols.concat(), quic.max_early_data_size), (b"h3".to_vec(), 0));
    options.early_data = Some(1);
    let settings = read(&options);
    assert_eq!(settings.for_quic(&[]).max_early_data_size, u32::MAX);
    assert!(settings.rustls.max_early_data_size < 1 << 20, "a few requests over TCP");
    assert_eq!(settings.rustls.alpn_protocols, [b"h2"]);
}
