//! Listeners, and the proxies whose headers they trust.

mod tls;

use super::access::Admission;
use super::app::App;
use super::context::Context;
use super::forwarding::Forwarding;
use super::peers::Peers;
use crate::diagnostic::Kind;
use crate::raw::{self, Certificate, ListenEntry};
use crate::scalar::{Address, Fault, UNIX_PATH_MAX_BYTES};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use tls::ClientAuthorities;

/// An address that accepts connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name in logs, unique among the listeners.
    pub name: String,
    /// Its address.
    pub address: ListenAddress,
    /// Trusted proxies and the `X-Forwarded-*` headers accepted from them.
    pub forwarding: Forwarding,
    /// Proxies whose connections start with a header of the PROXY protocol.
    pub proxy_protocol: Peers,
    /// The addresses whose connections are accepted.
    pub admission: Admission,
    /// Maximum open connections; `None`: only the server's limit applies.
    pub max_connections: Option<u32>,
    /// Maximum open connections of a client address; `None`: only the server's limit applies.
    pub connections_per_ip: Option<u32>,
    /// Its certificates.
    pub certificates: Vec<Certificate>,
    /// Whether it has certificates that the server obtains itself.
    pub obtains_certificates: bool,
    /// Whether TLS 1.2 is refused.
    pub requires_tls13: bool,
    /// Whether requests are accepted before the handshake is complete.
    pub early_data: bool,
    /// How clients are authenticated; `None`: they are not.
    pub clients: Option<ClientAuthorities>,
    /// Whether requests are redirected to a TLS listener.
    pub redirects_to_https: bool,
    /// Whether HTTP/3 is served too, on the same port of UDP.
    pub http3: bool,
    /// What its clients speak.
    pub protocol: Protocol,
}

impl Listener {
    /// Whether it uses TLS.
    pub fn is_encrypted(&self) -> bool {
        self.obtains_certificates || !self.certificates.is_empty()
    }
}

/// What the clients of a listener speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, for all apps.
    #[default]
    Http,
    /// A protocol of a program's own.
    Stream(ProgramPort),
    /// Datagrams.
    Datagram(ProgramPort),
}

/// A port of the program of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPort {
    /// The app.
    pub app: String,
    /// The index of the port among those of the program.
    pub index: u16,
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// TCP; port 0 lets the kernel choose one.
    Tcp(SocketAddr),
    /// A Unix socket with the permission bits its file gets.
    Unix {
        /// Absolute.
        path: PathBuf,
        /// Such as `0o660`.
        mode: u32,
    },
}

pub(super) const DEFAULT_SOCKET_MODE: u32 = 0o660;

/// As the configuration file writes it: `127.0.0.1:8080`, `unix:/run/outboard.sock`.
impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}

pub(super) fn listeners(raw: &raw::File, context: &mut Context<'_>) -> Vec<Listener> {
    let entries = raw.listen.as_slice();
    if entries.is_empty() && context.places.wrote(&["listen"]) {
        let fault = Fault::new("`listen` is empty: the server would accept nothing");
        context.value(&["listen"], Kind::BadValue, fault);
    }
    let mut listeners: Vec<Listener> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let listener = listener(raw, entry, index, context);
        report_duplicates(&listeners, &listener, index, context);
        listeners.push(listener);
    }
    listeners
}

/// Apps that require what no listener requests would refuse every client.
pub(super) fn check_client_certificates(
    listeners: &[Listener],
    apps: &[App],
    context: &mut Context<'_>,
) {
    if listeners.iter().any(|listener| listener.clients.is_some()) {
        return;
    }
    for app in apps.iter().filter(|app| app.requires_client_certificate) {
        let fault = Fault::new("no listener requests certificates of clients")
            .hint("add `client_ca` to a listener with TLS");
        let place = ["app", &app.name, "require_client_certificate"];
        context.value(&place, Kind::BadValue, fault);
    }
}

fn listener(
    raw: &raw::File,
    entry: &ListenEntry,
    index: usize,
    context: &mut Context<'_>,
) -> Listener {
    let step = index.to_string();
    match entry {
        ListenEntry::Address(written) => {
            let address = address(written, DEFAULT_SOCKET_MODE, &["listen", &step], context);
            let proxies = context.peers(&["trusted_proxies"], &raw.trusted_proxies);
            let forwarding = Forwarding::new(&proxies, &raw.forwarded_headers);
            Listener {
                name: address.to_string(),
                address,
                forwarding,
                admission: Admission::default(),
                max_connections: None,
                connections_per_ip: None,
                proxy_protocol: Peers::default(),
                certificates: Vec::new(),
                obtains_certificates: false,
                requires_tls13: false,
                early_data: false,
                clients: None,
                redirects_to_https: false,
                http3: false,
                protocol: Protocol::Http,
            }
        }
        ListenEntry::Table(table) => {
            let place = ["listen", &step, "address"];
            let address = address(&table.address, table.mode.0, &place, context);
            let at = |key| ["listen", &step, key];
            let proxies = match &table.trusted_proxies {
                Some(own) => context.peers(&at("trusted_proxies"), own),
                None => context.peers(&["trusted_proxies"], &raw.trusted_proxies),
            };
            let balancers = context.peers(&at("proxy_protocol"), &table.proxy_protocol);
            let allow = context.peers(&at("allow"), &table.allow);
            let deny = context.peers(&at("deny"), &table.deny);
            let headers = table.forwarded_headers.as_ref().unwrap_or(&raw.forwarded_headers);
            let protocol = protocol(raw, table, &step, context);
            let own_name = match &protocol {
                Protocol::Datagram(_) => format!("datagrams of {address}"),
                _ => address.to_string(),
            };
            let name = table.name.as_ref().map_or(own_name, |name| name.0.clone());
            let certificates = tls::certificates(table, &step, context);
            let clients = tls::clients(table, &step, context);
            if table.early_data {
                tls::check_early_data(table, &step, context);
            }
            if table.http3 {
                check_http3(table, &address, &step, context);
            }
            if table.redirect_to_https {
                check_redirect(raw, table, &step, context);
            }
            if matches!(protocol, Protocol::Datagram(_)) {
                check_connectionless(table, &step, context);
            }
            Listener {
                name,
                address,
                forwarding: Forwarding::new(&proxies, headers),
                proxy_protocol: Peers::new(&balancers),
                admission: Admission::new(&allow, &deny),
                max_connections: Some(table.connections).filter(|most| *most > 0),
                connections_per_ip: Some(table.connections_per_ip).filter(|most| *most > 0),
                certificates,
                obtains_certificates: table.tls.is_automatic(),
                requires_tls13: table.tls_minimum == raw::TlsVersion::Tls13,
                early_data: table.early_data,
                clients,
                redirects_to_https: table.redirect_to_https,
                http3: table.http3,
                protocol,
            }
        }
    }
}

fn protocol(
    raw: &raw::File,
    table: &raw::Listen,
    step: &str,
    context: &mut Context<'_>,
) -> Protocol {
    let is_program = |app: &raw::App| app.worker.starts_server;
    let mut programs = raw.app.iter().filter(|(_, app)| is_program(app)).map(|(name, _)| name);
    if table.protocol == raw::Protocol::Http {
        return Protocol::Http;
    }
    let found = match &table.app {
        Some(wanted) => programs.find(|name| name.as_str() == wanted.0),
        None => programs.next().filter(|_| programs.next().is_none()),
    };
    let Some(app) = found else {
        let fault =
            Fault::new("raw connections need an app whose worker has `starts_server = true`")
                .hint("name one of them in `app`");
        let key = if table.app.is_some() { "app" } else { "protocol" };
        context.value(&["listen", step, key], Kind::BadValue, fault);
        return Protocol::Http;
    };
    let port = ProgramPort { app: app.to_string(), index: table.program_port };
    match table.protocol {
        raw::Protocol::Datagram => Protocol::Datagram(port),
        _ => Protocol::Stream(port),
    }
}

fn check_http3(
    table: &raw::Listen,
    address: &ListenAddress,
    step: &str,
    context: &mut Context<'_>,
) {
    let fault = if table.protocol != raw::Protocol::Http {
        Fault::new("HTTP/3 is for listeners of HTTP")
    } else if table.tls.is_empty() {
        Fault::new("HTTP/3 needs TLS").hint("add `tls` to this listener")
    } else if !table.proxy_protocol.is_empty() {
        Fault::new("HTTP/3 has no PROXY protocol").hint("use a listener of its own for each")
    } else if !matches!(address, ListenAddress::Tcp(_)) {
        Fault::new("HTTP/3 needs a port of UDP, which a Unix socket does not have")
    } else {
        return;
    };
    context.value(&["listen", step, "http3"], Kind::BadValue, fault);
}

fn check_connectionless(table: &raw::Listen, step: &str, context: &mut Context<'_>) {
    let limits =
        [("connections", table.connections), ("connections_per_ip", table.connections_per_ip)];
    for (key, _) in limits.into_iter().filter(|(_, most)| *most > 0) {
        let fault = Fault::new("datagrams have no connections");
        context.value(&["listen", step, key], Kind::BadValue, fault);
    }
}

fn check_redirect(raw: &raw::File, table: &raw::Listen, step: &str, context: &mut Context<'_>) {
    let is_encrypted =
        |entry: &ListenEntry| matches!(entry, ListenEntry::Table(table) if !table.tls.is_empty());
    let fault = if !table.tls.is_empty() {
        Fault::new("this listener already uses TLS")
    } else if !raw.listen.as_slice().iter().any(is_encrypted) {
        Fault::new("no listener uses TLS").hint("add `tls` to a listener")
    } else {
        return;
    };
    context.value(&["listen", step, "redirect_to_https"], Kind::BadValue, fault);
}

/// The address with an absolute socket path.
pub(super) fn address(
    written: &Address,
    mode: u32,
    place: &[&str],
    context: &mut Context<'_>,
) -> ListenAddress {
    match written {
        Address::Tcp(address) => ListenAddress::Tcp(*address),
        Address::Unix(path) => {
            let path = context.absolute(path);
            check_socket_path(&path, place, context);
            ListenAddress::Unix { path, mode }
        }
    }
}

pub(super) fn check_socket_path(path: &Path, place: &[&str], context: &mut Context<'_>) {
    let length = path.as_os_str().len();
    if length > UNIX_PATH_MAX_BYTES {
        let message =
            format!("the socket path has {length} bytes; the limit is {UNIX_PATH_MAX_BYTES}");
        context.value(place, Kind::BadValue, Fault::new(message).hint("use a shorter path"));
    }
}

fn report_duplicates(
    earlier: &[Listener],
    one: &Listener,
    index: usize,
    context: &mut Context<'_>,
) {
    let any_port = matches!(one.address, ListenAddress::Tcp(address) if address.port() == 0);
    let is_datagram = |one: &Listener| matches!(one.protocol, Protocol::Datagram(_));
    let same_kind = |other: &&Listener| is_datagram(other) == is_datagram(one);
    let same_place = |other: &Listener| match (&other.address, &one.address) {
        (ListenAddress::Unix { path: a, .. }, ListenAddress::Unix { path: b, .. }) => a == b,
        (a, b) => a == b && !any_port,
    };
    let step = index.to_string();
    if let Some(first) = earlier.iter().position(|other| same_kind(&other) && same_place(other)) {
        let line = context.line_of(&["listen", &first.to_string()]);
        let message = format!("the address `{}` is used twice", one.address);
        let fault =
            Fault::new(message).hint(format!("it is already used by the first listener{line}"));
        context.value(&["listen", &step, "address"], Kind::Duplicate, fault);
    } else if !any_port && earlier.iter().any(|other| other.name == one.name) {
        let fault = Fault::new(format!("two listeners are named `{}`", one.name));
        context.value(&["listen", &step, "name"], Kind::Duplicate, fault);
    }
}

#[cfg(test)]
mod tests;
