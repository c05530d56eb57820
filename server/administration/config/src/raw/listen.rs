//! `listen`: addresses that accept connections.

use crate::scalar::{Address, As, FileMode, FilePath, Peer, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A listener: an address, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum ListenEntry {
    /// An address alone.
    Address(Address),
    /// A table.
    Table(Box<Listen>),
}

/// An address that accepts connections.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listen {
    /// TCP address, or `unix:` and the path of a socket.
    pub(crate) address: Address,
    /// Name of the listener in logs. Default: its address.
    #[serde(default)]
    pub(crate) name: Option<PlainText>,
    /// Permissions of a Unix socket.
    #[serde(default = "default_mode")]
    #[schemars(extend("x-alias" = ["listen.mode"]))]
    pub(crate) mode: FileMode,
    /// Protocol of the clients.
    #[serde(default)]
    pub(crate) protocol: Protocol,
    /// The app that receives raw connections or datagrams: its worker script starts a server itself.
    /// Default: the only such app.
    #[serde(default)]
    pub(crate) app: Option<PlainText>,
    /// The port of the program whose callbacks and options apply to raw connections or datagrams, by
    /// the order in which the program names its ports: 0 is that of its server, 1 the first of
    /// `listen()`.
    #[serde(default)]
    pub(crate) program_port: u16,
    /// Peers whose `X-Forwarded-*` headers are trusted on this listener. Default: `trusted_proxies`
    /// at the top of the file.
    #[serde(default)]
    pub(crate) trusted_proxies: Option<Vec<Peer>>,
    /// `X-Forwarded-*` headers accepted on this listener. Default: `forwarded_headers` at the top
    /// of the file.
    #[serde(default)]
    pub(crate) forwarded_headers: Option<Vec<ForwardedHeader>>,
    /// Networks whose connections are accepted; all others are closed before TLS. `"unix"` stands for peers
    /// on a Unix socket. Behind a proxy these are the addresses of proxies. Default: all.
    #[serde(default)]
    pub(crate) allow: Vec<Peer>,
    /// Networks whose connections are closed, also if `allow` has them.
    #[serde(default)]
    pub(crate) deny: Vec<Peer>,
    /// Maximum open connections of this listener; further ones are closed before TLS. 0: only
    /// `limits.connections` applies.
    #[serde(default)]
    #[schemars(range(max = 1_000_000), extend("x-alias" = ["max_connections", "maxconn"]))]
    pub(crate) connections: u32,
    /// Maximum open connections of one client address to this listener; an IPv6 /64 network counts as one
    /// address. Further ones are closed before TLS. 0: only `limits.connections_per_ip` applies. Trusted
    /// proxies and Unix sockets are exempt.
    #[serde(default)]
    #[schemars(range(max = 1_000_000), extend("x-alias" = ["limit_conn", "max_connections_per_ip"]))]
    pub(crate) connections_per_ip: u32,
    /// Proxies whose connections start with a header of the PROXY protocol (version 1 or 2), which names the
    /// client. Connections of these peers without a valid header are closed; those of all other peers have
    /// none.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["proxy_protocol", "accept-proxy", "RemoteIPProxyProtocol", "send-proxy"]))]
    pub(crate) proxy_protocol: Vec<Peer>,
    /// Certificates. With at least one, the listener speaks TLS. The server name of the client
    /// (SNI) selects the certificate; the first one is used if none matches. `"auto"`: the server
    /// obtains and renews the certificates itself, as `[acme]` describes.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["ssl", "https", "SSLEngine"]))]
    pub(crate) tls: Tls,
    /// The oldest version of TLS that is accepted.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["ssl_protocols", "SSLProtocol"]))]
    pub(crate) tls_minimum: TlsVersion,
    /// Accepts requests of a client that resumes a session before its handshake is complete (TLS 1.3 and
    /// HTTP/3): `GET`, `HEAD` and `OPTIONS` without body; others wait. PHP and upstreams see `Early-Data: 1`
    /// (RFC 8470).
    #[serde(default)]
    #[schemars(extend("x-alias" = ["ssl_early_data", "0rtt"]))]
    pub(crate) early_data: bool,
    /// Authorities (PEM) whose certificates authenticate clients; with it the listener requests a
    /// certificate of each client. Read like the certificates of the listener.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["ssl_client_certificate", "SSLCACertificateFile"]))]
    pub(crate) client_ca: Option<FilePath>,
    /// Whether clients without a valid certificate can connect. Scripts get the result in
    /// `SSL_CLIENT_VERIFY`; `require_client_certificate` of an app refuses such clients.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["ssl_verify_client", "SSLVerifyClient"]))]
    pub(crate) client_verify: ClientVerify,
    /// Revocation lists (PEM) of `client_ca`: one of each authority. Once they have expired, no
    /// certificate is valid.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["ssl_crl", "SSLCARevocationFile"]))]
    pub(crate) client_crl: Option<FilePath>,
    /// Redirects requests without TLS to the first TLS listener, with status 308. Paths below
    /// `/.well-known/acme-challenge/` are served, not redirected.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["force_https", "https_redirect", "ssl_redirect", "forceSSL"]))]
    pub(crate) redirect_to_https: bool,
    /// Serves HTTP/3 (RFC 9114) on the same port of UDP, and announces it with `Alt-Svc` in responses over
    /// TLS. Needs `tls`.
    #[serde(default)]
    pub(crate) http3: bool,
}

/// Where certificates come from.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum Tls {
    /// The server obtains them itself.
    Auto(AutoTls),
    /// These files.
    Files(Vec<Certificate>),
}

/// The server obtains certificates itself.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum AutoTls {
    /// As `[acme]` describes.
    Auto,
}

impl Tls {
    /// Whether the listener does not speak TLS.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Files(files) if files.is_empty())
    }

    /// Whether the server obtains the certificates itself.
    pub(crate) fn is_automatic(&self) -> bool {
        matches!(self, Self::Auto(AutoTls::Auto))
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self::Files(Vec::new())
    }
}

/// What the clients of a listener speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Protocol {
    /// HTTP, for all apps.
    #[default]
    Http,
    /// A protocol of the program's own, over TCP, TLS or a Unix socket.
    Stream,
    /// Datagrams: UDP, or those of a Unix socket.
    Datagram,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

/// How clients are authenticated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ClientVerify {
    /// A client without a valid certificate is refused in the handshake.
    #[default]
    Required,
    /// Any client can connect.
    Optional,
}

/// A certificate of a listener. The files are read at start, before root's privileges are dropped, at each reload,
/// and when they have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Certificate {
    /// Certificate chain in PEM, such as `fullchain.pem`.
    #[schemars(extend("x-alias" = ["ssl_certificate", "SSLCertificateFile"]))]
    #[serde(with = "As::<FilePath>")]
    pub certificate: PathBuf,
    /// Private key in PEM, such as `privkey.pem`.
    #[schemars(extend("x-alias" = ["ssl_certificate_key", "SSLCertificateKeyFile"]))]
    #[serde(with = "As::<FilePath>")]
    pub key: PathBuf,
    /// OCSP response of the authority in DER, which clients get with the certificate. Read again when
    /// the file changes.
    #[serde(default, with = "As::<Option<FilePath>>")]
    #[schemars(extend("x-alias" = ["ssl_stapling_file", "SSLStaplingForceURL"]))]
    pub ocsp: Option<PathBuf>,
}

/// A header in which a proxy passes on facts about the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ForwardedHeader {
    /// `X-Forwarded-For`: the client's address.
    For,
    /// `X-Forwarded-Proto`: `http` or `https`.
    Proto,
    /// `X-Forwarded-Host`: the host that the client requested.
    Host,
}

impl ForwardedHeader {
    /// Those that a proxy sets as a rule.
    pub(crate) const USUAL: [ForwardedHeader; 2] = [ForwardedHeader::For, ForwardedHeader::Proto];
}

impl Default for ListenEntry {
    fn default() -> Self {
        ListenEntry::Address(Address::Tcp((std::net::Ipv4Addr::LOCALHOST, 8080).into()))
    }
}

fn default_mode() -> FileMode {
    FileMode(0o660)
}
