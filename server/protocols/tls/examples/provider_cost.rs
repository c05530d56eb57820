//! What TLS costs with each provider of cryptography: CPU time of the server's side of handshakes, full and
//! resumed, and of encryption, all in memory. `docs/decisions/0022` has figures of it.
//!
//! ```sh
//! cargo run --release -p outboard-tls --features ring --example provider_cost
//! ```
//!
//! Providers take turns, so that other load on the machine affects both; the median of all turns counts.
//! The certificates are made by openssl(1).

use rustix::time::{ClockId, clock_gettime};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ProducesTickets;
use rustls::{ClientConfig, ClientConnection, Connection, HandshakeKind, ServerConfig};
use rustls::{RootCertStore, ServerConnection, SupportedCipherSuite};
use std::error::Error;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

const TURNS: usize = 15;
const HANDSHAKES_PER_TURN: u32 = 60;
const BULK_BYTES: usize = 32 << 20;
const RECORD_BYTES: usize = 16 << 10;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

struct Provider {
    name: &'static str,
    crypto: CryptoProvider,
    ticketer: Arc<dyn ProducesTickets>,
}

fn main() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("provider-cost-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let outcome = measure(&directory);
    std::fs::remove_dir_all(&directory)?;
    outcome
}

fn measure(directory: &Path) -> Result<()> {
    let providers = [
        Provider {
            name: "ring",
            crypto: ring::default_provider(),
            ticketer: ring::Ticketer::new()?,
        },
        Provider {
            name: "aws-lc",
            crypto: aws_lc_rs::default_provider(),
            ticketer: aws_lc_rs::Ticketer::new()?,
        },
    ];
    let hybrid = aws_lc_rs::kx_group::X25519MLKEM768;
    for (key, options) in [
        ("P-256", &["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"][..]),
        ("RSA 2048", &["rsa:2048"]),
    ] {
        let certificate = Certificate::make(directory, options)?;
        for resumed in [false, true] {
            let x25519 = |provider: &Provider| {
                let all = &provider.crypto.kx_groups;
                *all.iter()
                    .find(|group| group.name() == rustls::NamedGroup::X25519)
                    .expect("it has X25519")
            };
            let mut rows = vec![
                Row::new("ring", "X25519", &certificate, &providers[0], x25519(&providers[0]))?,
                Row::new("aws-lc", "X25519", &certificate, &providers[1], x25519(&providers[1]))?,
                Row::new("aws-lc", "X25519MLKEM768", &certificate, &providers[1], hybrid)?,
            ];
            for _ in 0..TURNS {
                for row in &mut rows {
                    row.handshakes(resumed)?;
                }
            }
            let kind = if resumed { "resumed" } else { "full" };
            for row in &mut rows {
                let us = median(&mut row.times_us);
                println!("{key:9} {kind:8} {:7} {:15} {us:7.1} us", row.provider, row.group);
            }
        }
    }
    bulk(directory, &providers)
}

fn bulk(directory: &Path, providers: &[Provider]) -> Result<()> {
    let options = &["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    let certificate = Certificate::make(directory, options)?;
    for suite in ["AES_128_GCM", "AES_256_GCM", "CHACHA20_POLY1305"] {
        let mut rows = Vec::new();
        for provider in providers {
            let mut crypto = provider.crypto.clone();
            crypto.cipher_suites.retain(|known: &SupportedCipherSuite| {
                let name = format!("{:?}", known.suite());
                name.starts_with("TLS13_") && name.contains(suite)
            });
            let settings = Settings::new(&certificate, crypto, provider.ticketer.clone())?;
            rows.push((provider.name, settings.connected()?, Vec::new()));
        }
        for _ in 0..TURNS {
            for (_, (client, server), times) in &mut rows {
                times.push(transfer(client, server)?);
            }
        }
        for (name, _, times) in &mut rows {
            let rate = BULK_BYTES as f64 / median(times) / 1000.0;
            println!("{suite:17} {name:7} {rate:6.2} GB/s encrypted");
        }
    }
    Ok(())
}

/// Nanoseconds of CPU per byte count of one transfer, encryption alone.
fn transfer(client: &mut ClientConnection, server: &mut ServerConnection) -> Result<f64> {
    let (data, mut wire, mut plain) = (vec![7; RECORD_BYTES], Vec::new(), vec![0; RECORD_BYTES]);
    let mut spent = 0.0;
    for _ in 0..BULK_BYTES / RECORD_BYTES {
        wire.clear();
        let from = cpu_us();
        server.writer().write_all(&data)?;
        while server.wants_write() {
            server.write_tls(&mut wire)?;
        }
        spent += cpu_us() - from;
        let mut input = &wire[..];
        while !input.is_empty() {
            client.read_tls(&mut input)?;
            client.process_new_packets()?;
        }
        client.reader().read_exact(&mut plain)?;
    }
    Ok(spent)
}

struct Row {
    provider: &'static str,
    group: &'static str,
    settings: Settings,
    times_us: Vec<f64>,
}

impl Row {
    fn new(
        name: &'static str,
        group_name: &'static str,
        certificate: &Certificate,
        provider: &Provider,
        group: &'static dyn SupportedKxGroup,
    ) -> Result<Self> {
        let mut crypto = provider.crypto.clone();
        crypto.kx_groups = vec![group];
        let settings = Settings::new(certificate, crypto, provider.ticketer.clone())?;
        Ok(Self { provider: name, group: group_name, settings, times_us: Vec::new() })
    }

    fn handshakes(&mut self, resumed: bool) -> Result<()> {
        let mut settings = self.settings.clone();
        if !resumed {
            let client = Arc::make_mut(&mut settings.client);
            client.resumption = Resumption::disabled();
        } else {
            settings.connected()?;
        }
        let mut spent = 0.0;
        for _ in 0..HANDSHAKES_PER_TURN {
            let (kind, us) = settings.handshake()?.2;
            let expected = if resumed { HandshakeKind::Resumed } else { HandshakeKind::Full };
            if kind != expected {
                return Err(format!("{kind:?} instead of {expected:?}").into());
            }
            spent += us;
        }
        self.times_us.push(spent / f64::from(HANDSHAKES_PER_TURN));
        Ok(())
    }
}

#[derive(Clone)]
struct Settings {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Settings {
    fn new(
        certificate: &Certificate,
        crypto: CryptoProvider,
        ticketer: Arc<dyn ProducesTickets>,
    ) -> Result<Self> {
        let crypto = Arc::new(crypto);
        let chain = vec![certificate.chain.clone()];
        let mut roots = RootCertStore::empty();
        roots.add(certificate.chain.clone())?;
        let client = ClientConfig::builder_with_provider(crypto.clone())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut server = ServerConfig::builder_with_provider(crypto)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, certificate.key.clone_key())?;
        server.ticketer = ticketer;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    fn connected(&self) -> Result<(ClientConnection, ServerConnection)> {
        let (client, server, _) = self.handshake()?;
        Ok((client, server))
    }

    /// A handshake with its tickets; its kind, and the CPU time of the server.
    fn handshake(&self) -> Result<(ClientConnection, ServerConnection, (HandshakeKind, f64))> {
        let name = ServerName::try_from("localhost")?;
        let mut client: Connection = ClientConnection::new(self.client.clone(), name)?.into();
        let from = cpu_us();
        let mut server: Connection = ServerConnection::new(self.server.clone())?.into();
        let mut spent = cpu_us() - from;
        let mut wire = Vec::new();
        while client.is_handshaking() || server.is_handshaking() || server.wants_write() {
            carry(&mut client, &mut wire)?;
            let from = cpu_us();
            take(&mut server, &wire)?;
            carry(&mut server, &mut wire)?;
            spent += cpu_us() - from;
            take(&mut client, &wire)?;
        }
        let kind = server.handshake_kind().ok_or("no kind of handshake")?;
        match (client, server) {
            (Connection::Client(client), Connection::Server(server)) => {
                Ok((client, server, (kind, spent)))
            }
            _ => Err("sides are exchanged".into()),
        }
    }
}

fn carry(from: &mut Connection, wire: &mut Vec<u8>) -> Result<()> {
    wire.clear();
    while from.wants_write() {
        from.write_tls(wire)?;
    }
    Ok(())
}

fn take(to: &mut Connection, mut wire: &[u8]) -> Result<()> {
    while !wire.is_empty() {
        to.read_tls(&mut wire)?;
        to.process_new_packets()?;
    }
    Ok(())
}

struct Certificate {
    chain: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Certificate {
    fn make(directory: &Path, options: &[&str]) -> Result<Self> {
        let (chain, key) = (directory.join("chain.pem"), directory.join("key.pem"));
        let status = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-newkey"])
            .args(options)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&chain)
            .stderr(Stdio::null())
            .status()?;
        if !status.success() {
            return Err("openssl failed".into());
        }
        Ok(Self {
            chain: CertificateDer::from_pem_file(chain)?,
            key: PrivateKeyDer::from_pem_file(key)?,
        })
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
