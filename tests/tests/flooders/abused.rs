//! [`Abused`]: a server whose clients violate the rules of a protocol, and what it must be afterwards.
//!
//! Started by the tests of HTTP/2, HTTP/3, QUIC and TLS. Invariants: requests for another app are sent from
//! before the first abuse until the verdict, and each is answered; afterwards the gateway has the memory
//! and the processor time of an idle one.

use super::*;
use outboard_e2e::Certificate;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Bytes of `large.txt`, more than every window and buffer.
pub(crate) const LARGE: usize = 8 << 20;
/// What the allocator does not give back, and pages of the binary.
const MOST_LEFT_BYTES: u64 = 48 << 20;
/// In which the gateway's share of a processor is measured.
const WINDOW: Duration = Duration::from_millis(250);

/// See the module.
pub(crate) struct Abused {
    site: Configured,
    certificate: Certificate,
    canary: Canary,
    begun: Instant,
    cpu: Duration,
    rss_bytes: u64,
}

impl Abused {
    /// A server with short time-outs: for heads, handshakes and a client that neither reads nor requests.
    pub(crate) fn start() -> Abused {
        let docroot = docroot();
        let certificate = Certificate::make(docroot.beside().path(), "one", "DNS:site");
        docroot.put("large.txt", vec![b'x'; LARGE]);
        let site = Configured::start(docroot, TEXT);
        let gateway = site.child().pid();
        let canary = Canary::start(site.address());
        let (begun, cpu, rss_bytes) = (Instant::now(), cpu_time(gateway), rss_bytes(gateway));
        Abused { site, certificate, canary, begun, cpu, rss_bytes }
    }

    /// Where HTTP/1.1 and HTTP/2 are spoken without TLS.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.site.address()
    }

    /// Where TLS is spoken, by TCP and by UDP.
    pub(crate) fn secure(&self) -> SocketAddr {
        tls_address(&self.site)
    }

    /// The settings of a client that trusts this server.
    pub(crate) fn tls(&self, protocol: &str) -> ClientConfig {
        let mut provider = aws_lc_rs::default_provider();
        // One datagram holds a ClientHello with this key share.
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
        let chain = CertificateDer::from_pem_file(&self.certificate.chain).expect("a certificate");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(chain).expect("a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_safe_default_protocol_versions().expect("TLS 1.3");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.enable_early_data = true;
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        config
    }

    /// The memory that the gateway has had more than at the start.
    pub(crate) fn more_bytes(&self) -> u64 {
        rss_bytes(self.site.child().pid()).saturating_sub(self.rss_bytes)
    }

    /// Connections, that of the other app's client included.
    pub(crate) fn open_connections(&self) -> u64 {
        self.site.status()["connections"].as_u64().expect("the status has it")
    }

    /// Requests of HTTP/2 and HTTP/3 that have not ended.
    pub(crate) fn open_streams(&self) -> u64 {
        self.site.status()["streams"].as_u64().expect("the status has it")
    }

    /// The end of the abuse: the other app was served all the while, and the gateway is as before.
    #[track_caller]
    pub(crate) fn ends_unharmed(self, source: &str) {
        let gateway = self.site.child().pid();
        let busy =
            (cpu_time(gateway) - self.cpu).as_secs_f64() / self.begun.elapsed().as_secs_f64();
        let times = self.canary.stop();
        let p99 = times[(times.len() - 1) * 99 / 100];
        let mut window = (Instant::now(), cpu_time(gateway));
        eventually_within(RECOVERED_WITHIN, "the gateway is idle", || {
            let (since, before) = window;
            let (elapsed, used) = (since.elapsed(), cpu_time(gateway) - before);
            if elapsed < WINDOW {
                return Err(elapsed);
            }
            window = (Instant::now(), cpu_time(gateway));
            if used < elapsed / 10 { Ok(()) } else { Err(used) }
        });
        let most_bytes = memory_bytes(gateway, "VmHWM:").saturating_sub(self.rss_bytes);
        let left_bytes = rss_bytes(gateway).saturating_sub(self.rss_bytes);
        println!(
            "{source:<28} {:>6} probes  p50 {:>6.1}  p99 {:>6.1}  most {:>6.1} ms  gateway {:>3.0} %  \
             rss {} MiB, at most {} KiB more, {} KiB more at the end",
            times.len(),
            ms(times[times.len() / 2]),
            ms(p99),
            ms(*times.last().expect("there were probes")),
            busy * 100.0,
            self.rss_bytes >> 20,
            most_bytes >> 10,
            left_bytes >> 10,
        );
        assert!(p99 <= P99, "{source}: p99 of the other app is {p99:?}");
        assert!(left_bytes <= MOST_LEFT_BYTES, "{source}: {left_bytes} bytes more than before");
        recovers(&self.site);
    }
}

const TEXT: &str = r#"threads = 2
drain_timeout = "1s"
[log.access]
path = "off"
[log.error]
path = "error.log"
[log.slow]
path = "off"
[limits]
header_timeout = "1s"
write_timeout = "3s"
idle_timeout = "5s"
request_deadline = "2s"
[app.canary]
root = "www"
hosts = ["canary"]
[app.canary.pool]
min = 2
max = 2
[app.site]
root = "www"
[app.site.pool]
min = 1
max = 1
queue_length = 10
[[listen]]
address = "127.0.0.1:0"
[[listen]]
address = "127.0.0.2:0"
tls = [{ certificate = "one.pem", key = "one.key" }]
http3 = true
"#;
