//! Certificates that are their own authority.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate; clients trust this file.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Certificate {
    /// Makes one for these names (`DNS:localhost`, `IP:127.0.0.1`) in a folder, in place of the one
    /// that was made with this stem before.
    pub fn make(folder: &Path, stem: &str, names: &str) -> Certificate {
        let chain = folder.join(format!("{stem}.pem"));
        let key = folder.join(format!("{stem}.key"));
        let output = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
            .args(["-nodes", "-days", "2", "-subj"])
            .arg(format!("/CN={stem}"))
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext"])
            .arg(format!("subjectAltName={names}"))
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&chain)
            .stdin(Stdio::null())
            .output()
            .expect("openssl comes with the TLS library that PHP needs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Certificate { chain, key }
    }
}
