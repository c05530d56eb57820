//! Addresses of clients of QUIC, of which the first datagram proves nothing.

use bytes::Bytes;
use outboard_e2e::{Certificate, Configured, Docroot, Protocol};
use quinn_proto::TokenStore;
use quinn_proto::crypto::rustls::QuicClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The tokens of a client (RFC 9000 8.1.3), the latest last.
#[derive(Default)]
struct Tokens(Mutex<Vec<Bytes>>);

impl TokenStore for Tokens {
    fn insert(&self, _: &str, token: Bytes) {
        self.0.lock().unwrap().push(token);
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.0.lock().unwrap().pop()
    }
}

fn settings(folder: &Path, tokens: &Arc<Tokens>) -> quinn::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.join("one.pem")).unwrap()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
    tls.enable_early_data = true;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut settings = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    settings.token_store(tokens.clone());
    settings
}

/// `GET https://site/variables.php` in literals (RFC 9114 4.1, RFC 9204 4.5.4 and appendix A).
fn request() -> Vec<u8> {
    let (authority, path) = ("site", "/variables.php");
    let mut fields = vec![0, 0, 0xd1, 0xd7];
    for (name, value) in [(0x50, authority), (0x51, path)] {
        fields.extend([name, value.len() as u8]);
        fields.extend(value.bytes());
    }
    [&[1, fields.len() as u8][..], &fields].concat()
}

/// Whether a request was served before the handshake was complete, of a connection that offers it if it can.
async fn is_early(to: SocketAddr, settings: &quinn::ClientConfig, resumes: bool) -> bool {
    let endpoint = quinn::Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    if resumes {
        get_tickets(to, settings).await;
    }
    let connecting = endpoint.connect_with(settings.clone(), to, "site").unwrap();
    let quic = match resumes {
        true => match connecting.into_0rtt() {
            Ok((connection, _)) => connection,
            Err(_) => panic!("the server sends tickets"),
        },
        false => connecting.await.unwrap(),
    };
    // Nothing here waits before the request is in the first flight.
    let (mut request_stream, mut response) = quic.open_bi().await.unwrap();
    request_stream.write_all(&request()).await.unwrap();
    request_stream.finish().unwrap();
    let mut control = quic.open_uni().await.unwrap();
    // Its type, and empty SETTINGS (RFC 9114 6.2.1).
    control.write_all(&[0, 4, 0]).await.unwrap();
    let response = response.read_to_end(1 << 20).await.unwrap();
    quic.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    let response = String::from_utf8_lossy(&response);
    assert!(response.contains("\"REQUEST_METHOD\":\"GET\""), "{response}");
    response.contains("\"HTTP_EARLY_DATA\":\"1\"")
}

/// A response to early data can end a connection before its tickets have arrived. Those of a whole handshake have, once there
/// is a response. No token is used for it.
async fn get_tickets(to: SocketAddr, settings: &quinn::ClientConfig) {
    let mut settings = settings.clone();
    settings.token_store(Arc::new(Tokens::default()));
    Box::pin(is_early(to, &settings, false)).await;
}

/// HAProxy CVE-2024-49214, h2o CVE-2024-45397: rules by address, rates and bans would take a forged source
/// address for that of the client.
#[test]
fn early_data_waits_until_its_address_is_proven() {
    if Protocol::of_run() != Protocol::Http1 {
        return;
    }
    let docroot = Docroot::of("advisories");
    let folder = docroot.beside().path().to_owned();
    Certificate::make(&folder, "one", "DNS:site");
    let text = Configured::text("");
    let rest = text.split_once('\n').expect("the line with `listen`").1;
    let text = format!(
        "threads = 2\n{rest}[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\nearly_data = true\n\
         tls = [{{ certificate = \"one.pem\", key = \"one.key\" }}]\n"
    );
    let site = Configured::start(docroot, &text);
    let url = &site.listeners()[0];
    let to = url.trim_start_matches("https://").trim_end_matches('/').parse().unwrap();
    let tokens = Arc::new(Tokens::default());
    let settings = settings(&folder, &tokens);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = |resumes| {
        let asked = is_early(to, &settings, resumes);
        let limit = Duration::from_secs(60);
        runtime.block_on(async { tokio::time::timeout(limit, asked).await }).expect("a response")
    };
    let only = |token: Option<Bytes>| {
        let mut tokens = tokens.0.lock().unwrap();
        tokens.clear();
        tokens.extend(token);
    };
    let latest = || tokens.0.lock().unwrap().last().cloned().expect("the server sends tokens");
    assert!(!ask(false), "the first connection resumes nothing");
    for round in 0..4 {
        // On a busy machine the handshake may be complete before the request is looked at.
        let proven = (0..20).any(|_| {
            only(Some(latest()));
            ask(true)
        });
        assert!(proven, "with a token, in round {round}");
        let token = latest();
        only(Some(token.clone()));
        ask(true);
        only(Some(token));
        assert!(!ask(true), "with a token that was used, in round {round}");
        only(None);
        assert!(!ask(true), "without a token, in round {round}");
    }
}
