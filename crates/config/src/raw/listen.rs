//! `listen`: where connections are accepted.

use crate::scalar::{Address, FileMode, FilePath, Peer, PlainText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A listener: its address alone, or a table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum ListenEntry {
    /// An address alone.
    Address(Address),
    /// A table.
    Table(Listen),
}

/// One place where connections are accepted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listen {
    /// A TCP address, or `unix:` and the path of a socket.
    pub(crate) address: Address,
    /// What logs call the listener; absent: its address.
    #[serde(default)]
    pub(crate) name: Option<PlainText>,
    /// The permissions of a Unix socket.
    #[serde(default = "default_mode")]
    #[schemars(extend("x-alias" = ["listen.mode"]))]
    pub(crate) mode: FileMode,
    /// Peers whose `X-Forwarded-*` headers are believed here; absent: the file's.
    #[serde(default)]
    pub(crate) trusted_proxies: Option<Vec<Peer>>,
    /// Which of these headers are believed here; absent: the file's.
    #[serde(default)]
    pub(crate) forwarded_headers: Option<Vec<ForwardedHeader>>,
    /// Certificates: connections speak TLS then. The name that a client asks for decides which one it
    /// is shown; the first, when it asks for a name of none of them.
    #[serde(default)]
    #[schemars(extend("x-alias" = ["ssl_certificate", "SSLCertificateFile"]))]
    pub(crate) tls: Vec<Certificate>,
    /// Whether requests that come without TLS are sent to the first address that speaks it, by
    /// status 308; those for `/.well-known/acme-challenge/` are served.
    #[serde(default)]
    pub(crate) redirect_to_https: bool,
}

/// A certificate that a listener shows. Both files are read at start, before a server of root's
/// becomes its user, and at each reload.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Certificate {
    /// The certificate with those of the authorities between, in PEM: `fullchain.pem`.
    pub(crate) certificate: FilePath,
    /// Its private key, in PEM: `privkey.pem`.
    #[schemars(extend("x-alias" = ["ssl_certificate_key", "SSLCertificateKeyFile"]))]
    pub(crate) key: FilePath,
}

/// A header by which a proxy tells what it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ForwardedHeader {
    /// `X-Forwarded-For`: the client's address.
    For,
    /// `X-Forwarded-Proto`: `http` or `https`.
    Proto,
    /// `X-Forwarded-Host`: the host that the client asked for.
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
