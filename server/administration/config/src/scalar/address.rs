//! Listening addresses: TCP addresses, Unix sockets and their permissions.

use super::kind::{Fault, Scalar, Written};
use super::name::UrlPath;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// A listening address; a Unix socket's path is still relative to the configuration's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Where metrics are served: a path on every listener, or a separate address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MetricsAt {
    Path(String),
    Address(Address),
}

/// Permission bits of a socket file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileMode(pub(crate) u32);

/// unix(7): `sun_path` holds 108 bytes with the final NUL.
pub(crate) const UNIX_PATH_MAX_BYTES: usize = 107;

impl Scalar for Address {
    const NAME: &'static str = "address";
    const EXPECTED: &'static str =
        "an address such as \"127.0.0.1:8080\", \"[::]:80\" or \"unix:/run/outboard.sock\"";
    const TYPES: &'static [&'static str] = &["string"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let Written::Text(text) = written else { return Err(Self::unexpected()) };
        if let Some(path) = text.strip_prefix("unix:") {
            return socket_path(path).map(Address::Unix);
        }
        if let Ok(address) = text.parse() {
            return Ok(Address::Tcp(address));
        }
        tcp(text).map(Address::Tcp)
    }

    fn write(&self) -> String {
        match self {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(path) => format!("unix:{}", path.display()),
        }
    }
}

fn socket_path(path: &str) -> Result<PathBuf, Fault> {
    if path.is_empty() || path.contains('\0') {
        return Err(Fault::new("the Unix socket has no usable path")
            .hint("write the path after the colon: \"unix:/run/outboard.sock\""));
    }
    Ok(Path::new(path).to_owned())
}

/// Forms that `SocketAddr` does not parse: `localhost:80`, `*:80`, `:80`.
fn tcp(text: &str) -> Result<SocketAddr, Fault> {
    let bad = || Fault::new(format!("`{text}` is not an address")).hint(Address::EXPECTED);
    if text.starts_with('/') {
        return Err(bad().hint(format!("a Unix socket is written \"unix:{text}\"")));
    }
    if text.parse::<u16>().is_ok() {
        return Err(bad().hint(format!(
            "write \"127.0.0.1:{text}\" for local connections, \"0.0.0.0:{text}\" for all"
        )));
    }
    if text.parse::<std::net::IpAddr>().is_ok() {
        let example =
            if text.contains(':') { format!("[{text}]:8080") } else { format!("{text}:8080") };
        return Err(bad().hint(format!("the port is missing: \"{example}\"")));
    }
    if let Some((_, rest)) = text.split_once("://") {
        let address = rest.split('/').next().unwrap_or_default();
        let address = if tcp(address).is_ok() { address } else { "0.0.0.0:80" };
        return Err(bad().hint(format!("an address has no scheme: write \"{address}\"")));
    }
    if let Some((address, options)) = text.split_once(' ') {
        let address =
            if address.contains(':') { address.to_owned() } else { format!("0.0.0.0:{address}") };
        let tls = match options.contains("ssl") || options.contains("quic") {
            true => ", and tls = \"auto\" or [[listen.tls]] below it",
            false => "",
        };
        return Err(bad().hint(format!("write [[listen]] with address = \"{address}\"{tls}")));
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
    let port: u16 =
        port.parse().map_err(|_| bad().hint(format!("`{port}` is not a port (0 to 65535)")))?;
    match host {
        "localhost" => Ok((Ipv4Addr::LOCALHOST, port).into()),
        "" | "*" => Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        name => {
            let name = if name.contains(['[', ']', '"']) { "example.org" } else { name };
            Err(bad().hint(format!(
                "write \"0.0.0.0:{port}\"; a name is for `hosts` of an app: hosts = [\"{name}\"]"
            )))
        }
    }
}

impl Scalar for MetricsAt {
    const NAME: &'static str = "URL path or address";
    const EXPECTED: &'static str =
        "a URL path such as \"/metrics\" or an address such as \"127.0.0.1:9100\"";

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        match written {
            Written::Text(text) if text.starts_with('/') => {
                UrlPath::read(written).map(|path| MetricsAt::Path(path.0))
            }
            Written::Text(_) => Address::read(written).map(MetricsAt::Address),
            _ => Err(Self::unexpected()),
        }
    }

    fn write(&self) -> String {
        match self {
            MetricsAt::Path(path) => path.clone(),
            MetricsAt::Address(address) => address.write(),
        }
    }
}

impl Scalar for FileMode {
    const NAME: &'static str = "file mode";
    const EXPECTED: &'static str = "a file mode such as \"0660\" or 0o660";
    const TYPES: &'static [&'static str] = &["string", "integer"];

    fn read(written: Written<'_>) -> Result<Self, Fault> {
        let mode = match written {
            Written::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                u32::from_str_radix(text, 8).ok()
            }
            Written::Integer(bits) => u32::try_from(bits).ok(),
            _ => None,
        };
        mode.filter(|mode| *mode <= 0o777)
            .map(FileMode)
            .ok_or_else(|| Self::unexpected().hint("octal, at most \"0777\""))
    }

    fn write(&self) -> String {
        format!("{:04o}", self.0)
    }
}
