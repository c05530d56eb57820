//! [`TlsListener`]: an address for TLS, and a certificate of its own, for a stack that speaks TLS.
//!
//! Made by openssl, of which every stack reads the same kind of key: on the curve that clients prefer.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::{Error, Result, ResultExt};
use crate::lab::Lab;
use crate::request_spec::HOST;
use crate::system::{free_address, program};

/// See the module.
#[derive(Debug, Clone)]
pub struct TlsListener {
    /// The address.
    pub address: SocketAddr,
    /// The certificate, in PEM.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
    /// Whether it has HTTP/3 as well, where the stack can.
    pub has_http3: bool,
}

impl TlsListener {
    /// The same with HTTP/3.
    pub fn with_http3(self) -> Self {
        Self { has_http3: true, ..self }
    }

    /// The same at another address of this machine.
    pub fn at(mut self, address: IpAddr) -> Self {
        self.address.set_ip(address);
        self
    }

    /// An address that was free just now, with a new certificate.
    pub fn new(lab: &Lab) -> Result<Self> {
        let openssl = program(&["/usr/bin/openssl"], "openssl")?;
        let (directory, address) = (lab.directory("tls")?, free_address()?);
        let file = |end: &str| directory.join(format!("{}.{end}", address.port()));
        let (certificate, key) = (file("pem"), file("key"));
        let listener = Self { address, certificate, key, has_http3: false };
        let output = Command::new(openssl)
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-nodes", "-days", "2", "-subj", &format!("/CN={HOST}"), "-keyout"])
            .arg(&listener.key)
            .arg("-out")
            .arg(&listener.certificate)
            .stdin(Stdio::null())
            .output()
            .context(|| "run openssl".into())?;
        match output.status.success() {
            true => Ok(listener),
            false => Err(Error::Program {
                program: "openssl".into(),
                output: String::from_utf8_lossy(&output.stderr).into_owned(),
            }),
        }
    }
}
